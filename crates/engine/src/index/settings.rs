//! The settings that apply to a root: the user's and those of its project.

use std::path::Path;

use isolith_config::{Key, Origin, ProjectFile, Settings, Value};
use isolith_source::Language;
use isolith_source::walk::RulesAbove;
use isolith_types::{Code, Failure};

use crate::open::Engine;

/// Which files of a root to index.
#[derive(Debug)]
pub(crate) struct RootSettings {
    /// Ignored files and folders.
    pub(crate) ignored: Vec<RulesAbove>,
    /// The languages to index; empty for all.
    pub(crate) languages: Vec<String>,
    /// Maximum file size in bytes.
    pub(crate) max_file_size: u64,
}

impl Engine {
    /// The current settings of a root.
    ///
    /// # Errors
    /// `bad_input` if the project's file cannot be used, or a language is unknown.
    pub(crate) fn root_settings(&self, root: &Path) -> Result<RootSettings, Failure> {
        let project = ProjectFile::find(root)?;
        let layers = &self.inner.options.settings;
        for warning in project.iter().flat_map(|project| layers.warnings(project)) {
            tracing::warn!("{warning}");
        }
        let settings = layers.resolve(project.as_ref());
        Ok(RootSettings {
            ignored: ignored(&settings, project.as_ref(), root),
            languages: indexed_languages(&settings)?,
            max_file_size: settings.max_file_size(),
        })
    }
}

/// The selected languages, by the names that the index uses; empty for all.
///
/// # Errors
/// `bad_input` if one is unknown.
pub fn indexed_languages(settings: &Settings) -> Result<Vec<String>, Failure> {
    let known = |name: &String| {
        Language::from_name(name).map(|it| it.name().to_owned()).ok_or_else(|| {
            let origin = settings.get(Key::IndexLanguages).next();
            let origin = origin.map_or(String::new(), |it| format!("{}: ", it.origin));
            let key = Key::IndexLanguages.name();
            let message = format!("{origin}{key:?}: unknown language {name:?}");
            Failure::new(Code::BadInput, message)
                .with_hint("docs/languages.md lists them: rust, python, typescript, …")
        })
    };
    settings.list(Key::IndexLanguages).iter().map(known).collect()
}

/// Patterns of the project are relative to its settings file, all others to the root.
fn ignored(settings: &Settings, project: Option<&ProjectFile>, root: &Path) -> Vec<RulesAbove> {
    let above = project.and_then(|project| root.strip_prefix(project.folder()).ok());
    let above = above.filter(|path| !path.as_os_str().is_empty());
    let prefix = above.map_or(String::new(), |path| format!("{}/", path.display()));
    let (mut inner, mut outer) = (Vec::new(), Vec::new());
    for setting in settings.get(Key::IndexIgnore) {
        let Value::List(patterns) = &setting.value else { continue };
        match setting.origin {
            Origin::Project(..) if !prefix.is_empty() => outer.extend_from_slice(patterns),
            _ => inner.extend_from_slice(patterns),
        }
    }
    let rules = [(String::new(), inner), (prefix, outer)].into_iter();
    let rules = rules.filter(|(_, patterns)| !patterns.is_empty());
    rules.map(|(prefix, patterns)| RulesAbove::of_settings(prefix, &patterns)).collect()
}
