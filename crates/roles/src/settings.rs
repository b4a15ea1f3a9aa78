use std::path::PathBuf;

use isolate::{Files, Sandbox};
use isolith_store::Durability;
use serde::{Deserialize, Serialize};

/// What every worker of a store is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSettings {
    /// The store's folder.
    pub folder: PathBuf,
    /// How durable a commit is.
    pub durability: Durability,
    /// Whether a store is made where there is none.
    pub create: bool,
}

/// Store workers reach the folder by its name, as it may be replaced while they
/// live; a list of files fixed at their start would lock them out. They need no
/// sockets.
pub(crate) fn store_sandbox() -> Sandbox {
    Sandbox { files: Files::All, sockets: false }
}
