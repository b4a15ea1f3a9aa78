use std::path::PathBuf;

use isolate::{Context, Sandbox};
use isolith_protocol::StoreError;
use isolith_store::{Durability, StoreFolder, TruthId};
use serde::{Deserialize, Serialize};

/// What every worker of a store is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {
    /// The store's folder, by a path without links.
    pub folder: PathBuf,
    /// Which truth may be opened in it.
    pub truth: TruthId,
    /// How durable a commit is.
    pub durability: Durability,
    /// Whether a store is made where there is none.
    pub create: bool,
}

impl StoreSettings {
    /// The folder, for the truth that may be opened in it.
    pub(crate) fn folder(&self) -> StoreFolder {
        StoreFolder::new(&self.folder).with_truth(self.truth.clone())
    }
}

/// What SQLite takes chance from, and what says who holds a lock.
const READ_BY_ALL: [&str; 2] = ["/dev/urandom", "/proc/locks"];

/// The store's folder, a few files of the system, and nothing else. The rules are for the
/// folder that is there when the worker starts: see [`must_pass_on`].
pub(crate) fn store_sandbox(settings: &StoreSettings, read: &[&str]) -> Sandbox {
    let read = READ_BY_ALL.iter().chain(read).map(PathBuf::from);
    // The folder of a sealed store is created by the front, with its seal.
    let create = settings.create && settings.truth == TruthId::Any;
    Sandbox::folder(settings.folder.clone(), create, read)
}

/// Passes a job on if this worker's rules are for another folder than the one that is
/// there now. The next worker gets new rules.
pub(crate) fn must_pass_on(context: &Context<'_>) -> bool {
    let replaced = context.folder_replaced();
    if replaced {
        context.pass_on();
    }
    replaced
}

/// What a job returns that was passed on; nobody sees it.
pub(crate) fn passed_on(settings: &StoreSettings) -> StoreError {
    StoreError::Replaced { path: StoreFolder::new(&settings.folder).truth() }
}
