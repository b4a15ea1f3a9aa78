//! Finds the store that a command uses.

use std::path::{Path, PathBuf};

use isolith_folder::git::{Worktree, repository_between, repository_top};
use isolith_types::{Code, Failure, Hint};

use crate::trust::StorePlace;

/// The name of a project's store folder.
pub(crate) const PROJECT_FOLDER: &str = ".isolith";

/// The environment in which a command looks for its store.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `--store` or `ISOLITH_STORE`: takes precedence over everything else.
    pub given: Option<PathBuf>,
    /// The working folder.
    pub working_folder: PathBuf,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// `ISOLITH_SECRET_FILE`: the secret that seals stores, if it cannot be in the state
    /// folder.
    pub secret_file: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
}

/// Where a command looks if no store was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreScope<'a> {
    /// The project's store, which must exist.
    Project,
    /// The store of the project that contains this path; without one, a store in the path
    /// itself.
    Indexed(&'a Path),
    /// The project's store above this folder, which must exist.
    Above(&'a Path),
    /// The project's store if there is one, else the user's.
    ProjectThenUser,
    /// The user's store.
    User,
}

/// Finds the location of the store, which need not exist.
///
/// # Errors
/// If there is neither a project's store nor a home folder for the user's.
pub fn find_store(
    surroundings: &Surroundings,
    scope: StoreScope<'_>,
) -> Result<StorePlace, Failure> {
    let here = &surroundings.working_folder;
    let folder = match (&surroundings.given, scope) {
        (Some(given), _) => here.join(given),
        (None, StoreScope::Project) => project_store(here).ok_or_else(|| no_project(here))?,
        (None, StoreScope::Indexed(path)) => {
            let path = here.join(path);
            let mut path = std::fs::canonicalize(&path).unwrap_or(path);
            if path.is_file() {
                path.pop();
            }
            project_store(&path).unwrap_or_else(|| path.join(PROJECT_FOLDER))
        }
        (None, StoreScope::Above(path)) => {
            let path = here.join(path);
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            path.parent().and_then(nearest_store).ok_or_else(|| no_project(&path))?
        }
        (None, StoreScope::ProjectThenUser) => match project_store(here) {
            Some(project) => project,
            None => user_store(surroundings)?,
        },
        (None, StoreScope::User) => user_store(surroundings)?,
    };
    let secret = surroundings.secret_file()?;
    let is_own = user_store(surroundings).is_ok_and(|own| is_same(&own, &folder));
    Ok(match is_own {
        true => StorePlace::own(folder, secret),
        false => StorePlace::sealed(folder, secret),
    })
}

/// Whether two paths name the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    one == other || real(one) == real(other)
}

fn no_project(here: &Path) -> Failure {
    let message = format!("nothing is indexed in {} or above it", here.display());
    Failure::new(Code::NoStore, message).with_hint(Hint::IndexProject)
}

/// The project's store for a folder: the nearest `.isolith` from it upward, or else that of the
/// main checkout if the folder is in a linked worktree.
pub fn project_store(start: &Path) -> Option<PathBuf> {
    let of_main_checkout = || {
        let worktree = Worktree::of(repository_top(start)?)?;
        nearest_store(worktree.main_checkout()?)
    };
    nearest_store(start).or_else(of_main_checkout)
}

/// The store above a project's store, if both hold the same project: somebody has indexed a
/// folder and later one that contains it.
pub fn store_above(store: &Path) -> Option<PathBuf> {
    let folder = store.parent().filter(|_| store.ends_with(PROJECT_FOLDER))?;
    let above = nearest_store(folder.parent()?)?;
    repository_between(above.parent()?, folder).is_none().then_some(above)
}

fn nearest_store(start: &Path) -> Option<PathBuf> {
    let is_there = |folder: &PathBuf| folder.symlink_metadata().is_ok_and(|it| !it.is_file());
    start.ancestors().map(|folder| folder.join(PROJECT_FOLDER)).find(is_there)
}

impl Surroundings {
    /// The file with the secret that seals stores.
    fn secret_file(&self) -> Result<PathBuf, Failure> {
        match &self.secret_file {
            Some(file) => Ok(self.working_folder.join(file)),
            None => Ok(self.state_folder()?.join("secret")),
        }
    }

    /// The folder of this user's secrets, outside every store: `$XDG_STATE_HOME/isolith`.
    ///
    /// # Errors
    /// `store_refused` if there is no home folder.
    pub fn state_folder(&self) -> Result<PathBuf, Failure> {
        self.base_folder(self.state_home.as_deref(), ".local/state").ok_or_else(|| {
            let advice = "set HOME or XDG_STATE_HOME, or name a file".to_owned();
            Failure::new(Code::StoreRefused, "there is no home folder to keep secrets in")
                .with_hint(Hint::NameSecretFile { advice })
        })
    }

    fn base_folder(&self, set: Option<&Path>, default: &str) -> Option<PathBuf> {
        // The XDG specification says to ignore relative paths.
        let set = set.filter(|path| path.is_absolute()).map(Path::to_owned);
        let base = set.or_else(|| Some(self.home.as_ref()?.join(default)))?;
        Some(base.join("isolith"))
    }
}

fn user_store(surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let folder = surroundings.base_folder(surroundings.data_home.as_deref(), ".local/share");
    folder.ok_or_else(|| {
        Failure::new(Code::StoreRefused, "there is no home folder to keep a store in")
            .with_hint(Hint::NameStore { advice: "set HOME, or name a folder".to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(working_folder: &Path) -> Surroundings {
        Surroundings {
            working_folder: working_folder.to_owned(),
            home: Some(PathBuf::from("/home/someone")),
            ..Surroundings::default()
        }
    }

    #[test]
    fn the_nearest_project_takes_precedence_over_the_user() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let mut around = around(&deep);
        let users = PathBuf::from("/home/someone/.local/share/isolith");
        let find =
            |around: &Surroundings, scope| find_store(around, scope).unwrap().path().to_owned();
        assert_eq!(find(&around, StoreScope::ProjectThenUser), users);

        let projects = scratch.path().join("a/.isolith");
        std::fs::create_dir(&projects).unwrap();
        assert_eq!(find(&around, StoreScope::ProjectThenUser), projects);
        assert_eq!(find(&around, StoreScope::User), users);

        around.data_home = Some(PathBuf::from("relative"));
        assert_eq!(find(&around, StoreScope::User), users);
        around.data_home = Some(PathBuf::from("/data"));
        assert_eq!(find(&around, StoreScope::User), Path::new("/data/isolith"));
        around.given = Some(PathBuf::from("here"));
        assert_eq!(find(&around, StoreScope::User), deep.join("here"));
    }
}
