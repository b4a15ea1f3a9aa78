use isolate::Context;
use isolith_embed::Model;
use isolith_protocol::{
    CodeFound, FindKeywords, FindNearest, FindSimilarDrawers, MemoryFound, RecordsFound,
    SearchCode, SearchMemory, SimilarFound, StoreError,
};
use isolith_store::Snapshot;

use crate::code::CodeSearch;
use crate::drawers;
use crate::keywords::Keywords;
use crate::memory::MemorySearch;
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::Nearest;

/// Searches one snapshot of a store.
pub struct Searcher<'a, 's> {
    /// The state of the database that answers are made of.
    pub snapshot: &'a Snapshot<'s>,
    /// Segments that stay open from job to job.
    pub segments: &'a mut Segments,
    /// What is newer than the segments, kept from job to job.
    pub tails: &'a mut Tails,
    /// Embeds queries.
    pub model: Model,
    /// The job: its deadline, and which attempt this is.
    pub context: &'a Context<'a>,
}

impl<'s> Searcher<'_, 's> {
    /// Records of a collection whose vectors are nearest to the given one.
    pub fn find_nearest(&mut self, query: &FindNearest) -> Result<RecordsFound, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        self.nearest().run(&state, &query.vector, query.limit, query.filter.as_ref())
    }

    /// Records of a collection whose documents match keywords best.
    pub fn find_keywords(&mut self, query: &FindKeywords) -> Result<RecordsFound, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        self.keywords().run(&state, &query.text, query.limit, query.filter.as_ref())
    }

    /// Code that answers a question.
    pub fn search_code(&mut self, query: &SearchCode) -> Result<CodeFound, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        CodeSearch { snapshot, segments, tails, model: *model, context }.run(query)
    }

    /// Drawers that answer a question.
    pub fn search_memory(&mut self, query: &SearchMemory) -> Result<MemoryFound, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        MemorySearch { snapshot, segments, tails, model: *model, context }.run(query)
    }

    /// Drawers that are nearly the same as a text.
    pub fn similar_drawers(
        &mut self,
        query: &FindSimilarDrawers,
    ) -> Result<SimilarFound, StoreError> {
        let model = self.model;
        drawers::similar(self.nearest(), model, query)
    }

    fn nearest(&mut self) -> Nearest<'_, 's> {
        let Self { snapshot, segments, tails, context, .. } = self;
        Nearest { snapshot, segments, tails, context }
    }

    fn keywords(&mut self) -> Keywords<'_, 's> {
        let Self { snapshot, segments, tails, context, .. } = self;
        Keywords { snapshot, segments, tails, context }
    }
}
