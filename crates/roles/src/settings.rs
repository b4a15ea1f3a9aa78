use std::path::PathBuf;

use isolate::{Context, Sandbox};
use isolith_protocol::StoreError;
use isolith_store::{Durability, StoreFolder, TruthId};
use serde::{Deserialize, Serialize};

/// The settings of all workers of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {
    /// The store's folder. The path must not contain symbolic links.
    pub folder: PathBuf,
    /// The identity that the database must have.
    pub truth: TruthId,
    /// The durability of commits.
    pub durability: Durability,
    /// Whether to create the store if it does not exist.
    pub create: bool,
}

impl StoreSettings {
    pub(crate) fn folder(&self) -> StoreFolder {
        StoreFolder::new(&self.folder).with_truth(self.truth.clone())
    }
}

/// System files that SQLite needs for randomness, and that show who holds a lock.
const SYSTEM_FILES: [&str; 2] = ["/dev/urandom", "/proc/locks"];

/// Allows access to the store's folder, [`SYSTEM_FILES`] and the files in `read`. The rules apply
/// to the folder that exists when the worker starts: see [`pass_on_if_replaced`].
pub(crate) fn store_sandbox(settings: &StoreSettings, read: &[&str]) -> Sandbox {
    let read = SYSTEM_FILES.iter().chain(read).map(PathBuf::from);
    // The front creates the folder of a sealed store, together with its seal.
    let create = settings.create && settings.truth == TruthId::Any;
    Sandbox::folder(settings.folder.clone(), create, read)
}

/// Returns the job for another worker if the store's folder was replaced, because this worker's
/// sandbox rules are for the old folder. Returns whether it did.
pub(crate) fn pass_on_if_replaced(context: &Context<'_>) -> bool {
    let replaced = context.folder_replaced();
    if replaced {
        context.pass_on();
    }
    replaced
}

/// The reply to a job that was passed on. It is discarded.
pub(crate) fn replaced_error(settings: &StoreSettings) -> StoreError {
    StoreError::Replaced { path: StoreFolder::new(&settings.folder).truth() }
}
