//! Confines tools to paths below the project and the allowed folders. Nothing outside is read or
//! revealed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use isolith_engine::{OpenFile, Within, real_path};
use isolith_types::{Code, Failure, Hint};

const MAX_PATH_BYTES: usize = 4_096;

/// The folders that tools may read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Confinement {
    /// The folder that relative paths are resolved against.
    base: Option<PathBuf>,
    /// All folders, including the base.
    folders: Vec<PathBuf>,
    within: Within,
}

/// A path that passed the check. It may lead elsewhere by the time it is used: open it with
/// [`Confinement::file`], or relative to a root that the engine opened in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedPath {
    /// The canonical path, without links and `.` or `..`.
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
}

impl Confinement {
    /// Allows `base` and the `allowed` folders, except for the folders of `stores`.
    pub(crate) fn new(base: Option<PathBuf>, allowed: &[PathBuf], stores: Vec<PathBuf>) -> Self {
        let folders: Vec<PathBuf> = base.iter().chain(allowed).cloned().collect();
        Self { within: Within::new(folders.clone(), stores), base, folders }
    }

    /// The same confinement for the engine.
    pub(crate) fn within(&self) -> &Within {
        &self.within
    }

    /// Resolves links in a path argument, then checks that the result is allowed.
    pub(crate) fn resolve(&self, path: &str) -> Result<AllowedPath, Failure> {
        if path.is_empty() || path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(Failure::new(
                Code::BadInput,
                "the path is empty, too long or contains a NUL byte",
            ));
        }
        let path = Path::new(path);
        let full = match &self.base {
            Some(base) => base.join(path),
            None if path.is_absolute() => path.to_owned(),
            None => return Err(self.forbidden(path)),
        };
        match real_path(&full) {
            Some((path, exists)) if self.within.allows(&path) => Ok(AllowedPath { path, exists }),
            _ => Err(self.forbidden(path)),
        }
    }

    /// Resolves a path argument that must exist.
    pub(crate) fn existing(&self, path: &str) -> Result<PathBuf, Failure> {
        let AllowedPath { path: real, exists } = self.resolve(path)?;
        match exists {
            true => Ok(real),
            false => Err(Failure::new(Code::NotFound, format!("{path} does not exist"))),
        }
    }

    /// Opens a file. What was checked is what is read, even if the path changes later.
    pub(crate) fn file(&self, path: &str) -> Result<OpenFile, Failure> {
        let real = self.existing(path)?;
        let file = self.within.file(&real).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::new(Code::NotFound, format!("{path} does not exist")),
            // The path changed after it was resolved.
            ErrorKind::PermissionDenied if self.within.allows(&real) => {
                Failure::new(Code::BadInput, format!("cannot read {path}: {error}"))
            }
            _ => self.forbidden(Path::new(path)),
        })?;
        OpenFile::opened(real, file)
    }

    fn forbidden(&self, path: &Path) -> Failure {
        let folders: Vec<String> = self.folders.iter().map(|it| it.display().to_string()).collect();
        let message =
            format!("{} is outside the folders that this server may read", path.display());
        Failure::new(Code::ForbiddenPath, message)
            .with_hint(Hint::UseAllowedFolder { folders: folders.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_outside() {
        let place = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(place.path()).unwrap();
        let folder = |name: &str| {
            let folder = place.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (project, more, outside) = (folder("project"), folder("more"), folder("outside"));
        folder("project/src");
        let store = folder("project/.isolith");
        for file in ["project/src/main.rs", "more/a.json", "outside/secret", "project/.isolith/t"] {
            std::fs::write(place.join(file), "text").unwrap();
        }
        symlink(&outside, project.join("link")).unwrap();
        symlink(place.join("outside/secret"), project.join("secret")).unwrap();
        symlink(place.join("outside/nothing"), project.join("dangling")).unwrap();
        symlink(project.join("src"), place.join("outside/back")).unwrap();
        let confinement = Confinement::new(Some(project.clone()), &[more], vec![store]);
        let absolute = |path: &str| place.join(path).display().to_string();
        let table = [
            ("src/main.rs".to_owned(), Ok("project/src/main.rs")),
            ("./src/../src/main.rs".to_owned(), Ok("project/src/main.rs")),
            (".".to_owned(), Ok("project")),
            (absolute("project/src"), Ok("project/src")),
            (absolute("more/a.json"), Ok("more/a.json")),
            (absolute("outside/back/main.rs"), Ok("project/src/main.rs")),
            ("src/nothing.rs".to_owned(), Err(Code::NotFound)),
            ("no/such/folder".to_owned(), Err(Code::NotFound)),
            ("..".to_owned(), Err(Code::ForbiddenPath)),
            ("../outside/secret".to_owned(), Err(Code::ForbiddenPath)),
            ("../outside/nothing".to_owned(), Err(Code::ForbiddenPath)),
            ("src/../../outside/secret".to_owned(), Err(Code::ForbiddenPath)),
            ("link/secret".to_owned(), Err(Code::ForbiddenPath)),
            ("link/nothing".to_owned(), Err(Code::ForbiddenPath)),
            ("secret".to_owned(), Err(Code::ForbiddenPath)),
            ("dangling".to_owned(), Err(Code::ForbiddenPath)),
            (".isolith/t".to_owned(), Err(Code::ForbiddenPath)),
            (absolute("outside/secret"), Err(Code::ForbiddenPath)),
            (absolute("project2"), Err(Code::ForbiddenPath)),
            ("/etc/passwd".to_owned(), Err(Code::ForbiddenPath)),
            (String::new(), Err(Code::BadInput)),
            ("a\0b".to_owned(), Err(Code::BadInput)),
            ("x".repeat(5_000), Err(Code::BadInput)),
        ];
        for (path, expected) in table {
            let found = confinement.existing(&path);
            let found = found.map_err(|failure| failure.code);
            assert_eq!(found, expected.map(|path| place.join(path)), "{path:.60}");
        }
    }

    #[test]
    fn without_a_project_no_path_is_allowed() {
        let nowhere = Confinement::default();
        for path in ["a", "/etc/passwd", ".."] {
            assert_eq!(nowhere.resolve(path).unwrap_err().code, Code::ForbiddenPath, "{path}");
        }
    }
}
