//! Stores what a session leaves behind, all of it or nothing.

use isolith_protocol::{DrawerVectors, Key, SaveCheckpoint};
use isolith_types::{AddedDrawer, AddedFact, Code, Failure, NewDrawer, NewFact};

use super::DiaryEntry;
use crate::open::Engine;

/// What a session leaves behind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checkpoint {
    /// Texts to keep.
    pub drawers: Vec<NewDrawer>,
    /// Facts to record.
    pub facts: Vec<NewFact>,
    /// An entry for the agent's diary.
    pub diary: Option<DiaryEntry>,
}

/// What was stored, in the order of the [`Checkpoint`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SavedCheckpoint {
    /// The drawers, without the diary entry.
    pub drawers: Vec<AddedDrawer>,
    /// The facts.
    pub facts: Vec<AddedFact>,
    /// The diary entry.
    pub diary: Option<AddedDrawer>,
}

impl Engine {
    /// Stores drawers, facts and a diary entry in one transaction.
    ///
    /// # Errors
    /// `bad_input` if there is nothing to store, or for an invalid part, which is named; any error
    /// of a write. Nothing is stored then.
    pub async fn save_checkpoint(
        &self,
        checkpoint: Checkpoint,
        key: Option<Key>,
    ) -> Result<SavedCheckpoint, Failure> {
        let Checkpoint { mut drawers, facts, diary } = checkpoint;
        let has_diary = diary.is_some();
        drawers.extend(diary.map(|entry| entry.into_drawer(key)));
        if drawers.is_empty() && facts.is_empty() {
            return Err(Failure::new(Code::BadInput, "the checkpoint is empty")
                .with_hint("give drawers, facts or a diary entry"));
        }
        let save = SaveCheckpoint { drawers, facts, vectors: DrawerVectors::default() };
        let reply = self.write(save, key).await?.done.reply;
        let (mut drawers, facts) = (reply.drawers.drawers, reply.facts);
        let diary = if has_diary { drawers.pop() } else { None };
        Ok(SavedCheckpoint { drawers, facts, diary })
    }
}
