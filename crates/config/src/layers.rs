//! Which value of a setting counts: flag, environment variable, project's file, user's file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::file::{ConfigError, Project};
use crate::key::{Key, ProjectAccess, Value};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody has set it.
    Default,
    /// A line of the user's file.
    User(PathBuf, usize),
    /// A line of the project's file.
    Project(PathBuf, usize),
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

/// A value that somebody has set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The setting.
    pub key: Key,
    /// Its value.
    pub value: Value,
    /// Who has set it.
    pub origin: Origin,
}

/// What the user has set, for all projects.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// From the highest precedence to the lowest.
    flags: Vec<Given>,
    environment: Vec<Given>,
    user: Vec<Given>,
}

impl Layers {
    /// Takes the settings of the user's file.
    pub fn new(user: Vec<Given>) -> Self {
        Self { user, ..Self::default() }
    }

    /// Adds the environment variables that `variable` knows. Empty ones count as not set.
    ///
    /// # Errors
    /// The first variable whose value is not valid.
    pub fn with_environment(
        mut self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        for key in Key::ALL {
            let name = key.variable();
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else { continue };
            let wrong = |reason| ConfigError::Variable { name: name.clone(), reason };
            let text = match value.into_string() {
                Ok(text) => text,
                // The caller uses the path as it is; this is for showing it.
                Err(path) if key.is_path() => path.to_string_lossy().into_owned(),
                Err(_) => return Err(wrong("it is not valid UTF-8".to_owned())),
            };
            let value = key.parse(&text).map_err(wrong)?;
            self.environment.push(Given { key, value, origin: Origin::Variable(name) });
        }
        Ok(self)
    }

    /// Adds what was given with a flag.
    pub fn set(&mut self, key: Key, flag: &'static str, value: Value) {
        self.flags.push(Given { key, value, origin: Origin::Flag(flag) });
    }

    /// The settings that hold in a project, or outside of projects.
    pub fn resolve(&self, project: Option<&Project>) -> Settings {
        let project = project.map_or(&[][..], Project::given);
        let resolved = Key::ALL.into_iter().flat_map(|key| self.resolve_one(key, project));
        Settings { given: resolved.collect() }
    }

    /// What a project's file tries to set and may not, a line each.
    pub fn warnings(&self, project: &Project) -> Vec<String> {
        let mut warnings = project.warnings().to_vec();
        for given in project.given().iter().filter(|it| it.key.project() == ProjectAccess::Lower) {
            let user = self.user.iter().find(|it| it.key == given.key).cloned();
            if lower(given.key, Some(given.clone()), user).as_ref() != Some(given) {
                let (origin, name) = (&given.origin, given.key.name());
                warnings
                    .push(format!("{origin}: {name:?} is ignored: a project can only lower it"));
            }
        }
        warnings
    }

    fn resolve_one(&self, key: Key, project: &[Given]) -> Vec<Given> {
        let find = |layer: &[Given]| layer.iter().find(|it| it.key == key).cloned();
        let (flag, variable) = (find(&self.flags), find(&self.environment));
        let (project, user) = (find(project), find(&self.user));
        if key == Key::IndexIgnore {
            // Each of them excludes something; none can take back what another excludes.
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

/// The project's value if it is lower than what holds without it.
fn lower(key: Key, project: Option<Given>, user: Option<Given>) -> Option<Given> {
    let number = |given: &Given| match given.value {
        Value::Number(number) => Some(number),
        Value::Text(_) | Value::List(_) => None,
    };
    let bound = user.as_ref().and_then(number).or(default_number(key));
    project.filter(|it| number(it) <= bound).or(user)
}

fn default_number(key: Key) -> Option<u64> {
    (key == Key::IndexMaxFileSize).then_some(Settings::MAX_FILE_SIZE)
}

/// The settings that hold, with their origins.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    given: Vec<Given>,
}

impl Settings {
    /// The size of the largest file that is indexed unless somebody sets another.
    pub const MAX_FILE_SIZE: u64 = 1 << 20;

    /// What was given for a setting: nothing if its default holds. Only
    /// [`Key::IndexIgnore`] can have several values.
    pub fn given(&self, key: Key) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(move |it| it.key == key)
    }

    /// The value of a setting that is a number.
    pub fn number(&self, key: Key) -> Option<u64> {
        self.given(key).find_map(|it| match it.value {
            Value::Number(number) => Some(number),
            Value::Text(_) | Value::List(_) => None,
        })
    }

    /// The value of a setting that is a text.
    pub fn text(&self, key: Key) -> Option<&str> {
        self.given(key).find_map(|it| match &it.value {
            Value::Text(text) => Some(text.as_str()),
            Value::Number(_) | Value::List(_) => None,
        })
    }

    /// The entries of a setting that is a list.
    pub fn list(&self, key: Key) -> Vec<String> {
        let entries = self.given(key).filter_map(|it| match &it.value {
            Value::List(entries) => Some(entries.iter().cloned()),
            Value::Number(_) | Value::Text(_) => None,
        });
        entries.flatten().collect()
    }

    /// The size of the largest file that is indexed.
    pub fn max_file_size(&self) -> u64 {
        self.number(Key::IndexMaxFileSize).unwrap_or(Self::MAX_FILE_SIZE)
    }
}

impl Origin {
    /// Its kind, as JSON has it.
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
