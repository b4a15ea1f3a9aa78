//! Decides which stores may be opened: those that this user created on this machine.
//!
//! A store that came with a clone or an archive is untrusted: its content may be malicious, and its
//! folder may contain links. So before a worker opens a store, the front checks its seal, git's
//! index and the files in the folder.

mod git_index;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isolith_protocol::StoreError;
use isolith_store::{StoreFolder, TruthId, new_uuid};
use isolith_types::{Code, Failure, Hint};

use crate::location::PROJECT_FOLDER;
use crate::open::{create_folder, no_store};
use crate::seal::{self, Seal};
use crate::secret::Secret;

/// The location of a store, and what proves that it may be opened.
#[derive(Debug, Clone)]
pub struct StorePlace {
    path: PathBuf,
    trust: Trust,
}

#[derive(Debug, Clone)]
enum Trust {
    /// A seal made with the secret in this file.
    Sealed(PathBuf),
    /// The user's own store, outside of every project: it is sealed if it has no seal.
    Own(PathBuf),
    /// No proof is required.
    Unchecked,
    /// No proof is required, and the database is expected to have this uuid.
    Examined(String),
}

/// What to do if there is no store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

impl StorePlace {
    /// A store that needs a seal made with the secret in `secret`.
    pub(crate) fn sealed(path: PathBuf, secret: PathBuf) -> Self {
        Self { path, trust: Trust::Sealed(secret) }
    }

    /// The user's own store.
    pub(crate) fn own(path: PathBuf, secret: PathBuf) -> Self {
        Self { path, trust: Trust::Own(secret) }
    }

    /// A store that is opened whoever created it: for tests, benchmarks, and examining a store
    /// that is not trusted yet.
    pub fn unchecked(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), trust: Trust::Unchecked }
    }

    /// The store's folder, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same location without the need for a seal, to examine the store before it is trusted.
    /// The folder must neither be nor contain a link, and git must not track it.
    pub(crate) fn unsealed(&self) -> Result<Self, Failure> {
        let path = self.real_path()?.ok_or_else(|| no_store(&self.path))?;
        refuse_tracked(&path)?;
        StoreFolder::new(&path).check().map_err(|error| error.to_failure())?;
        Ok(Self { path, trust: Trust::Examined(new_uuid()) })
    }

    /// Checks that the store may be opened. Creates nothing.
    pub fn is_trusted(&self) -> bool {
        let (Trust::Sealed(file) | Trust::Own(file)) = &self.trust else { return true };
        let (Ok(Some(path)), Ok(Some(secret))) = (self.real_path(), Secret::load(file)) else {
            return false;
        };
        let seal = StoreFolder::new(path).open().map(|folder| seal::read(&folder, &secret));
        matches!(seal, Ok(Ok(Seal::Valid(_))))
    }

    /// Whether a store here needs a seal of this user.
    pub(crate) fn needs_seal(&self) -> bool {
        matches!(self.trust, Trust::Sealed(_) | Trust::Own(_))
    }

    /// Refuses to move aside what could not be rebuilt: the user's own store, and folders with
    /// other files.
    pub(crate) fn refuse_to_move(&self) -> Result<(), Failure> {
        let refuse = |message: String| {
            Err(Failure::new(Code::BadInput, message).with_hint(Hint::NameStore {
                advice: "move the folder yourself, or name another one".to_owned(),
            }))
        };
        let shown = self.path.display();
        if self.is_own() {
            return refuse(format!("{shown} is your own store: it contains more than an index"));
        }
        let is_project = self.path.file_name().is_some_and(|name| name == PROJECT_FOLDER);
        let only_parts = self
            .real_path()?
            .is_none_or(|path| StoreFolder::new(path).holds_only_parts().unwrap_or(false));
        match is_project || only_parts {
            true => Ok(()),
            false => refuse(format!("{shown} contains more than a store")),
        }
    }

    /// Refuses the store if git tracks it or anything in it.
    pub(crate) fn refuse_tracked(&self) -> Result<(), Failure> {
        let parent = self.path.parent().and_then(|parent| fs::canonicalize(parent).ok());
        match (parent, self.path.file_name()) {
            (Some(parent), Some(name)) => refuse_tracked(&parent.join(name)),
            _ => Ok(()),
        }
    }

    /// The folder, if it may be used, with the uuid of the database that may be opened in it.
    pub(crate) fn admit(&self, missing: IfMissing) -> Result<StoreFolder, Failure> {
        let Some(path) = self.real_path()? else {
            return match missing {
                IfMissing::Refuse => Err(no_store(&self.path)),
                IfMissing::Create => {
                    create_folder(&self.path)?;
                    self.admit(IfMissing::Create)
                }
            };
        };
        let folder = StoreFolder::new(path);
        if self.needs_seal() {
            refuse_tracked(folder.path())?;
        }
        folder.check().map_err(|error| self.refused(&error))?;
        if missing == IfMissing::Refuse && !folder.holds_store() {
            return Err(no_store(&self.path));
        }
        let id = self.truth_id(&folder)?;
        Ok(folder.with_truth(id))
    }

    /// Seals the store for a database with a new identity, replacing any seal.
    ///
    /// # Errors
    /// If the secret or the folder cannot be used.
    pub(crate) fn seal_anew(&self, uuid: &str) -> Result<(), Failure> {
        let (Trust::Sealed(file) | Trust::Own(file)) = &self.trust else { return Ok(()) };
        let secret = Secret::load_or_create(file)?;
        let path = self.real_path()?.ok_or_else(|| no_store(&self.path))?;
        let folder = StoreFolder::new(path).open().map_err(|error| error.to_failure())?;
        seal::replace(&folder, &secret, uuid).map_err(|error| unsealed(folder.path(), &error))
    }

    fn truth_id(&self, folder: &StoreFolder) -> Result<TruthId, Failure> {
        let secret = match &self.trust {
            Trust::Sealed(file) | Trust::Own(file) => Secret::load_or_create(file)?,
            Trust::Unchecked => return Ok(TruthId::Any),
            Trust::Examined(uuid) => return Ok(TruthId::Becomes(uuid.clone())),
        };
        let handle = folder.open().map_err(|error| error.to_failure())?;
        let failed = |error: io::Error| foreign(folder.path(), &format!("its seal: {error}"));
        match seal::read(&handle, &secret).map_err(failed)? {
            Seal::Valid(uuid) if self.is_own() => Ok(TruthId::Becomes(uuid)),
            Seal::Valid(uuid) => Ok(TruthId::Only(uuid)),
            Seal::Missing | Seal::Invalid => {
                let empty = !folder.holds_parts().map_err(failed)?;
                if !(empty || self.is_own()) {
                    // Another process that creates the store writes the seal first.
                    return match seal::read(&handle, &secret).map_err(failed)? {
                        Seal::Valid(uuid) => Ok(TruthId::Only(uuid)),
                        _ => Err(foreign(folder.path(), "it has no seal of yours")),
                    };
                }
                self.seal_now(folder, &secret, empty)
            }
        }
    }

    /// Seals a store that is about to be created, or the user's own.
    fn seal_now(
        &self,
        folder: &StoreFolder,
        secret: &Secret,
        empty: bool,
    ) -> Result<TruthId, Failure> {
        let handle = folder.open().map_err(|error| error.to_failure())?;
        let sealed = match empty {
            true => seal::create(&handle, secret, &new_uuid()),
            false => seal::replace(&handle, secret, &new_uuid()),
        };
        match sealed.and_then(|()| seal::read(&handle, secret)) {
            Ok(Seal::Valid(uuid)) if self.is_own() => Ok(TruthId::Becomes(uuid)),
            Ok(Seal::Valid(uuid)) => Ok(TruthId::Only(uuid)),
            // A process of another user was faster.
            Ok(_) => Err(foreign(folder.path(), "it has no seal of yours")),
            // The user's own store may be read-only.
            Err(error) if self.is_own() && is_unwritable(&error) => Ok(TruthId::Any),
            Err(error) => Err(unsealed(folder.path(), &error)),
        }
    }

    /// The path without links; `None` if it does not exist. In a project, the store's folder must
    /// not be a link, which could have come with the project.
    fn real_path(&self) -> Result<Option<PathBuf>, Failure> {
        let name = self.path.file_name().filter(|name| *name == PROJECT_FOLDER);
        let outcome = match (name, self.path.parent()) {
            (Some(name), Some(parent)) if matches!(self.trust, Trust::Sealed(_)) => {
                match fs::symlink_metadata(&self.path) {
                    Ok(found) if found.is_symlink() => {
                        return Err(foreign(&self.path, "it is a symbolic link"));
                    }
                    Ok(_) => fs::canonicalize(parent).map(|parent| parent.join(name)),
                    Err(error) => Err(error),
                }
            }
            _ => fs::canonicalize(&self.path),
        };
        match outcome {
            Ok(path) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let message = format!("cannot read {}: {error}", self.path.display());
                Err(Failure::new(Code::ReadOnly, message)
                    .with_hint("check the permissions of the store's folder"))
            }
        }
    }

    fn is_own(&self) -> bool {
        matches!(self.trust, Trust::Own(_))
    }

    /// Refuses a folder with links: this program does not create any.
    fn refused(&self, error: &StoreError) -> Failure {
        let failure = error.to_failure();
        match (&self.trust, error) {
            (Trust::Sealed(_), StoreError::NotAStore { .. }) => {
                Failure { code: Code::StoreForeign, ..failure }.with_hint(ways_out(&self.path))
            }
            _ => failure,
        }
    }
}

/// The failure for a store without proof that it is this user's.
fn ways_out(store: &Path) -> Hint {
    let is_projects = store.file_name().is_some_and(|name| name == PROJECT_FOLDER);
    let project = store.parent().filter(|_| is_projects);
    Hint::AdoptStore {
        store: store.display().to_string(),
        project: project.map(|project| project.display().to_string()),
    }
}

fn foreign(path: &Path, why: &str) -> Failure {
    let message = format!(
        "the store in {} was not created by this user on this machine: {why}",
        path.display()
    );
    Failure::new(Code::StoreForeign, message).with_hint(ways_out(path))
}

fn unsealed(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot seal the store in {}: {error}", path.display());
    Failure::new(Code::ReadOnly, message).with_hint("choose a folder that you can write to")
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Refuses a store that git tracks even partly: it came with a clone, and the next pull can change
/// it.
fn refuse_tracked(folder: &Path) -> Result<(), Failure> {
    let shown = folder.display();
    match git_index::tracking_repository(folder) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => {
            Err(Failure::new(Code::StoreRefused, format!("git tracks files in the store {shown}"))
                .with_hint(Hint::NameStore {
                    advice: "`git rm -r --cached` them, or name another folder".to_owned(),
                }))
        }
        Err((index, error)) => {
            let message = format!(
                "cannot tell whether git tracks the store {shown}: {}: {error}",
                index.display()
            );
            Err(Failure::new(Code::StoreRefused, message).with_hint(Hint::NameStore {
                advice: "repair the repository, or name another folder".to_owned(),
            }))
        }
    }
}
