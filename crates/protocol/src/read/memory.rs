//! Reading agent memory.

use isolith_search::{MemoryFit, MemoryWeights, SearchMode};
use isolith_types::{Drawer, DrawerFilter, DrawerHit, DrawerPage, SimilarDrawer};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};

/// Gets drawers by id, in the same order; `None` for unknown ids.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetDrawers {
    /// The ids.
    pub ids: Vec<String>,
}

/// Lists drawers that match a filter, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListDrawers {
    /// Which drawers.
    pub filter: DrawerFilter,
    /// The order, and the part of the list.
    pub page: DrawerPage,
}

/// The reply to [`ListDrawers`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrawerList {
    /// The drawers of the page; fewer than the limit if they are large.
    pub drawers: Vec<Drawer>,
    /// The number of drawers that match.
    pub total: u64,
}

/// Lists wings and rooms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListRooms;

/// Finds the drawers that answer a question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchMemory {
    /// A question, or words.
    pub text: String,
    /// The search mode.
    pub mode: SearchMode,
    /// The maximum number of hits.
    pub limit: u32,
    /// Which drawers.
    pub filter: DrawerFilter,
    /// The ranking weights.
    pub weights: MemoryWeights,
}

/// The reply to [`SearchMemory`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryFound {
    /// The hits, best first.
    pub hits: Vec<DrawerHit>,
    /// How well the best drawers fit.
    pub fit: MemoryFit,
    /// Whether nothing fits the query well.
    pub weak: bool,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// Which segments the search used.
    pub searched: Searched,
}

/// The reply to [`FindSimilarDrawers`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimilarFound {
    /// The drawers, most similar first.
    pub drawers: Vec<SimilarDrawer>,
    /// Which segments the search used.
    pub searched: Searched,
}

/// Finds drawers that are nearly the same as a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindSimilarDrawers {
    /// The text to compare with.
    pub text: String,
    /// Which drawers to compare.
    pub filter: DrawerFilter,
    /// The minimum similarity.
    pub threshold: f32,
    /// The maximum number of drawers.
    pub limit: u32,
}

impl SearchReply for MemoryFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}

impl SearchReply for SimilarFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}
