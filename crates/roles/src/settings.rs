use std::path::PathBuf;

use isolate::{Files, Sandbox};
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

/// Store workers reach the folder by its name, as it may be replaced while they
/// live; a list of files fixed at their start would lock them out. They need no
/// sockets.
pub(crate) fn store_sandbox() -> Sandbox {
    Sandbox { files: Files::All, sockets: false }
}
