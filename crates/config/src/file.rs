//! Configuration files: reading, and what may be in them.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isolith_folder::{Folder, met_link, open_file};
use isolith_types::{Code, Failure};
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use crate::key::{Key, ProjectAccess, Value};
use crate::layers::{Given, Origin};

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".isolith.toml";

/// Names that mark a project's folder, beside that of its file.
const PROJECT_MARKS: [&str; 2] = [".isolith", ".git"];

/// The largest configuration file.
const LARGEST: u64 = 64 << 10;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Something in the file is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A value turned out to be wrong when it was used.
    #[error("{origin}: {problem}")]
    Unusable {
        /// Where it comes from.
        origin: Origin,
        /// What is wrong.
        problem: String,
    },
    /// An environment variable is wrong.
    #[error("{name}: {reason}")]
    Variable {
        /// The variable.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let hint = match &error {
            ConfigError::Unreadable { .. } => "make it a regular file of your own, or remove it",
            ConfigError::Invalid { .. } | ConfigError::Unusable { .. } => {
                "correct the file; docs/configuration.md has all settings"
            }
            ConfigError::Variable { .. } => "correct the variable, or unset it",
        };
        Failure::new(Code::BadInput, error.to_string()).with_hint(hint)
    }
}

/// Reads the user's file. Paths in it are relative to its folder. Nothing is set where there
/// is not a file.
///
/// # Errors
/// If it is not a regular file of at most 64 kB, or not valid.
pub fn read_user_file(path: &Path) -> Result<Vec<Given>, ConfigError> {
    // It belongs to the user, who may keep it elsewhere and link to it.
    let file = match std::fs::canonicalize(path).and_then(|real| open_file(&real)) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let text = read_bounded(&file, path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut given = parse(&text, path, Owner::User)?.given;
    for Given { key, value, .. } in &mut given {
        if key.is_path() {
            *value = resolved(value, folder);
        }
    }
    Ok(given)
}

/// The file of a project, which may have been written by a stranger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
    given: Vec<Given>,
    warnings: Vec<String>,
}

impl Project {
    /// The project's folder: the nearest one from `start` upward that has a configuration
    /// file, a store or a repository.
    pub fn folder_of(start: &Path) -> Option<&Path> {
        let has = |folder: &Path, name| folder.join(name).symlink_metadata().is_ok();
        let is_project = |folder: &&Path| {
            has(folder, PROJECT_FILE) || PROJECT_MARKS.iter().any(|mark| has(folder, mark))
        };
        start.ancestors().find(is_project)
    }

    /// Reads the file of the project that `start` lies in, if there is one. No link is
    /// followed.
    ///
    /// # Errors
    /// If it is not a regular file of this user and of at most 64 kB, or not valid. What a
    /// project may not set is not an error, but a [warning](crate::Layers::warnings).
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
        let Parsed { given, warnings } =
            parse(&read_bounded(&file, &path)?, &path, Owner::Project)?;
        Ok(Some(Self { folder: folder.to_owned(), given, warnings }))
    }

    /// The folder that the file is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the file sets and may set.
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// What the file sets and no project may set, a line each.
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
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(refuse("it is larger than 64 kB"));
    }
    String::from_utf8(bytes).map_err(|_| refuse("it is not valid UTF-8"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Project,
}

#[derive(Default)]
struct Parsed {
    given: Vec<Given>,
    warnings: Vec<String>,
}

/// Reads the settings of a file.
fn parse(text: &str, path: &Path, owner: Owner) -> Result<Parsed, ConfigError> {
    let source = Source { text, path, owner };
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // The parser explains in several lines what the first one says.
        source.wrong(at, error.message().lines().next().unwrap_or_default())
    })?;
    let mut parsed = Parsed::default();
    source.read_table("", document.as_table(), &mut parsed)?;
    Ok(parsed)
}

/// A file that is being read.
struct Source<'a> {
    text: &'a str,
    path: &'a Path,
    owner: Owner,
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
                _ => return Err(self.wrong(at, &format!("unknown key {name:?}"))),
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
        let in_project = self.owner == Owner::Project;
        if in_project && key.project() == ProjectAccess::Never {
            parsed.warnings.push(format!(
                "{}:{line}: {:?} is ignored: a project's file cannot set it",
                path.display(),
                key.name()
            ));
            return Ok(());
        }
        let kind = key.kind(in_project);
        let value = item.as_value().and_then(value).ok_or_else(|| kind.to_string());
        let value = value.and_then(|value| kind.check(value));
        let value =
            value.map_err(|expected| self.wrong(at, &format!("{:?}: {expected}", key.name())))?;
        let origin = match self.owner {
            Owner::User => Origin::User(path, line),
            Owner::Project => Origin::Project(path, line),
        };
        parsed.given.push(Given { key, value, origin });
        Ok(())
    }

    fn wrong(&self, at: usize, problem: &str) -> ConfigError {
        ConfigError::Invalid {
            path: self.path.to_owned(),
            line: self.line(at),
            problem: problem.to_owned(),
        }
    }

    /// The line of a byte, counted from 1.
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// Whether settings have names in this table.
fn is_table(name: &str) -> bool {
    Key::ALL.iter().any(|key| key.name().split_once('.').is_some_and(|(table, _)| table == name))
}

/// A value of the kinds that settings have.
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
