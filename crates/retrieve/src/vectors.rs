//! The records nearest to a vector: candidates from segments, the tail, exact
//! distances from the truth.

use std::ops::ControlFlow;
use std::rc::Rc;

use isolate::Context;
use isolith_protocol::{CollectionState, Generation, RecordsFound, Searched, StoreError};
use isolith_segment::exact::{ExactQuery, VectorProblem, floats};
use isolith_segment::{
    Bits, SearchBuffers, SegmentError, VectorCandidate, VectorSegment, VectorSpec, VectorSum,
};
use isolith_store::{Scope, Snapshot};
use isolith_types::Filter;

use crate::best::{Best, Measured};
use crate::segments::{Live, Segments};
use crate::tail::{Part, Tails, tail_of};
use isolith_fault as fault;

/// So few matching rows are compared in the truth, without asking a segment.
const FEW_ROWS: usize = 128;

/// Candidates are compared in the truth in runs of this many.
const RESCORE_RUN: usize = 32;

pub(crate) struct Nearest<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) context: &'a Context<'a>,
}

/// What is looked for.
struct Target<'a> {
    query: ExactQuery,
    /// The query's vector, for segments.
    vector: Vec<f32>,
    /// Only these rows, in ascending order.
    rows: Option<&'a [u64]>,
}

impl Target<'_> {
    fn allows(&self, row: u64) -> bool {
        self.rows.is_none_or(|rows| rows.binary_search(&row).is_ok())
    }

    /// Offers a stored vector. One that is no vector cannot be told from a lost hit.
    fn offer(&self, best: &mut Best, row: u64, vector: &[u8]) -> Result<(), StoreError> {
        let distance = self.query.distance_bytes(vector);
        best.offer(row, distance.map_err(|problem| unusable(row, problem))?);
        Ok(())
    }
}

fn unusable(row: u64, problem: VectorProblem) -> StoreError {
    StoreError::Invalid(format!("the vector of row {row} is unusable: {problem}"))
}

/// The sums that segments keep.
enum Sums {
    Known(Vec<Part>),
    /// They are of an earlier build.
    NotKept,
    Damaged,
}

impl Nearest<'_, '_> {
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
        let vector = floats(vector).collect();
        let best = self.best(state, vector, limit, rows.as_deref(), &mut searched)?;
        let measured = |distance| Measured { distance: Some(distance), ..Measured::default() };
        let hits = best.into_hits(self.snapshot, measured)?;
        Ok(RecordsFound { hits, degraded: searched.degraded(), searched })
    }

    /// The rows nearest to a vector, among these rows if any are given.
    pub(crate) fn best(
        &mut self,
        state: &CollectionState,
        vector: Vec<f32>,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Best, StoreError> {
        let want = (limit as usize).min(usize::try_from(state.records).unwrap_or(usize::MAX));
        let query = question(state, &vector)?;
        let target = Target { query, vector, rows };
        let mut best = Best::smallest(want);
        match target.rows {
            _ if want == 0 => {}
            Some(rows) if rows.len() <= FEW_ROWS => self.compare(&target, rows, &mut best)?,
            _ => self.search(state, &target, &mut best, searched)?,
        }
        Ok(best)
    }

    /// The mean of all vectors; none if there are no vectors, or if segments of an earlier
    /// build do not tell. It is the same to the last bit whether segments can be read or not,
    /// as long as they hold nothing that is dead.
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
                Sums::Known(parts) => Rc::new(parts),
                Sums::NotKept => return Ok(None),
                Sums::Damaged => {
                    let snapshot = self.snapshot;
                    self.tails.sums(state, || sums_of_truth(snapshot, state, generation))?
                }
            };
            for (vectors, rows) in parts.iter() {
                add(&mut vectors.iter().copied(), *rows);
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
    ) -> Result<Sums, StoreError> {
        let live = self.segments.vectors(self.snapshot, state, self.context, searched)?;
        let Some(live) = live else { return Ok(Sums::Damaged) };
        let mut parts = Vec::with_capacity(live.len());
        for live in live {
            match live.segment.sum() {
                Ok(Some(sum)) => parts.push((sum, live.segment.len())),
                Ok(None) => return Ok(Sums::NotKept),
                Err(error) => {
                    self.segments.fail(&live.file, &error, searched);
                    return Ok(Sums::Damaged);
                }
            }
        }
        Ok(Sums::Known(parts))
    }

    fn search(
        &mut self,
        state: &CollectionState,
        target: &Target<'_>,
        best: &mut Best,
        searched: &mut Searched,
    ) -> Result<(), StoreError> {
        let live = self.segments.vectors(self.snapshot, state, self.context, searched)?;
        let mut candidates = Vec::new();
        for live in live.iter().flatten() {
            fault::point("segment.search", self.context);
            match search_segment(live, target, best.want()) {
                Ok(found) => candidates.extend(found),
                Err(error) => self.segments.fail(&live.file, &error, searched),
            }
        }
        if state.generation.is_some() && (live.is_none() || !searched.damaged.is_empty()) {
            return self.scan(state.id, Scope::All, target, best);
        }
        self.tail(state, target, best)?;
        candidates.sort_unstable_by(|a, b| a.distance_at_least.total_cmp(&b.distance_at_least));
        let dropped = self.rescore(target, &candidates, best)?;
        if dropped && !best.is_full() {
            // A segment offered what is dead, in the place of what is alive.
            best.clear();
            return self.scan(state.id, Scope::All, target, best);
        }
        Ok(())
    }

    /// Compares the tail, which no segment has.
    fn tail(
        &mut self,
        state: &CollectionState,
        target: &Target<'_>,
        best: &mut Best,
    ) -> Result<(), StoreError> {
        let Some(tail) = self.tails.vectors(self.snapshot, state)? else {
            return self.scan(state.id, tail_of(state), target, best);
        };
        let vectors = tail.data.chunks_exact((target.vector.len() * 4).max(1));
        for (row, vector) in tail.rows.iter().zip(vectors) {
            if target.allows(*row) {
                target.offer(best, *row, vector)?;
            }
        }
        Ok(())
    }

    /// Compares all vectors of a scope, as the truth has them.
    fn scan(
        &self,
        collection: u64,
        scope: Scope,
        target: &Target<'_>,
        best: &mut Best,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        self.snapshot.for_each_vector(collection, scope, &mut |row, _, vector| {
            if target.allows(row) {
                outcome = target.offer(best, row, vector);
            }
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome
    }

    /// Compares these rows, as the truth has them.
    fn compare(
        &self,
        target: &Target<'_>,
        rows: &[u64],
        best: &mut Best,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        self.snapshot.vectors(rows, &mut |index, _, vector| {
            if outcome.is_ok() {
                outcome = target.offer(best, rows[index], vector);
            }
        })?;
        outcome
    }

    /// Replaces the candidates' estimates by exact distances, until none of the rest
    /// can be better than what was found. True if a candidate was not alive.
    fn rescore(
        &self,
        target: &Target<'_>,
        candidates: &[VectorCandidate],
        best: &mut Best,
    ) -> Result<bool, StoreError> {
        let (mut offered, mut tried) = (0, 0);
        for run in candidates.chunks(RESCORE_RUN) {
            if best.is_full() && run[0].distance_at_least > best.last() {
                break;
            }
            let rows: Vec<u64> = run.iter().map(|candidate| candidate.row).collect();
            let mut outcome = Ok(());
            tried += run.len();
            self.snapshot.vectors(&rows, &mut |index, change, vector| {
                if change == run[index].change && outcome.is_ok() {
                    offered += 1;
                    outcome = target.offer(best, rows[index], vector);
                }
            })?;
            outcome?;
        }
        Ok(offered < tried)
    }
}

/// What base and delta would have kept of the vectors in the truth.
fn sums_of_truth(
    snapshot: &Snapshot<'_>,
    state: &CollectionState,
    generation: &Generation,
) -> Result<Vec<Part>, StoreError> {
    let dimension = state.dimension.unwrap_or(0);
    let spec = VectorSpec { dimension, metric: state.metric };
    let mut parts = [(VectorSum::new(spec), 0), (VectorSum::new(spec), 0)];
    let mut outcome = Ok(());
    snapshot.for_each_vector(state.id, Scope::All, &mut |row, change, vector| {
        // What is newer is in the tail.
        if change <= generation.complete_to {
            let (sum, rows) = &mut parts[usize::from(change > generation.base_to)];
            *rows += 1;
            outcome = sum.add_bytes(vector).map_err(|problem| unusable(row, problem));
        }
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome?;
    Ok(parts.map(|(sum, rows)| (sum.total().collect(), rows)).into())
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The query, if it fits the collection.
fn question(state: &CollectionState, vector: &[f32]) -> Result<ExactQuery, StoreError> {
    let bad = StoreError::Invalid;
    if let Some(dimension) = state.dimension.filter(|it| *it as usize != vector.len()) {
        let (name, found) = (&state.name, vector.len());
        return Err(bad(format!(
            "{name} has vectors of {dimension} numbers, the query has {found}"
        )));
    }
    ExactQuery::new(state.metric, vector)
        .map_err(|problem| bad(format!("the query's vector: {problem}")))
}

fn search_segment(
    live: &Live<VectorSegment>,
    target: &Target<'_>,
    want: usize,
) -> Result<Vec<VectorCandidate>, SegmentError> {
    let segment = &live.segment;
    let mut allowed = target.rows.map(|_| Bits::new(segment.len()));
    if let (Some(rows), Some(allowed)) = (target.rows, &mut allowed) {
        segment.positions_of(rows, allowed)?;
    }
    let dead = Some(live.dead.as_ref());
    segment.search(&target.vector, want, allowed.as_ref(), dead, &mut SearchBuffers::default())
}
