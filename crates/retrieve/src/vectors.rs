//! Vector search: approximate candidates from segments, exact distances from the database.

use std::ops::ControlFlow;
use std::rc::Rc;

use isolate::Context;
use isolith_fault as fault;
use isolith_protocol::{
    CollectionState, Generation, QueryRecords, RecordsFound, RecordsQueried, Searched, StoreError,
};
use isolith_segment::exact::{ExactQuery, VectorProblem, check, floats};
use isolith_segment::{
    Bits, SearchBuffers, SegmentError, VectorCandidate, VectorSegment, VectorSpec, VectorSum,
};
use isolith_store::{Scope, Snapshot};
use isolith_types::{CollectionKind, Filter};

use crate::segments::{LiveSegment, Segments};
use crate::tail::{PartialSum, Tails, tail_of};
use crate::top_rows::{RowMeasure, TopRows};

/// Up to this many matching rows are compared exactly, without segments.
const MAX_EXACT_ROWS: usize = 128;

/// Candidates are compared exactly in batches of this size.
const RESCORE_BATCH: usize = 32;

pub(crate) struct VectorSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) context: &'a Context<'a>,
}

/// The vector of a query. Fails if it is zero: everything is equally far from it, so whoever asks
/// has made a mistake.
pub(crate) fn query_vector(state: &CollectionState, bytes: &[u8]) -> Result<Vec<f32>, StoreError> {
    let vector: Vec<f32> = floats(bytes).collect();
    check(&vector, state.metric)
        .map_err(|problem| StoreError::Invalid(format!("invalid query vector: {problem}")))?;
    Ok(vector)
}

struct VectorQuery<'a> {
    exact: ExactQuery,
    /// The query vector, for segments.
    vector: Vec<f32>,
    /// Only these rows, in ascending order.
    rows: Option<&'a [u64]>,
    /// Whether candidates are compared with their version in the database. In a code search, hits
    /// are, and tombstones exclude the others.
    confirm: bool,
}

impl VectorQuery<'_> {
    fn allows(&self, row: u64) -> bool {
        self.rows.is_none_or(|rows| rows.binary_search(&row).is_ok())
    }

    /// Offers a stored vector. An invalid one is an error: skipping it could lose a hit.
    fn offer(&self, best: &mut TopRows, row: u64, vector: &[u8]) -> Result<(), StoreError> {
        let distance = self.exact.distance_bytes(vector);
        best.offer(row, distance.map_err(|problem| invalid_vector(row, problem))?);
        Ok(())
    }
}

fn invalid_vector(row: u64, problem: VectorProblem) -> StoreError {
    StoreError::Invalid(format!("row {row} has an invalid vector: {problem}"))
}

/// The vector sums stored in segments.
enum StoredSums {
    Complete(Vec<PartialSum>),
    /// A segment was written before segments had sums.
    Missing,
    Unreadable,
}

impl VectorSearch<'_, '_> {
    pub(crate) fn run(
        &mut self,
        state: &CollectionState,
        vector: &[u8],
        limit: u32,
        filter: Option<&Filter>,
    ) -> Result<RecordsFound, StoreError> {
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let rows = filter.map(|filter| self.snapshot.rows_matching(state.id, filter));
        let rows = rows.transpose()?;
        let vector = query_vector(state, vector)?;
        let best = self.best(state, vector, limit, rows.as_deref(), &mut searched)?;
        let measure = |distance| RowMeasure { distance: Some(distance), ..RowMeasure::default() };
        let hits = best.into_hits(self.snapshot, measure)?;
        Ok(RecordsFound { hits, degraded: searched.degraded(), searched })
    }

    /// Searches for each of several vectors. The filter is evaluated once.
    pub(crate) fn run_many(
        &mut self,
        state: &CollectionState,
        query: &QueryRecords,
    ) -> Result<RecordsQueried, StoreError> {
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        if let Some(id) = self.snapshot.missing_id(state.id, &query.required)? {
            return Err(StoreError::NoRecord { id });
        }
        let filter = query.filter.as_ref();
        let rows = filter.map(|filter| self.snapshot.rows_matching(state.id, filter));
        let rows = rows.transpose()?;
        let mut found = Vec::new();
        for vector in query.vectors.chunks_exact((query.dimension as usize * 4).max(1)) {
            let vector = floats(vector).collect();
            let best = self.best(state, vector, query.limit, rows.as_deref(), &mut searched)?;
            found.push(best.into_records(self.snapshot, query.with_vectors)?);
        }
        Ok(RecordsQueried { found, searched })
    }

    /// The rows nearest to a vector, only among `rows` if given.
    pub(crate) fn best(
        &mut self,
        state: &CollectionState,
        vector: Vec<f32>,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<TopRows, StoreError> {
        let limit = (limit as usize).min(usize::try_from(state.records).unwrap_or(usize::MAX));
        let exact = exact_query(state, &vector)?;
        let confirm = state.kind != CollectionKind::Code;
        let query = VectorQuery { exact, vector, rows, confirm };
        let mut best = TopRows::lowest(limit);
        match query.rows {
            _ if limit == 0 => {}
            Some(rows) if rows.len() <= MAX_EXACT_ROWS => self.compare(&query, rows, &mut best)?,
            _ => self.search(state, &query, &mut best, searched)?,
        }
        Ok(best)
    }

    /// The distances of these rows, as far as they exist and have a vector.
    pub(crate) fn distances(
        &self,
        state: &CollectionState,
        vector: Vec<f32>,
        rows: &[u64],
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        let exact = exact_query(state, &vector)?;
        let query = VectorQuery { exact, vector, rows: None, confirm: false };
        let mut best = TopRows::lowest(rows.len());
        self.compare(&query, rows, &mut best)?;
        Ok(best.into_ranked())
    }

    /// The mean of all vectors; `None` if there are no vectors, or if a segment has no stored sum.
    /// Bit for bit the same whether segments are readable or not, unless they contain deleted
    /// rows.
    pub(crate) fn mean(
        &mut self,
        state: &CollectionState,
        searched: &mut Searched,
    ) -> Result<Option<Vec<f32>>, StoreError> {
        let (mut sum, mut count) = (vec![0.0; state.dimension.unwrap_or(0) as usize], 0.0);
        let mut add = |vector: &mut dyn Iterator<Item = f32>, rows: usize| {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
            count += rows as f32;
        };
        if let Some(generation) = &state.generation {
            let parts = match self.segment_sums(state, searched)? {
                StoredSums::Complete(parts) => Rc::new(parts),
                StoredSums::Missing => return Ok(None),
                StoredSums::Unreadable => {
                    let snapshot = self.snapshot;
                    self.tails.sums(state, || sums_from_database(snapshot, state, generation))?
                }
            };
            for (sum, rows) in parts.iter() {
                add(&mut sum.iter().copied(), *rows);
            }
        }
        if let Some(tail) = self.tails.vectors(self.snapshot, state)? {
            for vector in tail.data.chunks_exact(state.dimension.unwrap_or(1) as usize * 4) {
                add(&mut floats(vector), 1);
            }
        }
        Ok((count > 0.0).then(|| sum.iter().map(|sum| sum / count).collect()))
    }

    fn segment_sums(
        &mut self,
        state: &CollectionState,
        searched: &mut Searched,
    ) -> Result<StoredSums, StoreError> {
        let live = self.segments.vectors(self.snapshot, state, self.context, searched)?;
        let Some(live) = live else { return Ok(StoredSums::Unreadable) };
        let mut parts = Vec::with_capacity(live.len());
        for live in live {
            match live.segment.sum() {
                Ok(Some(sum)) => parts.push((sum, live.segment.len())),
                Ok(None) => return Ok(StoredSums::Missing),
                Err(error) => {
                    self.segments.fail(&live.file, &error, searched);
                    return Ok(StoredSums::Unreadable);
                }
            }
        }
        Ok(StoredSums::Complete(parts))
    }

    fn search(
        &mut self,
        state: &CollectionState,
        query: &VectorQuery<'_>,
        best: &mut TopRows,
        searched: &mut Searched,
    ) -> Result<(), StoreError> {
        let live = self.segments.vectors(self.snapshot, state, self.context, searched)?;
        let mut candidates = Vec::new();
        for live in live.iter().flatten() {
            fault::point("segment.search", self.context);
            match search_segment(live, query, best.limit()) {
                Ok(found) => candidates.extend(found),
                Err(error) => self.segments.fail(&live.file, &error, searched),
            }
        }
        if state.generation.is_some() && (live.is_none() || !searched.damaged.is_empty()) {
            return self.scan(state.id, Scope::All, query, best);
        }
        self.tail(state, query, best)?;
        candidates.sort_unstable_by(|a, b| a.distance_at_least.total_cmp(&b.distance_at_least));
        let dropped = self.rescore(query, &candidates, best)?;
        if dropped && !best.is_full() {
            // A segment offered deleted rows and so may have left out others.
            best.clear();
            return self.scan(state.id, Scope::All, query, best);
        }
        Ok(())
    }

    /// Compares all vectors of the tail.
    fn tail(
        &mut self,
        state: &CollectionState,
        query: &VectorQuery<'_>,
        best: &mut TopRows,
    ) -> Result<(), StoreError> {
        let Some(tail) = self.tails.vectors(self.snapshot, state)? else {
            return self.scan(state.id, tail_of(state), query, best);
        };
        let vectors = tail.data.chunks_exact((query.vector.len() * 4).max(1));
        for (row, vector) in tail.rows.iter().zip(vectors) {
            if query.allows(*row) {
                query.offer(best, *row, vector)?;
            }
        }
        Ok(())
    }

    /// Compares all vectors of a scope in the database.
    fn scan(
        &self,
        collection: u64,
        scope: Scope,
        query: &VectorQuery<'_>,
        best: &mut TopRows,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        self.snapshot.for_each_vector(collection, scope, &mut |row, _, vector| {
            if query.allows(row) {
                outcome = query.offer(best, row, vector);
            }
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome
    }

    /// Compares the vectors of `rows` in the database.
    fn compare(
        &self,
        query: &VectorQuery<'_>,
        rows: &[u64],
        best: &mut TopRows,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        self.snapshot.vectors(rows, &mut |index, _, vector| {
            if outcome.is_ok() {
                outcome = query.offer(best, rows[index], vector);
            }
        })?;
        outcome
    }

    /// Compares candidates exactly until no other candidate can be better than the rows found.
    /// True if a candidate was deleted or has changed.
    fn rescore(
        &self,
        query: &VectorQuery<'_>,
        candidates: &[VectorCandidate],
        best: &mut TopRows,
    ) -> Result<bool, StoreError> {
        let (mut offered, mut tried) = (0, 0);
        // Until enough are found, none can be left out.
        let (first, rest) = candidates.split_at(best.limit().min(candidates.len()));
        let batches = std::iter::once(first).chain(rest.chunks(RESCORE_BATCH));
        for batch in batches.filter(|batch| !batch.is_empty()) {
            if best.is_full() && batch[0].distance_at_least > best.worst() {
                break;
            }
            tried += batch.len();
            offered += self.rescore_batch(query, batch, best)?;
        }
        Ok(offered < tried)
    }

    /// Returns how many of the candidates still exist.
    fn rescore_batch(
        &self,
        query: &VectorQuery<'_>,
        batch: &[VectorCandidate],
        best: &mut TopRows,
    ) -> Result<usize, StoreError> {
        let mut batch: Vec<(u64, u64)> = batch.iter().map(|it| (it.row, it.change)).collect();
        // Rows that are close to each other are on the same pages.
        batch.sort_unstable();
        let rows: Vec<u64> = batch.iter().map(|(row, _)| *row).collect();
        let (mut offered, mut outcome) = (0, Ok(()));
        let mut offer = |index: usize, change: Option<u64>, vector: &[u8]| {
            let (row, expected) = batch[index];
            if change.is_none_or(|change| change == expected) && outcome.is_ok() {
                offered += 1;
                outcome = query.offer(best, row, vector);
            }
        };
        match query.confirm {
            true => self.snapshot.vectors(&rows, &mut |index, change, vector| {
                offer(index, Some(change), vector);
            })?,
            false => self.snapshot.bare_vectors(&rows, &mut |index, vector| {
                offer(index, None, vector);
            })?,
        }
        outcome.map(|()| offered)
    }
}

/// The vector sums of base and delta, computed from the database.
fn sums_from_database(
    snapshot: &Snapshot<'_>,
    state: &CollectionState,
    generation: &Generation,
) -> Result<Vec<PartialSum>, StoreError> {
    let dimension = state.dimension.unwrap_or(0);
    let spec = VectorSpec { dimension, metric: state.metric };
    let mut parts = [(VectorSum::new(spec), 0), (VectorSum::new(spec), 0)];
    let mut outcome = Ok(());
    snapshot.for_each_vector(state.id, Scope::All, &mut |row, change, vector| {
        // Newer rows are in the tail.
        if change <= generation.complete_to {
            let (sum, rows) = &mut parts[usize::from(change > generation.base_to)];
            *rows += 1;
            outcome = sum.add_bytes(vector).map_err(|problem| invalid_vector(row, problem));
        }
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome?;
    Ok(parts.map(|(sum, rows)| (sum.total().collect(), rows)).into())
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Fails if the vector's dimension differs from the collection's.
fn exact_query(state: &CollectionState, vector: &[f32]) -> Result<ExactQuery, StoreError> {
    let invalid = StoreError::Invalid;
    if let Some(dimension) = state.dimension.filter(|it| *it as usize != vector.len()) {
        let (name, found) = (&state.name, vector.len());
        return Err(invalid(format!(
            "{name} has vectors of dimension {dimension}, the query vector has dimension {found}"
        )));
    }
    ExactQuery::new(state.metric, vector)
        .map_err(|problem| invalid(format!("invalid query vector: {problem}")))
}

fn search_segment(
    live: &LiveSegment<VectorSegment>,
    query: &VectorQuery<'_>,
    limit: usize,
) -> Result<Vec<VectorCandidate>, SegmentError> {
    let segment = &live.segment;
    let mut allowed = query.rows.map(|_| Bits::new(segment.len()));
    if let (Some(rows), Some(allowed)) = (query.rows, &mut allowed) {
        segment.positions_of(rows, allowed)?;
    }
    let deleted = Some(live.deleted.as_ref());
    segment.search(&query.vector, limit, allowed.as_ref(), deleted, &mut SearchBuffers::default())
}
