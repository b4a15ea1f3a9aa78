//! The roots of a store, and how paths relate to them.

use std::path::{Component, Path, PathBuf};

use isolith_folder::Folder;
use isolith_protocol::{ListRoots, RootState};
use isolith_types::{Code, Failure, Hint};
use serde::Serialize;

use crate::open::Engine;

/// An indexed folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// Its number in the database.
    pub id: u64,
    /// Its absolute path.
    pub folder: PathBuf,
    /// When a run over the whole root was last completed, in milliseconds since 1970.
    pub indexed_at: Option<i64>,
    /// Number of indexed files.
    pub files: u64,
    /// Number of chunks.
    pub chunks: u64,
}

impl Engine {
    /// Lists the indexed folders that this engine may read.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn roots(&self) -> Result<Vec<Root>, Failure> {
        let roots = self.ask(ListRoots).await?.into_iter().map(|state| self.root(state));
        Ok(roots.filter(|root| self.allows_root(&root.folder)).collect())
    }

    fn root(&self, state: RootState) -> Root {
        let RootState { id, path, indexed_at, files, chunks } = state;
        Root { id, folder: self.root_folder(&path), indexed_at, files, chunks }
    }

    /// The root at this path.
    pub(crate) async fn root_at(&self, path: &Path) -> Result<Root, Failure> {
        let real = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let real = plain(&real.unwrap_or_else(|_| path.to_owned()));
        let roots = self.roots().await?;
        if let Some(root) = roots.iter().find(|root| root.folder == real) {
            return Ok(root.clone());
        }
        if let Some(root) = roots.iter().find(|root| real.starts_with(&root.folder)) {
            let (part, whole) = (real.display(), root.folder.display());
            let message = format!("{part} is only a part of {whole}, which has the index");
            return Err(Failure::new(Code::BadInput, message)
                .with_hint("name that folder, or leave the part out with .isolithignore"));
        }
        Err(not_indexed(&real))
    }

    /// The folder of a root, from its stored path.
    pub(crate) fn root_folder(&self, path: &str) -> PathBuf {
        plain(&self.home().join(path))
    }

    /// The path to store for a root. Relative to the folder that contains the store if it is
    /// below it, so that both can be moved together.
    fn home(&self) -> PathBuf {
        let store = self.folder();
        // A store that is a link belongs to the folder that contains the link.
        let home = store.parent().filter(|home| *home != Path::new("")).unwrap_or(Path::new("."));
        std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned())
    }

    pub(crate) fn stored_path(&self, folder: &Path) -> String {
        let relative = folder.strip_prefix(self.home()).ok();
        // The folder itself is stored as ".", because a path must not be empty.
        let relative =
            relative.map(|path| if path == Path::new("") { Path::new(".") } else { path });
        relative.unwrap_or(folder).to_string_lossy().into_owned()
    }
}

/// The root that a path belongs to, and its part of it.
#[derive(Debug)]
pub(crate) struct RootLocation {
    root: Option<Root>,
    folder: PathBuf,
    stored: String,
    under: String,
}

impl RootLocation {
    /// Finds the root that contains `path`, or treats `path` as a new root.
    pub(crate) async fn find(engine: &Engine, path: &Path) -> Result<Self, Failure> {
        let real = existing(path)?;
        let roots = match engine.inner.folder.truth().exists() {
            true => engine.roots().await?,
            false => Vec::new(),
        };
        if let Some(root) = roots.iter().find(|root| real.starts_with(&root.folder)) {
            let under = real.strip_prefix(&root.folder).unwrap_or(Path::new(""));
            let under = under.to_str().ok_or_else(|| no_unicode(&real))?.to_owned();
            let (folder, stored) = (root.folder.clone(), engine.stored_path(&root.folder));
            return Ok(Self { root: Some(root.clone()), folder, stored, under });
        }
        if let Some(inner) = roots.iter().find(|root| root.folder.starts_with(&real)) {
            let folder = inner.folder.display().to_string();
            let message = format!("{} contains {folder}, which has an index", real.display());
            return Err(
                Failure::new(Code::BadInput, message).with_hint(Hint::RemoveInnerIndex { folder })
            );
        }
        if !real.is_dir() {
            let message =
                format!("{} is a file outside of any folder with an index", real.display());
            return Err(Failure::new(Code::BadInput, message).with_hint("index its folder"));
        }
        if real.to_str().is_none() {
            return Err(no_unicode(&real));
        }
        let stored = engine.stored_path(&real);
        Ok(Self { root: None, folder: real, stored, under: String::new() })
    }

    /// Opens the root's folder; everything is read through it.
    pub(crate) fn open(&self, engine: &Engine) -> Result<Folder, Failure> {
        engine.open_root(&self.folder).map_err(|error| {
            let message = format!("{} cannot be opened: {error}", self.folder.display());
            match error.kind() {
                std::io::ErrorKind::PermissionDenied if !engine.allows_root(&self.folder) => {
                    let message = format!(
                        "{} is outside of the folders that this server may read",
                        self.folder.display()
                    );
                    Failure::new(Code::ForbiddenPath, message).with_hint(Hint::AllowFolder)
                }
                std::io::ErrorKind::PermissionDenied => Failure::new(Code::BadInput, message),
                _ => Failure::new(Code::NotFound, message).with_hint(Hint::RemoveIndex),
            }
        })
    }

    /// The root, if it is in the store.
    pub(crate) fn known(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// The root's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The root's path as stored.
    pub(crate) fn stored(&self) -> String {
        self.stored.clone()
    }

    /// The part of the root to index; empty for the whole root.
    pub(crate) fn under(&self) -> &str {
        &self.under
    }

    /// Whether the root is in the store and has this folder.
    pub(crate) fn is_known_as(&self, folder: &Path) -> bool {
        self.root.is_some() && self.folder == folder
    }

    pub(crate) fn not_indexed(&self) -> Failure {
        not_indexed(&self.folder)
    }
}

fn not_indexed(folder: &Path) -> Failure {
    Failure::new(Code::NotFound, format!("{} has no index", folder.display()))
        .with_hint(Hint::ListIndexes)
}

/// The path without links; it must exist.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("{} cannot be opened: {error}", path.display());
        Failure::new(Code::NotFound, message).with_hint(Hint::RemoveIndex)
    })
}

/// The path without `.` and `..`. It need not exist.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn no_unicode(path: &Path) -> Failure {
    Failure::new(Code::BadInput, format!("{} is not valid Unicode", path.display()))
        .with_hint("give the folder another name")
}
