//! What a session leaves behind: texts and facts in one transaction.

use isolith_protocol::{CheckpointSaved, Done, DrawersAdded, SaveCheckpoint, StoreError};

use super::facts::add_facts;
use super::memory::{add_drawers, complete_drawers};
use super::{Perform, Work};

/// Maximum number of facts per call, so that the reply fits into a receipt.
const MAX_FACTS: usize = 100;

impl Perform for SaveCheckpoint {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        if self.facts.len() > MAX_FACTS {
            let reason =
                format!("{} facts in one call, at most {MAX_FACTS} are allowed", self.facts.len());
            return Err(StoreError::Invalid(reason));
        }
        let facts = add_facts(work, &self.facts)?;
        let added = match self.drawers.is_empty() {
            true => Done::from(DrawersAdded::default()),
            false => add_drawers(work, &self.drawers, false, &self.vectors)?,
        };
        Ok(added.map(|drawers| CheckpointSaved { drawers, facts }))
    }

    fn shorten(reply: &mut CheckpointSaved) -> bool {
        let was_empty = reply.drawers.drawers.is_empty();
        reply.drawers.drawers.clear();
        !was_empty
    }

    fn complete(&self, work: Work<'_>, reply: &mut CheckpointSaved) -> Result<(), StoreError> {
        match reply.drawers.drawers.len() < self.drawers.len() {
            true => complete_drawers(work, &self.drawers, &self.vectors, &mut reply.drawers),
            false => Ok(()),
        }
    }
}
