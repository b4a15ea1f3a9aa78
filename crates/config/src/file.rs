//! Reads and validates configuration files.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isolith_folder::{Folder, met_link, open_file};
use isolith_types::{Code, Failure};
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use crate::key::{Key, ProjectAccess, Value};
use crate::layers::{Origin, Setting};

/// The name of a project's configuration file.
pub const PROJECT_FILE: &str = ".isolith.toml";

/// Other names that mark a project's folder.
const PROJECT_MARKERS: [&str; 2] = [".isolith", ".git"];

const MAX_FILE_BYTES: u64 = 64 << 10;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages show what the fields are")]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// The file has a syntax error, an unknown key or an invalid value. Lines count from 1.
    #[error("{}:{line}: {problem}", path.display())]
    Invalid { path: PathBuf, line: usize, problem: String },
    /// A value was found to be invalid only when it was used.
    #[error("{origin}: {problem}")]
    Unusable { origin: Origin, problem: String },
    /// An environment variable has an invalid value.
    #[error("{name}: {reason}")]
    Variable { name: String, reason: String },
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::Unreadable { .. } => {
                "replace it with a regular file that you own, or remove it"
            }
            ConfigError::Invalid { .. } | ConfigError::Unusable { .. } => {
                "correct the file; docs/configuration.md lists all settings"
            }
            ConfigError::Variable { .. } => "correct the variable, or unset it",
        };
        Failure::new(Code::BadInput, error.to_string()).with_hint(hint)
    }
}

/// Reads the user's file; a missing file sets nothing. Paths in it are resolved relative to its
/// folder.
///
/// # Errors
/// If it is not a valid regular file of at most 64 kB.
pub fn read_user_file(path: &Path) -> Result<Vec<Setting>, ConfigError> {
    // The file is trusted, so a link to it is followed.
    let file = match std::fs::canonicalize(path).and_then(|real| open_file(&real)) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let text = read_bounded(&file, path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut settings = parse(&text, path, Scope::User)?.settings;
    for Setting { key, value, .. } in &mut settings {
        if key.is_path() {
            *value = resolved(value, folder);
        }
    }
    Ok(settings)
}

/// A project's configuration file, which is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    folder: PathBuf,
    settings: Vec<Setting>,
    warnings: Vec<String>,
}

impl ProjectFile {
    /// The project's folder: the nearest one from `start` upward with a configuration file, a
    /// store or a git repository.
    pub fn folder_of(start: &Path) -> Option<&Path> {
        let has = |folder: &Path, name| folder.join(name).symlink_metadata().is_ok();
        let is_project = |folder: &&Path| {
            has(folder, PROJECT_FILE) || PROJECT_MARKERS.iter().any(|mark| has(folder, mark))
        };
        start.ancestors().find(is_project)
    }

    /// Reads the file of the project that contains `start`, if there is one. Follows no link.
    ///
    /// # Errors
    /// If it is not a valid regular file of at most 64 kB that belongs to this user. A setting
    /// that a project cannot set is a [warning](crate::Layers::warnings), not an error.
    pub fn find(start: &Path) -> Result<Option<Self>, ConfigError> {
        let Some(folder) = Self::folder_of(start) else { return Ok(None) };
        let path = folder.join(PROJECT_FILE);
        let opened =
            Folder::resolve(folder).and_then(|folder| folder.file_beneath(PROJECT_FILE.as_ref()));
        let file = match opened {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let owner = file.metadata().map_err(|error| unreadable(&path, &error))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            let reason = "it belongs to another user".to_owned();
            return Err(ConfigError::Unreadable { path, reason });
        }
        let Parsed { settings, warnings } =
            parse(&read_bounded(&file, &path)?, &path, Scope::Project)?;
        Ok(Some(Self { folder: folder.to_owned(), settings, warnings }))
    }

    /// The folder that contains the file.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The settings in the file, without those that no project can set.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// One warning for each setting that no project can set.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(path: &Path, error: &io::Error) -> ConfigError {
    let reason = match met_link(error) {
        true => "it is a symbolic link".to_owned(),
        false => error.to_string(),
    };
    ConfigError::Unreadable { path: path.to_owned(), reason }
}

fn read_bounded(file: &File, path: &Path) -> Result<String, ConfigError> {
    let refuse =
        |reason: &str| ConfigError::Unreadable { path: path.to_owned(), reason: reason.to_owned() };
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(refuse("it is larger than 64 kB"));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is not valid UTF-8"))
}

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    User,
    Project,
}

#[derive(Default)]
struct Parsed {
    settings: Vec<Setting>,
    warnings: Vec<String>,
}

fn parse(text: &str, path: &Path, scope: Scope) -> Result<Parsed, ConfigError> {
    let source = Source { text, path, scope };
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // The first line is the message, the others explain it.
        source.invalid(at, error.message().lines().next().unwrap_or_default())
    })?;
    let mut parsed = Parsed::default();
    source.read_table("", document.as_table(), &mut parsed)?;
    Ok(parsed)
}

/// The file being parsed.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
    scope: Scope,
}

impl Source<'_> {
    fn read_table(
        &self,
        prefix: &str,
        table: &dyn TableLike,
        parsed: &mut Parsed,
    ) -> Result<(), ConfigError> {
        for (name, item) in table.iter() {
            let key = table.key(name).and_then(toml_edit::Key::span).or(item.span());
            let at = key.map_or(0, |span| span.start);
            let name = format!("{prefix}{name}");
            match (Key::from_name(&name), item.as_table_like()) {
                (Some(key), _) => self.read_setting(key, item, at, parsed)?,
                (None, Some(inner)) if prefix.is_empty() && is_table(&name) => {
                    self.read_table(&format!("{name}."), inner, parsed)?;
                }
                _ => return Err(self.invalid(at, &format!("unknown key {name:?}"))),
            }
        }
        Ok(())
    }

    fn read_setting(
        &self,
        key: Key,
        item: &Item,
        at: usize,
        parsed: &mut Parsed,
    ) -> Result<(), ConfigError> {
        let (path, line) = (self.path.to_owned(), self.line(at));
        let in_project = self.scope == Scope::Project;
        if in_project && key.project() == ProjectAccess::Never {
            parsed.warnings.push(format!(
                "{}:{line}: {:?} is ignored: a project's file cannot set it",
                path.display(),
                key.name()
            ));
            return Ok(());
        }
        let value_type = key.value_type(in_project);
        let value = item.as_value().and_then(value).ok_or_else(|| value_type.to_string());
        let value = value.and_then(|value| value_type.check(value));
        let value =
            value.map_err(|expected| self.invalid(at, &format!("{:?}: {expected}", key.name())))?;
        let origin = match self.scope {
            Scope::User => Origin::User(path, line),
            Scope::Project => Origin::Project(path, line),
        };
        parsed.settings.push(Setting { key, value, origin });
        Ok(())
    }

    fn invalid(&self, at: usize, problem: &str) -> ConfigError {
        ConfigError::Invalid {
            path: self.path.to_owned(),
            line: self.line(at),
            problem: problem.to_owned(),
        }
    }

    /// The line of a byte offset, counted from 1.
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Whether a table with this name can contain settings.
fn is_table(name: &str) -> bool {
    Key::ALL.iter().any(|key| key.name().split_once('.').is_some_and(|(table, _)| table == name))
}

/// Converts a value; `None` if no setting has values of its type.
fn value(toml: &TomlValue) -> Option<Value> {
    match toml {
        TomlValue::String(text) => Some(Value::Text(text.value().clone())),
        TomlValue::Integer(number) => u64::try_from(*number.value()).ok().map(Value::Number),
        TomlValue::Array(entries) => {
            let entries = entries.iter().map(|entry| entry.as_str().map(str::to_owned));
            entries.collect::<Option<_>>().map(Value::List)
        }
        TomlValue::Float(_)
        | TomlValue::Boolean(_)
        | TomlValue::Datetime(_)
        | TomlValue::InlineTable(_) => None,
    }
}

fn resolved(value: &Value, folder: &Path) -> Value {
    let path = |text: &String| folder.join(text).to_string_lossy().into_owned();
    match value {
        Value::Text(text) => Value::Text(path(text)),
        Value::List(entries) => Value::List(entries.iter().map(path).collect()),
        Value::Number(number) => Value::Number(*number),
    }
}

#[cfg(test)]
mod tests;
