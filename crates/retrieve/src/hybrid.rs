//! Hybrid search of a collection: by vector and by keywords, with both rankings fused.

use std::collections::HashMap;

use isolate::Context;
use isolith_protocol::{CollectionState, FindHybrid, RecordsFound, Searched, StoreError};
use isolith_search::{FusedRow, fuse};
use isolith_store::Snapshot;
use isolith_types::Hit;

use crate::keywords::{KeywordSearch, keywords_of};
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::{VectorSearch, query_vector};

/// At least this many rows of each ranking are fused: a good hit need not be at the top of either.
const MIN_CANDIDATES: u32 = 200;

pub(crate) struct HybridSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) context: &'a Context<'a>,
}

impl HybridSearch<'_, '_> {
    pub(crate) fn run(
        &mut self,
        state: &CollectionState,
        query: &FindHybrid,
    ) -> Result<RecordsFound, StoreError> {
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let rows = query.filter.as_ref();
        let rows = rows.map(|filter| self.snapshot.rows_matching(state.id, filter)).transpose()?;
        let candidates = query.limit.saturating_mul(2).max(MIN_CANDIDATES);
        let vector = query_vector(state, &query.vector)?;
        let Self { snapshot, segments, tails, context } = self;
        // Vectors first: keywords may use up half of the time that is left.
        let by_vector = VectorSearch { snapshot, segments, tails, context }.best(
            state,
            vector.clone(),
            candidates,
            rows.as_deref(),
            &mut searched,
        )?;
        let by_keywords = KeywordSearch { snapshot, segments, tails, context }.best(
            state,
            keywords_of(state, &query.text),
            candidates,
            rows.as_deref(),
            &mut searched,
        )?;
        let (by_keywords, by_vector) = (by_keywords.into_ranked(), by_vector.into_ranked());
        let fused = fuse(&by_keywords, &by_vector, query.limit as usize);
        let unranked: Vec<u64> =
            fused.iter().filter(|it| it.distance.is_none()).map(|it| it.row).collect();
        let search = VectorSearch { snapshot, segments, tails, context };
        let further = search.distances(state, vector, &unranked)?.into_iter().collect();
        let hits = self.hits(&fused, &further)?;
        Ok(RecordsFound { hits, degraded: searched.degraded(), searched })
    }

    /// Loads the records; `further` has the distances of rows that were found by keywords only.
    fn hits(
        &self,
        fused: &[FusedRow],
        further: &HashMap<u64, f32>,
    ) -> Result<Vec<Hit>, StoreError> {
        let rows: Vec<u64> = fused.iter().map(|it| it.row).collect();
        let records = self.snapshot.records(&rows, false)?;
        let hits = fused.iter().zip(records).filter_map(|(it, stored)| {
            let record = stored?.record;
            let ranked = it.distance.map(|placed| placed.value);
            Some(Hit {
                id: record.id,
                distance: ranked.or_else(|| further.get(&it.row).copied()),
                score: it.keywords.map(|placed| placed.value),
                fused: Some(it.score),
                why: it.reasons(),
                document: record.document,
                metadata: record.metadata,
            })
        });
        Ok(hits.collect())
    }
}
