//! How a front deals with an action before it sends it.

use super::request::{Action, Which};
use crate::memory::WhichDrawers;
use crate::state::{CODE_COLLECTION, MEMORY_COLLECTION};

/// A passage has about so many bytes, and its vector as many.
const PASSAGE_BYTES: usize = 1_000;

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
            Self::AddRoot { .. } => "add_root",
            Self::PutFiles { .. } => "put_files",
            Self::TouchFiles { .. } => "touch_files",
            Self::MoveFile { .. } => "move_file",
            Self::RemoveFiles { .. } => "remove_files",
            Self::ClearFiles { .. } => "clear_files",
            Self::SetCodeModel { .. } => "set_code_model",
            Self::RemoveRoot { .. } => "remove_root",
            Self::FinishIndex { .. } => "finish_index",
            Self::LinkFiles { .. } => "link_files",
            Self::GitFacts { .. } => "git_facts",
            Self::AddDrawers { .. } => "add_drawers",
            Self::UpdateDrawer { .. } => "update_drawer",
            Self::DeleteDrawers { .. } => "delete_drawers",
            Self::Facts(write) => write.name(),
            Self::Cypher(_) => "cypher",
            Self::ImportGraph(_) => "import_graph",
            Self::Swap(_) => "swap",
            Self::QuarantineSegments { .. } => "quarantine_segments",
            Self::SwapGraph(_) => "swap_graph",
            Self::QuarantineGraph { .. } => "quarantine_graph",
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
            Self::PutFiles { .. }
            | Self::MoveFile { .. }
            | Self::RemoveFiles { .. }
            | Self::ClearFiles { .. } => Some(CODE_COLLECTION),
            Self::AddDrawers { .. } | Self::UpdateDrawer { .. } | Self::DeleteDrawers { .. } => {
                Some(MEMORY_COLLECTION)
            }
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
            Self::PutFiles { files, dimension, vectors, .. } => {
                (vectors.len() / (*dimension as usize * 4).max(4), files.len() + vectors.len())
            }
            Self::MoveFile { dimension, vectors, .. } => {
                (vectors.len() / (*dimension as usize * 4).max(4), vectors.len())
            }
            Self::TouchFiles { files, .. } => {
                (files.len(), files.iter().map(|file| file.0.len() + 16).sum())
            }
            Self::RemoveFiles { paths, .. } => (paths.len(), paths.iter().map(String::len).sum()),
            Self::GitFacts { facts, .. } => {
                (facts.len(), facts.iter().map(|fact| fact.0.len() + 32).sum())
            }
            Self::AddDrawers { drawers, .. } => {
                let texts = drawers.iter().map(|drawer| drawer.text.len()).sum::<usize>();
                (drawers.len() + texts / PASSAGE_BYTES, texts * 2)
            }
            Self::UpdateDrawer { patch, .. } => {
                let text = patch.text.as_ref().map_or(0, String::len);
                (1 + text / PASSAGE_BYTES, text * 2)
            }
            Self::DeleteDrawers { which: WhichDrawers::Ids(ids) } => {
                (ids.len(), ids.iter().map(String::len).sum())
            }
            // A fact and two entities, with names as they usually are.
            Self::Facts(_) => (3, 1_000),
            _ => (1, 0),
        }
    }

    /// Whether it must not share a transaction: it may hold the lock for long, or is a
    /// step of something long.
    pub fn goes_alone(&self) -> bool {
        match self {
            Self::Put { load, .. } => load.is_some(),
            Self::Delete { which, .. } => matches!(which, Which::Matching(_)),
            Self::DeleteDrawers { which } => matches!(which, WhichDrawers::Matching(_)),
            Self::Cypher(_)
            | Self::ImportGraph(_)
            | Self::LinkFiles { .. }
            | Self::PutFiles { .. }
            | Self::TouchFiles { .. }
            | Self::MoveFile { .. }
            | Self::RemoveFiles { .. }
            | Self::ClearFiles { .. }
            | Self::SetCodeModel { .. }
            | Self::GitFacts { .. } => true,
            Self::Swap(_) | Self::Purge { .. } | Self::Tidy | Self::Recount => true,
            _ => false,
        }
    }
}
