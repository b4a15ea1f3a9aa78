//! Agent memory: drawers.

use isolith_types::{AddedDrawer, DrawerPatch, NewDrawer};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};
use crate::memory::{DrawerVectors, WhichDrawers};

/// A passage has about this many bytes, and its vector as many.
const PASSAGE_BYTES: usize = 1_000;

/// Adds texts to memory. One that is stored already is left alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddDrawers {
    /// The texts, and what there is to say about them.
    pub drawers: Vec<NewDrawer>,
    /// Whether those that cannot be stored are rejected alone, or all with them.
    pub skip_bad: bool,
    /// Their vectors.
    #[serde(skip)]
    pub vectors: DrawerVectors,
}

/// The reply to [`AddDrawers`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DrawersAdded {
    /// Drawers that are new.
    pub inserted: u64,
    /// Drawers that were stored already.
    pub unchanged: u64,
    /// What became of each, without the rejected ones.
    pub drawers: Vec<AddedDrawer>,
    /// The places, in the request, of those that were stored already.
    pub known: Vec<u32>,
    /// Drawers that were left out, with the reason.
    pub rejected: Vec<(u64, String)>,
    /// How many were left out.
    pub rejected_count: u64,
}

/// Changes a drawer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateDrawer {
    /// Its id.
    pub id: String,
    /// What changes.
    pub patch: Box<DrawerPatch>,
    /// The vectors of the new text, if there is one.
    #[serde(skip)]
    pub vectors: DrawerVectors,
}

/// The reply to [`UpdateDrawer`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DrawerUpdated {
    /// 1 if it was changed.
    pub updated: u64,
}

/// Deletes drawers; by filter a slice at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteDrawers {
    /// Which.
    pub which: WhichDrawers,
}

/// The reply to [`DeleteDrawers`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DrawersDeleted {
    /// Drawers that were deleted.
    pub deleted: u64,
    /// Ids that do not exist.
    pub missing: u64,
    /// Whether drawers are left that match.
    pub more: bool,
}

impl Handled for AddDrawers {
    fn handling(&self) -> Handling<'_> {
        let texts = self.drawers.iter().map(|drawer| drawer.text.len()).sum::<usize>();
        Handling::of_memory().sized(self.drawers.len() + texts / PASSAGE_BYTES, texts * 2)
    }
}

impl Handled for UpdateDrawer {
    fn handling(&self) -> Handling<'_> {
        let text = self.patch.text.as_ref().map_or(0, String::len);
        Handling::of_memory().sized(1 + text / PASSAGE_BYTES, text * 2)
    }
}

impl Handled for DeleteDrawers {
    fn handling(&self) -> Handling<'_> {
        let small = Handling::of_memory();
        match &self.which {
            WhichDrawers::Ids(ids) => small.sized(ids.len(), ids.iter().map(String::len).sum()),
            WhichDrawers::Matching(_) => small.alone(),
        }
    }
}
