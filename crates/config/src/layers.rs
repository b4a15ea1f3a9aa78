//! Precedence of settings: flag, environment variable, project's file, user's file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::file::{ConfigError, ProjectFile};
use crate::key::{Key, ProjectAccess, Value};

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: the default applies.
    Default,
    /// The user's file, with the line.
    User(PathBuf, usize),
    /// The project's file, with the line.
    Project(PathBuf, usize),
    /// The environment variable with this name.
    Variable(String),
    /// The flag with this name.
    Flag(&'static str),
}

/// A key with the value set for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the types describe the fields")]
pub struct Setting {
    pub key: Key,
    pub value: Value,
    pub origin: Origin,
}

/// The settings that apply to all projects, one layer per origin.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    flags: Vec<Setting>,
    environment: Vec<Setting>,
    user: Vec<Setting>,
}

impl Layers {
    /// Starts with the settings of the user's file.
    pub fn new(user: Vec<Setting>) -> Self {
        Self { user, ..Self::default() }
    }

    /// Adds the environment variables, looked up with `variable`. Empty ones count as unset.
    ///
    /// # Errors
    /// If a variable has an invalid value.
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        for key in Key::ALL {
            let name = key.variable();
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else { continue };
            let invalid = |reason| ConfigError::Variable { name: name.clone(), reason };
            let text = match value.into_string() {
                Ok(text) => text,
                // For display only; the caller uses the path as it is.
                Err(path) if key.is_path() => path.to_string_lossy().into_owned(),
                Err(_) => return Err(invalid("it is not valid UTF-8".to_owned())),
            };
            let value = key.parse(&text).map_err(invalid)?;
            self.environment.push(Setting { key, value, origin: Origin::Variable(name) });
        }
        Ok(self)
    }

    /// Adds the value of a flag.
    pub fn set(&mut self, key: Key, flag: &'static str, value: Value) {
        self.flags.push(Setting { key, value, origin: Origin::Flag(flag) });
    }

    /// The effective settings in a project, or outside any project.
    pub fn resolve(&self, project: Option<&ProjectFile>) -> Settings {
        let project = project.map_or(&[][..], ProjectFile::settings);
        let settings = Key::ALL.into_iter().flat_map(|key| self.resolve_one(key, project));
        Settings { settings: settings.collect() }
    }

    /// One warning for each setting of a project's file that is ignored.
    pub fn warnings(&self, project: &ProjectFile) -> Vec<String> {
        let mut warnings = project.warnings().to_vec();
        for setting in
            project.settings().iter().filter(|it| it.key.project() == ProjectAccess::Lower)
        {
            let user = self.user.iter().find(|it| it.key == setting.key).cloned();
            if lower(setting.key, Some(setting.clone()), user).as_ref() != Some(setting) {
                let (origin, name) = (&setting.origin, setting.key.name());
                warnings
                    .push(format!("{origin}: {name:?} is ignored: a project can only lower it"));
            }
        }
        warnings
    }

    fn resolve_one(&self, key: Key, project: &[Setting]) -> Vec<Setting> {
        let find = |layer: &[Setting]| layer.iter().find(|it| it.key == key).cloned();
        let (flag, variable) = (find(&self.flags), find(&self.environment));
        let (project, user) = (find(project), find(&self.user));
        if key == Key::IndexIgnore {
            // The patterns of all layers apply together.
            return [flag, variable, project, user].into_iter().flatten().collect();
        }
        let chosen = flag.or(variable);
        let chosen = chosen.or_else(|| match key.project() {
            ProjectAccess::Never => user,
            ProjectAccess::Set => project.or(user),
            ProjectAccess::Lower => lower(key, project, user),
        });
        chosen.into_iter().collect()
    }
}

/// The project's setting unless it is higher than the user's or the default, else the user's.
fn lower(key: Key, project: Option<Setting>, user: Option<Setting>) -> Option<Setting> {
    let number = |setting: &Setting| match setting.value {
        Value::Number(number) => Some(number),
        Value::Text(_) | Value::List(_) => None,
    };
    let bound = user.as_ref().and_then(number).or(default_number(key));
    project.filter(|it| number(it) <= bound).or(user)
}

fn default_number(key: Key) -> Option<u64> {
    (key == Key::IndexMaxFileSize).then_some(Settings::MAX_FILE_SIZE)
}

/// The effective settings; keys with their default value are absent.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    settings: Vec<Setting>,
}

impl Settings {
    /// The default of [`Self::max_file_size`].
    pub const MAX_FILE_SIZE: u64 = 1 << 20;

    /// The values set for a key: none if the default applies, several only for
    /// [`Key::IndexIgnore`].
    pub fn get(&self, key: Key) -> impl Iterator<Item = &Setting> {
        self.settings.iter().filter(move |it| it.key == key)
    }

    /// The number set for a key; `None` if there is none.
    pub fn number(&self, key: Key) -> Option<u64> {
        self.get(key).find_map(|it| match it.value {
            Value::Number(number) => Some(number),
            Value::Text(_) | Value::List(_) => None,
        })
    }

    /// The string set for a key; `None` if there is none.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.get(key).find_map(|it| match &it.value {
            Value::Text(text) => Some(text.as_str()),
            Value::Number(_) | Value::List(_) => None,
        })
    }

    /// The list entries set for a key, of all layers that apply.
    pub fn list(&self, key: Key) -> Vec<String> {
        let entries = self.get(key).filter_map(|it| match &it.value {
            Value::List(entries) => Some(entries.iter().cloned()),
            Value::Number(_) | Value::Text(_) => None,
        });
        entries.flatten().collect()
    }

    /// Maximum size of an indexed file, in bytes.
    pub fn max_file_size(&self) -> u64 {
        self.number(Key::IndexMaxFileSize).unwrap_or(Self::MAX_FILE_SIZE)
    }
}

impl Origin {
    /// The name in JSON output.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User(..) => "user_file",
            Self::Project(..) => "project_file",
            Self::Variable(_) => "environment",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(file, line) | Self::Project(file, line) => {
                write!(f, "{}:{line}", file.display())
            }
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
