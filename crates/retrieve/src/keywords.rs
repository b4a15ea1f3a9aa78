//! Keyword search: the records whose text matches terms best.

use std::ops::ControlFlow;
use std::time::Duration;

use isolate::Context;
use isolith_fault as fault;
use isolith_protocol::{CollectionState, RecordsFound, Searched, StoreError};
use isolith_search::CodeWeights;
use isolith_segment::text::{
    Keywords, PerField, Ranking, Statistics, TermCounts, TextCandidate, TextSegment, Tokenizer,
    tokens_among,
};
use isolith_segment::{Bits, SegmentError};
use isolith_store::{Scope, Snapshot};
use isolith_types::{CollectionKind, Filter};

use crate::indexed_text::{analyzer, for_each_text};
use crate::segments::{LiveSegment, Segments};
use crate::tail::{Tails, tail_of};
use crate::top_rows::{RowMeasure, TopRows};

pub(crate) struct KeywordSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) context: &'a Context<'a>,
}

/// The terms of a query for a collection.
pub(crate) fn keywords_of(state: &CollectionState, text: &str) -> Keywords {
    Keywords::of(analyzer(state), text, CodeWeights::default().stem_keywords)
}

struct KeywordQuery<'a> {
    keywords: Keywords,
    /// Only these rows, in ascending order.
    rows: Option<&'a [u64]>,
    /// Whether term statistics cover only these rows, not the whole collection.
    local_statistics: bool,
}

impl KeywordQuery<'_> {
    fn allows(&self, row: u64) -> bool {
        self.rows.is_none_or(|rows| rows.binary_search(&row).is_ok())
    }
}

/// Records outside of segments that contain one of the terms.
type Matches = Vec<(u64, TermCounts)>;

impl KeywordSearch<'_, '_> {
    pub(crate) fn run(
        &mut self,
        state: &CollectionState,
        text: &str,
        limit: u32,
        filter: Option<&Filter>,
    ) -> Result<RecordsFound, StoreError> {
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let rows = filter.map(|filter| self.snapshot.rows_matching(state.id, filter));
        let rows = rows.transpose()?;
        let best =
            self.best(state, keywords_of(state, text), limit, rows.as_deref(), &mut searched)?;
        let measure = |score| RowMeasure { score: Some(score), ..RowMeasure::default() };
        let hits = best.into_hits(self.snapshot, measure)?;
        Ok(RecordsFound { hits, degraded: searched.degraded(), searched })
    }

    /// The rows that match the keywords best, only among `rows` if given.
    pub(crate) fn best(
        &mut self,
        state: &CollectionState,
        keywords: Keywords,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<TopRows, StoreError> {
        Ok(self.best_with_ranking(state, keywords, limit, rows, searched)?.0)
    }

    /// Like [`best`](Self::best). Also returns the term weights, unless time ran out or there are
    /// no terms.
    pub(crate) fn best_with_ranking(
        &mut self,
        state: &CollectionState,
        keywords: Keywords,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<(TopRows, Option<Ranking>), StoreError> {
        let query = KeywordQuery { keywords, rows, local_statistics: false };
        let mut best = TopRows::highest(limit as usize);
        let ranking = match query.keywords.terms.is_empty() {
            true => None,
            false => self.search(state, &query, &mut best, searched)?,
        };
        Ok((best, ranking))
    }

    /// Like [`best`](Self::best), with term statistics of `rows` only. Also returns the term
    /// weights, unless time ran out.
    pub(crate) fn best_with_local_statistics(
        &mut self,
        state: &CollectionState,
        keywords: Keywords,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<(TopRows, Option<Ranking>), StoreError> {
        let query = KeywordQuery { keywords, rows, local_statistics: true };
        let mut best = TopRows::highest(limit as usize);
        let ranking = self.search(state, &query, &mut best, searched)?;
        Ok((best, ranking))
    }

    fn search(
        &mut self,
        state: &CollectionState,
        query: &KeywordQuery<'_>,
        best: &mut TopRows,
        searched: &mut Searched,
    ) -> Result<Option<Ranking>, StoreError> {
        let live = self.segments.texts(self.snapshot, state, self.context, searched)?;
        if let Some(live) = live.filter(|_| state.generation.is_some()) {
            fault::point("text.search", self.context);
            let (tail, statistics) = self.tail(state, query)?;
            match search_segments(&live, query, &statistics, best.limit()) {
                Ok((ranking, candidates)) => {
                    offer(best, &ranking, &tail);
                    self.confirm(state, &candidates, best)?;
                    return Ok(Some(ranking));
                }
                Err((file, error)) => self.segments.fail(&file, &error, searched),
            }
        } else if state.generation.is_none() {
            let (tail, statistics) = self.tail(state, query)?;
            let ranking = Ranking::new(&query.keywords, &statistics);
            offer(best, &ranking, &tail);
            return Ok(Some(ranking));
        }
        self.scan(state, query, best, searched)
    }

    /// The matches in the tail, and the term statistics of the tail.
    fn tail(
        &mut self,
        state: &CollectionState,
        query: &KeywordQuery<'_>,
    ) -> Result<(Matches, Statistics), StoreError> {
        let mut statistics = Statistics::none(&query.keywords);
        let Some(tail) = self.tails.texts(self.snapshot, state)? else {
            let mut count =
                |_, _, counts: &TermCounts| statistics.add_record(&query.keywords, counts);
            let which = (tail_of(state), !query.local_statistics);
            let found = self.read(state, which, query, Duration::MAX, &mut count)?;
            return Ok((found.unwrap_or_default(), statistics));
        };
        let mut found = Matches::new();
        for (row, counts) in tail.rows.iter().zip(&tail.counts) {
            let allowed = query.allows(*row);
            if allowed || !query.local_statistics {
                statistics.add_record(&query.keywords, counts);
            }
            if allowed && has_any(&query.keywords, counts) {
                found.push((*row, counts.clone()));
            }
        }
        Ok((found, statistics))
    }

    /// Scans all documents in the database, within half of the remaining time.
    fn scan(
        &self,
        state: &CollectionState,
        query: &KeywordQuery<'_>,
        best: &mut TopRows,
        searched: &mut Searched,
    ) -> Result<Option<Ranking>, StoreError> {
        let mut statistics = ScanStatistics::new(state, query);
        let budget = self.context.remaining() / 2;
        let mut count =
            |change, allowed, counts: &TermCounts| statistics.add(change, allowed, counts);
        let which = (Scope::All, true);
        let Some(found) = self.read(state, which, query, budget, &mut count)? else {
            searched.unranked = true;
            return Ok(None);
        };
        let ranking = Ranking::new(&query.keywords, &statistics.total());
        offer(best, &ranking, &found);
        Ok(Some(ranking))
    }

    /// Reads documents and returns the matches; `None` if that takes longer than `budget`. Calls
    /// `count` for each allowed record, or for each record if `all` is set, with its change
    /// number, whether it is allowed, and its term counts.
    fn read(
        &self,
        state: &CollectionState,
        (scope, all): (Scope, bool),
        query: &KeywordQuery<'_>,
        budget: Duration,
        count: &mut dyn FnMut(u64, bool, &TermCounts),
    ) -> Result<Option<Matches>, StoreError> {
        let least = self.context.remaining().saturating_sub(budget);
        let mut tokenizer = Tokenizer::new(analyzer(state));
        let mut found = Matches::new();
        let mut in_time = true;
        for_each_text(self.snapshot, state, scope, &mut |row, change, fields| {
            let allowed = query.allows(row);
            if allowed || all {
                let counts = TermCounts::of_terms(&mut tokenizer, fields, &query.keywords.terms);
                count(change, allowed, &counts);
                if allowed && has_any(&query.keywords, &counts) {
                    found.push((row, counts));
                }
            }
            in_time = self.context.remaining() >= least;
            if in_time { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(in_time.then_some(found))
    }

    /// Offers the candidates whose version in the database is still that of the segment. Those of
    /// a code search are compared when they are shown: tombstones have excluded the others.
    fn confirm(
        &self,
        state: &CollectionState,
        candidates: &[TextCandidate],
        best: &mut TopRows,
    ) -> Result<(), StoreError> {
        if state.kind == CollectionKind::Code {
            candidates.iter().for_each(|candidate| best.offer(candidate.row, candidate.score));
            return Ok(());
        }
        let rows: Vec<u64> = candidates.iter().map(|candidate| candidate.row).collect();
        let alive = self.snapshot.changes_of(&rows)?;
        for (candidate, change) in candidates.iter().zip(alive) {
            if change == Some(candidate.change) {
                best.offer(candidate.row, candidate.score);
            }
        }
        Ok(())
    }
}

/// Term statistics of a scan, equal to those of segments and tail. With local statistics, a segment
/// estimates the lengths of the allowed rows from the average of all its rows.
struct ScanStatistics<'a> {
    query: &'a KeywordQuery<'a>,
    /// The highest change numbers in the base and in the delta.
    ends: [u64; 2],
    base_and_delta: [SegmentStatistics; 2],
    tail: Statistics,
}

struct SegmentStatistics {
    records: u64,
    tokens: PerField<u64>,
    allowed: Statistics,
}

impl<'a> ScanStatistics<'a> {
    fn new(state: &CollectionState, query: &'a KeywordQuery<'a>) -> Self {
        let ends = state.generation.as_ref();
        let ends = ends.map_or([0; 2], |generation| [generation.base_to, generation.complete_to]);
        let none = || Statistics::none(&query.keywords);
        let segment =
            || SegmentStatistics { records: 0, tokens: PerField::default(), allowed: none() };
        Self { query, ends, base_and_delta: [segment(), segment()], tail: none() }
    }

    fn add(&mut self, change: u64, allowed: bool, counts: &TermCounts) {
        let allowed = allowed || !self.query.local_statistics;
        let part = match self.ends.iter().position(|end| change <= *end) {
            Some(at) => {
                let segment = &mut self.base_and_delta[at];
                segment.records += 1;
                let lengths = counts.lengths();
                segment.tokens.iter_mut().zip(lengths).for_each(|(sum, it)| *sum += u64::from(it));
                &mut segment.allowed
            }
            None => &mut self.tail,
        };
        if allowed {
            part.add_record(&self.query.keywords, counts);
        }
    }

    fn total(mut self) -> Statistics {
        for SegmentStatistics { records, tokens, mut allowed } in self.base_and_delta {
            if self.query.local_statistics && self.query.rows.is_some() {
                allowed.tokens = tokens_among(tokens, allowed.records, records);
            }
            self.tail.add(&allowed);
        }
        self.tail
    }
}

/// Searches all segments, with the term statistics of segments and tail together.
fn search_segments(
    live: &[LiveSegment<TextSegment>],
    query: &KeywordQuery<'_>,
    tail: &Statistics,
    limit: usize,
) -> Result<(Ranking, Vec<TextCandidate>), (String, SegmentError)> {
    let mut statistics = tail.clone();
    let mut allowed = Vec::with_capacity(live.len());
    for LiveSegment { file, segment, .. } in live {
        let fail = |error| (file.clone(), error);
        let mut bits = query.rows.map(|_| Bits::new(segment.len()));
        if let (Some(rows), Some(bits)) = (query.rows, &mut bits) {
            segment.positions_of(rows, bits).map_err(fail)?;
        }
        let own = match bits.as_ref().filter(|_| query.local_statistics) {
            Some(bits) => segment.statistics_among(&query.keywords, bits),
            None => segment.statistics(&query.keywords),
        };
        statistics.add(&own.map_err(fail)?);
        allowed.push(bits);
    }
    let ranking = Ranking::new(&query.keywords, &statistics);
    let mut candidates = Vec::new();
    for (LiveSegment { file, segment, deleted }, allowed) in live.iter().zip(&allowed) {
        let found = segment.search(&ranking, limit, allowed.as_ref(), Some(deleted.as_ref()));
        candidates.extend(found.map_err(|error| (file.clone(), error))?);
    }
    Ok((ranking, candidates))
}

fn offer(best: &mut TopRows, ranking: &Ranking, records: &Matches) {
    for (row, counts) in records {
        best.offer(*row, ranking.score(counts));
    }
}

fn has_any(keywords: &Keywords, counts: &TermCounts) -> bool {
    keywords.terms.iter().any(|term| counts.get(term).iter().any(|count| *count > 0))
}
