//! Roots: which folders a store knows, and where a path lies among them.

use std::path::{Component, Path, PathBuf};

use isolith_folder::Folder;
use isolith_protocol::{ListRoots, RootState};
use isolith_types::{Code, Failure, Hint};
use serde::Serialize;

use crate::open::Engine;

/// A folder whose code is in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Root {
    /// Its number in the truth.
    pub id: u64,
    /// Where it is.
    pub folder: PathBuf,
    /// When a run over all of it last came to its end: milliseconds since 1970.
    pub indexed_at: Option<i64>,
    /// Files in the index.
    pub files: u64,
    /// Chunks in the index.
    pub chunks: u64,
}

impl Engine {
    /// The folders whose code is in the store, and that this engine may answer for.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn roots(&self) -> Result<Vec<Root>, Failure> {
        let roots = self.ask(ListRoots).await?.into_iter().map(|state| self.root(state));
        Ok(roots.filter(|root| self.allows_root(&root.folder)).collect())
    }

    fn root(&self, state: RootState) -> Root {
        let RootState { id, path, indexed_at, files, chunks } = state;
        Root { id, folder: self.root_folder(&path), indexed_at, files, chunks }
    }

    /// The root that this path is.
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

    /// The folder of a root, by the path that is stored.
    pub(crate) fn root_folder(&self, path: &str) -> PathBuf {
        plain(&self.home().join(path))
    }

    /// Roots below the folder that the store is in are stored relative to it, so that
    /// both can be moved together.
    fn home(&self) -> PathBuf {
        let store = self.folder();
        // A store that is a link belongs to the folder with the link.
        let home = store.parent().filter(|home| *home != Path::new("")).unwrap_or(Path::new("."));
        std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned())
    }

    pub(crate) fn stored_path(&self, folder: &Path) -> String {
        let relative = folder.strip_prefix(self.home()).ok();
        // The folder itself is stored as ".", which is not an empty name.
        let relative =
            relative.map(|path| if path == Path::new("") { Path::new(".") } else { path });
        relative.unwrap_or(folder).to_string_lossy().into_owned()
    }
}

/// Where a path that is to be indexed lies.
#[derive(Debug)]
pub(crate) struct Place {
    root: Option<Root>,
    folder: PathBuf,
    stored: String,
    under: String,
}

impl Place {
    /// Finds the root that `path` lies in, or makes it one.
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

    /// The root's folder, held open: all that is read is found from there.
    pub(crate) fn open(&self, engine: &Engine) -> Result<Folder, Failure> {
        engine.open_root(&self.folder).map_err(|error| {
            let message = format!("{} cannot be opened: {error}", self.folder.display());
            match error.kind() {
                std::io::ErrorKind::PermissionDenied if !engine.allows_root(&self.folder) => {
                    let message = format!(
                        "{} is outside of what this server may read",
                        self.folder.display()
                    );
                    Failure::new(Code::ForbiddenPath, message).with_hint(Hint::AllowFolder)
                }
                std::io::ErrorKind::PermissionDenied => Failure::new(Code::BadInput, message),
                _ => Failure::new(Code::NotFound, message).with_hint(Hint::RemoveIndex),
            }
        })
    }

    /// The root, if the store knows it.
    pub(crate) fn known(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// The root's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The root's folder, as it is stored.
    pub(crate) fn stored(&self) -> String {
        self.stored.clone()
    }

    /// The part of the root that is meant; empty for all of it.
    pub(crate) fn under(&self) -> &str {
        &self.under
    }

    /// Whether the root is known, and this folder.
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

/// The real path of what is there.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("{} cannot be opened: {error}", path.display());
        Failure::new(Code::NotFound, message).with_hint(Hint::RemoveIndex)
    })
}

/// The path without steps that lead nowhere. Its folder need not exist.
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
