//! How a front deals with an action before it sends it.

use super::request::{Action, Which};

impl Action {
    /// A short name, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateCollection { .. } => "create_collection",
            Self::DeleteCollection { .. } => "delete_collection",
            Self::RenameCollection { .. } => "rename_collection",
            Self::Put { .. } => "put",
            Self::Update { .. } => "update",
            Self::Delete { .. } => "delete",
            Self::Swap(_) => "swap",
            Self::QuarantineSegments { .. } => "quarantine_segments",
            Self::Purge { .. } => "purge",
            Self::RememberPoison { .. } => "remember_poison",
            Self::ForgetPoison { .. } => "forget_poison",
            Self::Tidy => "tidy",
            Self::Recount => "recount",
        }
    }

    /// The collection whose records it changes.
    pub fn collection(&self) -> Option<&str> {
        match self {
            Self::Put { collection, .. }
            | Self::Update { collection, .. }
            | Self::Delete { collection, .. } => Some(collection),
            _ => None,
        }
    }

    /// Rows and bytes, about; what is sent together has a limit.
    pub fn size(&self) -> (usize, usize) {
        match self {
            Self::Put { records, .. } => {
                let texts = records.documents.iter().flatten().map(String::len).sum::<usize>();
                (records.ids.len(), records.vectors.len() + texts)
            }
            Self::Update { patches, .. } => {
                let size = |patch: &super::Patch| {
                    let text = patch.document.iter().flatten().map(String::len).sum::<usize>();
                    text + patch.vector.as_ref().map_or(0, |vector| vector.len() * 4)
                };
                (patches.len(), patches.iter().map(size).sum())
            }
            Self::Delete { which: Which::Ids(ids), .. } => {
                (ids.len(), ids.iter().map(String::len).sum())
            }
            _ => (1, 0),
        }
    }

    /// Whether it must not share a transaction: it may hold the lock for long, or is a
    /// step of something long.
    pub fn goes_alone(&self) -> bool {
        match self {
            Self::Put { load, .. } => load.is_some(),
            Self::Delete { which, .. } => matches!(which, Which::Matching(_)),
            Self::Swap(_) | Self::Purge { .. } | Self::Tidy | Self::Recount => true,
            _ => false,
        }
    }
}
