//! Agent memory: drawers.

use isolith_types::{AddedDrawer, AddedFact, DrawerPatch, NewDrawer, NewFact};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};
use crate::memory::{DrawerVectors, WhichDrawers};

/// The estimated size of a passage, and of its vector.
const PASSAGE_BYTES: usize = 1_000;

/// Adds drawers. Texts that are already stored stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddDrawers {
    /// The texts with their metadata.
    pub drawers: Vec<NewDrawer>,
    /// Whether to reject only invalid drawers; otherwise one invalid drawer fails the write.
    pub skip_bad: bool,
    /// Their vectors.
    #[serde(skip)]
    pub vectors: DrawerVectors,
}

/// The reply to [`AddDrawers`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DrawersAdded {
    /// New drawers.
    pub inserted: u64,
    /// Drawers that were already stored.
    pub unchanged: u64,
    /// The result for each drawer that was not rejected.
    pub drawers: Vec<AddedDrawer>,
    /// The indexes, in the request, of drawers that were already stored.
    pub known: Vec<u32>,
    /// Rejected drawers, with the reason.
    pub rejected: Vec<(u64, String)>,
    /// The number of rejected drawers.
    pub rejected_count: u64,
}

/// Adds what a session leaves behind, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SaveCheckpoint {
    /// Texts, and perhaps a diary entry.
    pub drawers: Vec<NewDrawer>,
    /// Facts.
    pub facts: Vec<NewFact>,
    /// The vectors of the drawers.
    #[serde(skip)]
    pub vectors: DrawerVectors,
}

/// The reply to [`SaveCheckpoint`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointSaved {
    /// The drawers.
    pub drawers: DrawersAdded,
    /// The facts, in the order of the request.
    pub facts: Vec<AddedFact>,
}

/// Changes a drawer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateDrawer {
    /// Its id.
    pub id: String,
    /// What changes.
    pub patch: Box<DrawerPatch>,
    /// The vectors of the new text, if it changes.
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

/// Deletes drawers. By filter, a batch at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteDrawers {
    /// The drawers to delete.
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
    /// Whether matching drawers remain.
    pub more: bool,
}

impl Handled for AddDrawers {
    fn handling(&self) -> Handling<'_> {
        let texts = self.drawers.iter().map(|drawer| drawer.text.len()).sum::<usize>();
        Handling::of_memory().sized(self.drawers.len() + texts / PASSAGE_BYTES, texts * 2)
    }
}

impl Handled for SaveCheckpoint {
    fn handling(&self) -> Handling<'_> {
        let texts = self.drawers.iter().map(|drawer| drawer.text.len()).sum::<usize>();
        // A fact has two entities.
        let rows = self.drawers.len() + texts / PASSAGE_BYTES + self.facts.len() * 3;
        Handling::of_memory().sized(rows, texts * 2 + self.facts.len() * PASSAGE_BYTES)
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
