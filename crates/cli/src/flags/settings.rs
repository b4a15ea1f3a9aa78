//! Settings of one invocation: from flags, the environment and configuration files.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use isolith_config::{
    ConfigError, Key, Layers, Origin, ProjectFile, Settings, Value, read_user_file,
};
use isolith_engine::{Surroundings, indexed_languages};
use isolith_types::{Code, Failure};

use super::typed::TypedCommon;

/// The environment of a command, and its settings.
pub(super) struct Context<'a> {
    common: &'a TypedCommon,
    /// The user's settings, read lazily.
    layers: OnceCell<Layers>,
    /// The settings in the working folder, read lazily.
    here: OnceCell<Settings>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Context<'a> {
    /// Files are read lazily: some commands must work even if they are invalid.
    pub(super) fn new(common: &'a TypedCommon) -> Self {
        Self {
            common,
            layers: OnceCell::new(),
            here: OnceCell::new(),
            warnings: RefCell::default(),
        }
    }

    /// The user's settings for all projects: from the user's file, the environment and flags.
    ///
    /// # Errors
    /// If the user's file or a variable is invalid.
    pub(super) fn layers(&self) -> Result<&Layers, Failure> {
        if let Some(layers) = self.layers.get() {
            return Ok(layers);
        }
        let user = user_file().map_or(Ok(Vec::new()), |file| read_user_file(&file))?;
        let mut layers = Layers::new(user).with_environment(variable)?;
        if let Some(store) = &self.common.store {
            let store = Value::Text(store.display().to_string());
            layers.set(Key::Store, "--store", store);
        }
        Ok(self.layers.get_or_init(|| layers))
    }

    /// The user's settings, without the project's.
    pub(super) fn users(&self) -> Result<Settings, Failure> {
        Ok(self.layers()?.resolve(None))
    }

    /// The log filter. A command that reads no settings uses that of the environment.
    pub(super) fn log(&self) -> Option<String> {
        match self.layers.get() {
            Some(layers) => layers.resolve(None).text(Key::Log).map(str::to_owned),
            None => variable(&Key::Log.variable())?.into_string().ok(),
        }
    }

    /// The settings in the working folder.
    ///
    /// # Errors
    /// If the project's file is invalid.
    pub(super) fn here(&self) -> Result<&Settings, Failure> {
        if let Some(settings) = self.here.get() {
            return Ok(settings);
        }
        let settings = self.of_folder(&working_folder()?)?;
        Ok(self.here.get_or_init(|| settings))
    }

    /// The settings in the working folder. Ignores an invalid project file: a server starts
    /// anyway.
    pub(super) fn here_if_possible(&self) -> Result<Settings, Failure> {
        let users = self.users()?;
        Ok(self.here().cloned().unwrap_or_else(|failure| {
            let warning = format!("{}; the file is ignored", failure.message);
            self.warnings.borrow_mut().push(warning);
            users
        }))
    }

    /// The settings for a folder to be indexed.
    pub(super) fn of_folder(&self, folder: &Path) -> Result<Settings, Failure> {
        // A missing folder is reported when it is indexed.
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let layers = self.layers()?;
        let project = ProjectFile::find(&folder)?;
        let warnings = project.iter().flat_map(|project| layers.warnings(project));
        self.warnings.borrow_mut().extend(warnings);
        let settings = layers.resolve(project.as_ref());
        indexed_languages(&settings)?;
        Ok(settings)
    }

    /// Number of results of a search: from the flag, else the setting, else `usual`.
    pub(super) fn results(&self, flag: Option<u32>, usual: u32) -> Result<u32, Failure> {
        self.limit(Key::LimitsResults, flag, usual)
    }

    /// Number of rows of a list: from the flag, else the setting, else `usual`.
    pub(super) fn rows(&self, flag: Option<u32>, usual: u32) -> Result<u32, Failure> {
        self.limit(Key::LimitsRows, flag, usual)
    }

    fn limit(&self, key: Key, flag: Option<u32>, usual: u32) -> Result<u32, Failure> {
        match flag {
            Some(limit) => Ok(limit),
            None => Ok(limit_of(self.here()?, key).unwrap_or(usual)),
        }
    }

    /// Warnings to print before the command starts.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Where to look for stores. `named`: a flag says whose store to use.
    pub(super) fn surroundings(&self, named: bool) -> Result<Surroundings, Failure> {
        let users = self.users()?;
        let path = |key: Key| {
            let given = variable(&key.variable()).map(PathBuf::from);
            given.or_else(|| users.text(key).map(PathBuf::from))
        };
        // Flags take precedence over the environment, including --user and --project.
        let given = self.common.store.clone().or_else(|| path(Key::Store));
        Ok(Surroundings {
            given: given.filter(|_| !named),
            working_folder: working_folder()?,
            data_home: variable("XDG_DATA_HOME").map(PathBuf::from),
            state_home: variable("XDG_STATE_HOME").map(PathBuf::from),
            secret_file: path(Key::SecretFile),
            home: variable("HOME").map(PathBuf::from),
        })
    }
}

/// A setting that limits the number of results.
pub(super) fn limit_of(settings: &Settings, key: Key) -> Option<u32> {
    settings.number(key).and_then(|number| u32::try_from(number).ok())
}

/// Path of the user's configuration file, whether or not it exists. `None` without a home folder.
pub(super) fn user_file() -> Option<PathBuf> {
    // The specification says to ignore relative paths.
    let set = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = set.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(folder.join("isolith/config.toml"))
}

/// The working folder.
pub(super) fn working_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(Code::Failed, format!("cannot determine the working folder: {error}"))
    })
}

/// An environment variable. An empty one counts as unset.
pub(super) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// An error in a setting that is validated where it is used.
pub(super) fn unusable(settings: &Settings, key: Key, reason: &str) -> Failure {
    let origin = settings.get(key).next().map_or(Origin::Default, |it| it.origin.clone());
    let problem = format!("{:?}: {reason}", key.name());
    ConfigError::Unusable { origin, problem }.into()
}
