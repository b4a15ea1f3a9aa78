//! Reading agent memory.

use isolith_search::{MemoryWeights, Mode};
use isolith_types::{Drawer, DrawerFilter, DrawerHit, DrawerPage, SimilarDrawer};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};

/// Gets drawers by their ids, in the same order; none where an id does not exist.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetDrawers {
    /// The ids.
    pub ids: Vec<String>,
}

/// Lists drawers that a filter allows, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListDrawers {
    /// Which.
    pub filter: DrawerFilter,
    /// In what order, where and how many.
    pub page: DrawerPage,
}

/// The reply to [`ListDrawers`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DrawerList {
    /// The drawers of the page; fewer than it may have if they are large.
    pub drawers: Vec<Drawer>,
    /// How many the filter allows.
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
    /// What ranks.
    pub mode: Mode,
    /// How many hits.
    pub limit: u32,
    /// Which drawers.
    pub filter: DrawerFilter,
    /// What signals are worth.
    pub weights: MemoryWeights,
}

/// Drawers that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryFound {
    /// The best first.
    pub hits: Vec<DrawerHit>,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// What it was found with.
    pub searched: Searched,
}

/// Drawers that are like a text, and what they were found with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimilarFound {
    /// The most similar first.
    pub drawers: Vec<SimilarDrawer>,
    /// What the search went through.
    pub searched: Searched,
}

/// Finds drawers that are nearly the same as a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindSimilarDrawers {
    /// The text they are to be like.
    pub text: String,
    /// Only these.
    pub filter: DrawerFilter,
    /// The least similarity.
    pub threshold: f32,
    /// How many.
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
