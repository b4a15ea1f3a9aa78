//! Where a path to be indexed belongs: to a root of the store, or it becomes one.

use std::path::{Path, PathBuf};

use isolith_folder::Folder;
use isolith_folder::git::{Worktree, repository_between, shared_git_folder};
use isolith_types::{Code, Failure, Hint};

use super::IndexOptions;
use super::listing::reaches;
use super::roots::{Root, not_indexed, root_around};
use crate::open::Engine;
use crate::within::is_in_store;

/// The root that a path belongs to, and its part of it.
#[derive(Debug)]
pub(crate) struct RootLocation {
    root: Option<Root>,
    /// The other roots of the store.
    others: Vec<Root>,
    folder: PathBuf,
    stored: String,
    under: String,
}

impl Engine {
    /// Finds the root to index. A folder that the rules of the root around it hide becomes a
    /// root of its own, because the user has named it.
    ///
    /// # Errors
    /// `not_found` or `bad_input` for the path; any error of a read.
    pub(crate) async fn place_to_index(
        &self,
        options: &IndexOptions,
    ) -> Result<RootLocation, Failure> {
        if let Some(root) = &options.of_root {
            return RootLocation::within(self, &options.path, root).await;
        }
        let place = RootLocation::find(self, &options.path).await?;
        if place.under.is_empty() || reaches(self, &place).await? {
            return Ok(place);
        }
        let real = place.folder.join(&place.under);
        if real.is_dir() {
            return place.turned_into_root(self, real);
        }
        let (file, root) = (real.display(), place.folder.display());
        let message = format!("{file} is hidden or ignored in {root}");
        Err(Failure::new(Code::BadInput, message)
            .with_hint("index its folder, or change the rules that ignore it"))
    }
}

impl RootLocation {
    /// Finds the root that contains `path`, or treats `path` as a new root.
    pub(crate) async fn find(engine: &Engine, path: &Path) -> Result<Self, Failure> {
        let real = existing(path)?;
        let roots = match engine.inner.folder.truth().exists() {
            true => engine.roots().await?,
            false => Vec::new(),
        };
        let around = root_around(&roots, &real).cloned();
        if let Some(root) = around.filter(|it| repository_between(&it.folder, &real).is_none()) {
            return Self::part(engine, root, roots, &real);
        }
        let is_part = |it: &&Root| {
            it.folder.starts_with(&real)
                && is_visible(&real, &it.folder)
                && repository_between(&real, &it.folder).is_none()
        };
        if let Some(inner) = roots.iter().find(is_part) {
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
        Self::new_root(engine, real, roots)
    }

    /// The part of a known root that a path is.
    async fn within(engine: &Engine, path: &Path, root: &Path) -> Result<Self, Failure> {
        let real = existing(path)?;
        let roots = engine.roots().await?;
        match roots.iter().find(|it| it.folder == root && real.starts_with(root)).cloned() {
            Some(root) => Self::part(engine, root, roots, &real),
            None => Err(not_indexed(root)),
        }
    }

    fn part(
        engine: &Engine,
        root: Root,
        mut others: Vec<Root>,
        real: &Path,
    ) -> Result<Self, Failure> {
        others.retain(|it| it.id != root.id);
        let under = real.strip_prefix(&root.folder).unwrap_or(Path::new(""));
        let under = under.to_str().ok_or_else(|| no_unicode(real))?.to_owned();
        let (folder, stored) = (root.folder.clone(), engine.stored_path(&root.folder));
        Ok(Self { root: Some(root), others, folder, stored, under })
    }

    fn new_root(engine: &Engine, real: PathBuf, others: Vec<Root>) -> Result<Self, Failure> {
        if real.to_str().is_none() {
            return Err(no_unicode(&real));
        }
        let stored = engine.stored_path(&real);
        Ok(Self { root: None, others, folder: real, stored, under: String::new() })
    }

    fn turned_into_root(self, engine: &Engine, real: PathBuf) -> Result<Self, Failure> {
        if is_in_store(&real) {
            let message = format!("{} belongs to a store of Isolith", real.display());
            return Err(Failure::new(Code::ForbiddenPath, message)
                .with_hint("name the folder of the source code"));
        }
        let others = self.others.into_iter().chain(self.root).collect();
        Self::new_root(engine, real, others)
    }

    /// Opens the root's folder; everything is read through it.
    pub(crate) fn open(&self, engine: &Engine) -> Result<Folder, Failure> {
        engine.open_root(&self.folder).map_err(|error| {
            let message = format!("{} cannot be opened: {error}", self.folder.display());
            match error.kind() {
                std::io::ErrorKind::PermissionDenied if !engine.allows_folder(&self.folder) => {
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

    /// The folder that git keeps for the root, as stored, if it is a linked worktree.
    pub(crate) fn worktree(&self, engine: &Engine) -> Option<String> {
        let worktree = Worktree::of(&self.folder)?;
        Some(engine.stored_path(worktree.entry()))
    }

    /// Other roots of the same repository, which may have the same files: the main checkout
    /// first.
    pub(crate) fn siblings(&self) -> Vec<u64> {
        let Some(shared) = shared_git_folder(&self.folder) else { return Vec::new() };
        let has_files = self.others.iter().filter(|it| it.files > 0);
        let mut siblings: Vec<&Root> =
            has_files.filter(|it| it.shared_git_folder().as_ref() == Some(&shared)).collect();
        siblings.sort_by_key(|it| it.worktree.is_some());
        siblings.into_iter().map(|it| it.id).collect()
    }

    /// The roots within this one, relative to it.
    pub(crate) fn inner_roots(&self) -> impl Iterator<Item = String> + '_ {
        let inner = self.others.iter().filter_map(|it| it.folder.strip_prefix(&self.folder).ok());
        inner.filter_map(|path| path.to_str().map(str::to_owned))
    }

    pub(crate) fn not_indexed(&self) -> Failure {
        not_indexed(&self.folder)
    }
}

/// Whether no folder on the way to a path is hidden.
fn is_visible(folder: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(folder).unwrap_or(path);
    !below.components().any(|it| it.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// The path without links; it must exist.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("{} cannot be opened: {error}", path.display());
        Failure::new(Code::NotFound, message).with_hint(Hint::RemoveIndex)
    })
}

fn no_unicode(path: &Path) -> Failure {
    Failure::new(Code::BadInput, format!("{} is not valid Unicode", path.display()))
        .with_hint("give the folder another name")
}
