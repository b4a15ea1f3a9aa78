//! Which folder a command's store is.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use isolith_types::{Code, Failure};

/// The folder's name inside a project.
pub(crate) const PROJECT_FOLDER: &str = ".isolith";

/// What a command may look at to find its store.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `--store` or `ISOLITH_STORE`: settles it.
    pub given: Option<PathBuf>,
    /// The working folder.
    pub working_folder: PathBuf,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
}

/// Where a command looks if nothing was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The project's store, which must be there.
    Project,
    /// The store of the project that this path lies in; where there is none, one in the
    /// path itself.
    Indexed(&'a Path),
    /// The project's store if there is one, else the user's.
    ProjectThenUser,
    /// The user's store.
    User,
}

/// The store's folder; it need not exist.
///
/// # Errors
/// If there is neither a project's store nor a home folder for the user's, or git
/// tracks the store.
pub fn find_store(surroundings: &Surroundings, scope: Scope<'_>) -> Result<PathBuf, Failure> {
    let here = &surroundings.working_folder;
    let folder = match (&surroundings.given, scope) {
        (Some(given), _) => here.join(given),
        (None, Scope::Project) => project_store(here).ok_or_else(|| no_project(here))?,
        (None, Scope::Indexed(path)) => {
            let path = here.join(path);
            let mut path = std::fs::canonicalize(&path).unwrap_or(path);
            if path.is_file() {
                path.pop();
            }
            project_store(&path).unwrap_or_else(|| path.join(PROJECT_FOLDER))
        }
        (None, Scope::ProjectThenUser) => match project_store(here) {
            Some(project) => project,
            None => user_store(surroundings)?,
        },
        (None, Scope::User) => user_store(surroundings)?,
    };
    refuse_tracked(&folder)?;
    Ok(folder)
}

fn no_project(here: &Path) -> Failure {
    let message = format!("nothing is indexed in {} or above it", here.display());
    Failure::new(Code::NoStore, message).with_hint("`isolith index` indexes the working folder")
}

/// The nearest `.isolith` from `start` upward.
fn project_store(start: &Path) -> Option<PathBuf> {
    start.ancestors().map(|folder| folder.join(PROJECT_FOLDER)).find(|folder| folder.is_dir())
}

impl Surroundings {
    /// The folder of this user's secrets, outside every store: `$XDG_STATE_HOME/isolith`.
    ///
    /// # Errors
    /// `store_refused` if there is no home folder.
    pub fn state_folder(&self) -> Result<PathBuf, Failure> {
        self.base_folder(self.state_home.as_deref(), ".local/state").ok_or_else(|| {
            Failure::new(Code::StoreRefused, "there is no home folder to keep secrets in")
                .with_hint("set HOME or XDG_STATE_HOME, or name a file with ISOLITH_SECRET_FILE")
        })
    }

    fn base_folder(&self, set: Option<&Path>, default: &str) -> Option<PathBuf> {
        // The specification says that a relative one is to be ignored.
        let set = set.filter(|path| path.is_absolute()).map(Path::to_owned);
        let base = set.or_else(|| Some(self.home.as_ref()?.join(default)))?;
        Some(base.join("isolith"))
    }
}

fn user_store(surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let folder = surroundings.base_folder(surroundings.data_home.as_deref(), ".local/share");
    folder.ok_or_else(|| {
        Failure::new(Code::StoreRefused, "there is no home folder to keep a store in")
            .with_hint("name a folder with --store or ISOLITH_STORE")
    })
}

/// A store that came with a clone was made by somebody else.
fn refuse_tracked(folder: &Path) -> Result<(), Failure> {
    let folder = &std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let root = folder.ancestors().find(|above| above.join(".git/index").is_file());
    let Some(root) = root else { return Ok(()) };
    let Ok(index) = std::fs::read(root.join(".git/index")) else { return Ok(()) };
    let truth = folder.strip_prefix(root).unwrap_or(folder).join("truth.sqlite");
    if !lists(&index, truth.as_os_str().as_bytes()) {
        return Ok(());
    }
    let message = format!("the store in {} is tracked by git", folder.display());
    Err(Failure::new(Code::StoreRefused, message)
        .with_hint("`git rm -r --cached` it, or name another folder with --store"))
}

/// Whether an index of git has this path in it. Before each path stand its length, in
/// the low 12 bits of two bytes, and after it a zero. (Version 4 shortens paths; no
/// more than the name can be looked for there.)
fn lists(index: &[u8], path: &[u8]) -> bool {
    let shortened = index.get(4..8) == Some(&[0, 0, 0, 4]);
    let wanted = if shortened { b"truth.sqlite" } else { path };
    let length = u16::try_from(path.len()).unwrap_or(u16::MAX).min(0xFFF);
    let ended = [wanted, &[0]].concat();
    index.windows(2 + ended.len()).any(|window| {
        let flags = u16::from_be_bytes([window[0], window[1]]);
        window[2..] == ended && (shortened || flags & 0xFFF == length)
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
    fn the_nearest_project_comes_before_the_user() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let mut around = around(&deep);
        let users = PathBuf::from("/home/someone/.local/share/isolith");
        assert_eq!(find_store(&around, Scope::ProjectThenUser).unwrap(), users);

        let projects = scratch.path().join("a/.isolith");
        std::fs::create_dir(&projects).unwrap();
        assert_eq!(find_store(&around, Scope::ProjectThenUser).unwrap(), projects);
        assert_eq!(find_store(&around, Scope::User).unwrap(), users);

        around.data_home = Some(PathBuf::from("relative"));
        assert_eq!(find_store(&around, Scope::User).unwrap(), users);
        around.data_home = Some(PathBuf::from("/data"));
        assert_eq!(find_store(&around, Scope::User).unwrap(), Path::new("/data/isolith"));
        around.given = Some(PathBuf::from("here"));
        assert_eq!(find_store(&around, Scope::User).unwrap(), deep.join("here"));
    }

    /// As git writes it, as far as it matters.
    fn git_index(path: &[u8]) -> Vec<u8> {
        let header = b"DIRC\0\0\0\x02\0\0\0\x01";
        [header, &[7; 60][..], &[0x80, path.len() as u8], path, b"\0\0\0"].concat()
    }

    #[test]
    fn a_store_that_git_tracks_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let store = scratch.path().join(".isolith");
        std::fs::create_dir_all(scratch.path().join(".git")).unwrap();
        std::fs::create_dir_all(&store).unwrap();
        let index = scratch.path().join(".git/index");
        let around = around(scratch.path());
        for other in [&b"src/main.rs"[..], b"tests/truth.sqlite", b"sub/.isolith/truth.sqlite"] {
            std::fs::write(&index, git_index(other)).unwrap();
            assert_eq!(find_store(&around, Scope::ProjectThenUser).unwrap(), store);
        }
        std::fs::write(&index, git_index(b".isolith/truth.sqlite")).unwrap();
        let failure = find_store(&around, Scope::ProjectThenUser).unwrap_err();
        assert_eq!(failure.code, Code::StoreRefused);
    }
}
