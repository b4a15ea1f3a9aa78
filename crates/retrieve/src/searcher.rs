use isolate::Context;
use isolith_embed::Model;
use isolith_protocol::{
    CodeFound, FindHybrid, FindKeywords, FindMatches, FindNearest, FindSimilarDrawers,
    MatchesFound, MemoryFound, QueryRecords, RecordsFound, RecordsQueried, SearchCode,
    SearchMemory, SimilarFound, StoreError,
};
use isolith_store::Snapshot;

use crate::code::CodeSearch;
use crate::hybrid::HybridSearch;
use crate::keywords::KeywordSearch;
use crate::matches::MatchSearch;
use crate::memory::MemorySearch;
use crate::segments::Segments;
use crate::similar_drawers::similar_drawers;
use crate::tail::Tails;
use crate::vectors::VectorSearch;

/// Searches one snapshot of a store.
pub struct Searcher<'a, 's> {
    /// The database; all reads see the same state.
    pub snapshot: &'a Snapshot<'s>,
    /// Open segments, kept between jobs.
    pub segments: &'a mut Segments,
    /// Cached tails, kept between jobs.
    pub tails: &'a mut Tails,
    /// Computes query vectors.
    pub model: Model,
    /// Deadline and attempt number of the job.
    pub context: &'a Context<'a>,
}

impl<'s> Searcher<'_, 's> {
    /// Finds the records of a collection whose vectors are nearest to the query's.
    pub fn find_nearest(&mut self, query: &FindNearest) -> Result<RecordsFound, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        self.vector_search().run(&state, &query.vector, query.limit, query.filter.as_ref())
    }

    /// Finds the records of a collection nearest to each of several vectors.
    pub fn query_records(&mut self, query: &QueryRecords) -> Result<RecordsQueried, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        self.vector_search().run_many(&state, query)
    }

    /// Finds the records of a collection whose documents match keywords best.
    pub fn find_keywords(&mut self, query: &FindKeywords) -> Result<RecordsFound, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        self.keyword_search().run(&state, &query.text, query.limit, query.filter.as_ref())
    }

    /// Finds the records of a collection by vector and by keywords, and fuses both rankings.
    pub fn find_hybrid(&mut self, query: &FindHybrid) -> Result<RecordsFound, StoreError> {
        let state = self.snapshot.collection(&query.collection)?;
        let Self { snapshot, segments, tails, context, .. } = self;
        HybridSearch { snapshot, segments, tails, context }.run(&state, query)
    }

    /// Finds and ranks chunks of code.
    pub fn search_code(&mut self, query: &SearchCode) -> Result<CodeFound, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        CodeSearch { snapshot, segments, tails, model: *model, context }.search(query)
    }

    /// Finds all matches of a pattern in indexed files.
    pub fn find_matches(&mut self, query: &FindMatches) -> Result<MatchesFound, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        MatchSearch { snapshot, segments, tails, model: *model, context }.run(query)
    }

    /// Finds and ranks drawers.
    pub fn search_memory(&mut self, query: &SearchMemory) -> Result<MemoryFound, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        MemorySearch { snapshot, segments, tails, model: *model, context }.run(query)
    }

    /// Finds drawers that are near duplicates of a text.
    pub fn similar_drawers(
        &mut self,
        query: &FindSimilarDrawers,
    ) -> Result<SimilarFound, StoreError> {
        let model = self.model;
        similar_drawers(self.vector_search(), model, query)
    }

    fn vector_search(&mut self) -> VectorSearch<'_, 's> {
        let Self { snapshot, segments, tails, context, .. } = self;
        VectorSearch { snapshot, segments, tails, context }
    }

    fn keyword_search(&mut self) -> KeywordSearch<'_, 's> {
        let Self { snapshot, segments, tails, context, .. } = self;
        KeywordSearch { snapshot, segments, tails, context }
    }
}
