//! The records whose documents fit some words best.

use std::ops::ControlFlow;
use std::time::Duration;

use isolate::Context;
use isolith_protocol::{CollectionState, RecordsFound, Searched, StoreError};
use isolith_search::Weights;
use isolith_segment::text::{
    Keywords as Words, PerField, Ranking, Statistics, TermCounts, TextCandidate, TextSegment,
    Tokenizer, tokens_among,
};
use isolith_segment::{Bits, SegmentError};
use isolith_store::{Scope, Snapshot};
use isolith_types::Filter;

use crate::best::{Best, Measured};
use crate::segments::{Live, Segments};
use crate::tail::{Tails, tail_of};
use crate::texts::{analyzer, for_each_text};
use isolith_fault as fault;

pub(crate) struct Keywords<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) context: &'a Context<'a>,
}

/// What is looked for.
struct Target<'a> {
    words: Words,
    /// Only these rows, in ascending order.
    rows: Option<&'a [u64]>,
    /// Whether words are weighed as if there were no other rows.
    apart: bool,
}

impl Target<'_> {
    fn allows(&self, row: u64) -> bool {
        self.rows.is_none_or(|rows| rows.binary_search(&row).is_ok())
    }
}

/// Records outside of segments that have one of the words.
type Loose = Vec<(u64, TermCounts)>;

impl Keywords<'_, '_> {
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
        let file_name = Weights::default().stem_keywords;
        let words = Words::of(analyzer(state), text, file_name);
        let best = self.best(state, words, limit, rows.as_deref(), &mut searched)?;
        let measured = |score| Measured { score: Some(score), ..Measured::default() };
        let hits = best.into_hits(self.snapshot, measured)?;
        Ok(RecordsFound { hits, degraded: searched.degraded(), searched })
    }

    /// The rows that fit some words best, among these rows if any are given.
    pub(crate) fn best(
        &mut self,
        state: &CollectionState,
        words: Words,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Best, StoreError> {
        let target = Target { words, rows, apart: false };
        let mut best = Best::largest(limit as usize);
        if !target.words.terms.is_empty() {
            self.search(state, &target, &mut best, searched)?;
        }
        Ok(best)
    }

    /// The rows that fit some words best among these, with words weighed as if there were
    /// no others; and the formula, unless there was no time for it.
    pub(crate) fn best_apart(
        &mut self,
        state: &CollectionState,
        words: Words,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<(Best, Option<Ranking>), StoreError> {
        let target = Target { words, rows, apart: true };
        let mut best = Best::largest(limit as usize);
        let ranking = self.search(state, &target, &mut best, searched)?;
        Ok((best, ranking))
    }

    fn search(
        &mut self,
        state: &CollectionState,
        target: &Target<'_>,
        best: &mut Best,
        searched: &mut Searched,
    ) -> Result<Option<Ranking>, StoreError> {
        let live = self.segments.texts(self.snapshot, state, self.context, searched)?;
        if let Some(live) = live.filter(|_| state.generation.is_some()) {
            fault::point("text.search", self.context);
            let (tail, counted) = self.tail(state, target)?;
            match search_segments(&live, target, &counted, best.want()) {
                Ok((ranking, candidates)) => {
                    offer(best, &ranking, &tail);
                    self.confirm(&candidates, best)?;
                    return Ok(Some(ranking));
                }
                Err((file, error)) => self.segments.fail(&file, &error, searched),
            }
        } else if state.generation.is_none() {
            let (tail, counted) = self.tail(state, target)?;
            let ranking = Ranking::new(&target.words, &counted);
            offer(best, &ranking, &tail);
            return Ok(Some(ranking));
        }
        self.scan(state, target, best, searched)
    }

    /// The records of the tail that have one of the words, and what all of it counts.
    fn tail(
        &mut self,
        state: &CollectionState,
        target: &Target<'_>,
    ) -> Result<(Loose, Statistics), StoreError> {
        let mut counted = Statistics::none(&target.words);
        let Some(tail) = self.tails.texts(self.snapshot, state)? else {
            let mut count = |_, _, counts: &TermCounts| counted.add_record(&target.words, counts);
            let which = (tail_of(state), !target.apart);
            let found = self.read(state, which, target, Duration::MAX, &mut count)?;
            return Ok((found.unwrap_or_default(), counted));
        };
        let mut found = Loose::new();
        for (row, counts) in tail.rows.iter().zip(&tail.counts) {
            let allowed = target.allows(*row);
            if allowed || !target.apart {
                counted.add_record(&target.words, counts);
            }
            if allowed && has_any(&target.words, counts) {
                found.push((*row, counts.clone()));
            }
        }
        Ok((found, counted))
    }

    /// Matches all documents, as the truth has them, within half of the time there is.
    fn scan(
        &self,
        state: &CollectionState,
        target: &Target<'_>,
        best: &mut Best,
        searched: &mut Searched,
    ) -> Result<Option<Ranking>, StoreError> {
        let mut counted = Counted::new(state, target);
        let budget = self.context.remaining() / 2;
        let mut count = |change, allowed, counts: &TermCounts| counted.add(change, allowed, counts);
        let which = (Scope::All, true);
        let Some(found) = self.read(state, which, target, budget, &mut count)? else {
            searched.unranked = true;
            return Ok(None);
        };
        let ranking = Ranking::new(&target.words, &counted.into_statistics());
        offer(best, &ranking, &found);
        Ok(Some(ranking))
    }

    /// Reads documents and keeps those that have one of the words; nothing if that takes
    /// longer than `budget`. `count` takes the change number of every record, whether it is
    /// allowed, and what it has of the words; it gets the others too if `all` is set.
    fn read(
        &self,
        state: &CollectionState,
        (scope, all): (Scope, bool),
        target: &Target<'_>,
        budget: Duration,
        count: &mut dyn FnMut(u64, bool, &TermCounts),
    ) -> Result<Option<Loose>, StoreError> {
        let least = self.context.remaining().saturating_sub(budget);
        let mut tokenizer = Tokenizer::new(analyzer(state));
        let mut found = Loose::new();
        let mut in_time = true;
        for_each_text(self.snapshot, state, scope, &mut |row, change, fields| {
            let allowed = target.allows(row);
            if allowed || all {
                let counts = TermCounts::of_terms(&mut tokenizer, fields, &target.words.terms);
                count(change, allowed, &counts);
                if allowed && has_any(&target.words, &counts) {
                    found.push((row, counts));
                }
            }
            in_time = self.context.remaining() >= least;
            if in_time { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(in_time.then_some(found))
    }

    /// Offers those candidates that the truth still shows as the segment knew them.
    fn confirm(&self, candidates: &[TextCandidate], best: &mut Best) -> Result<(), StoreError> {
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

/// What all records count, added up as segments and tail do it: where words are weighed among
/// some rows alone, segments take the lengths of these for what they are on average.
struct Counted<'a> {
    target: &'a Target<'a>,
    /// Up to which change numbers rows are in the base and in the delta.
    ends: [u64; 2],
    base_and_delta: [Share; 2],
    tail: Statistics,
}

struct Share {
    all: u64,
    tokens: PerField<u64>,
    allowed: Statistics,
}

impl<'a> Counted<'a> {
    fn new(state: &CollectionState, target: &'a Target<'a>) -> Self {
        let ends = state.generation.as_ref();
        let ends = ends.map_or([0; 2], |generation| [generation.base_to, generation.complete_to]);
        let none = || Statistics::none(&target.words);
        let share = || Share { all: 0, tokens: PerField::default(), allowed: none() };
        Self { target, ends, base_and_delta: [share(), share()], tail: none() }
    }

    fn add(&mut self, change: u64, allowed: bool, counts: &TermCounts) {
        let allowed = allowed || !self.target.apart;
        let part = match self.ends.iter().position(|end| change <= *end) {
            Some(at) => {
                let share = &mut self.base_and_delta[at];
                share.all += 1;
                let lengths = counts.lengths();
                share.tokens.iter_mut().zip(lengths).for_each(|(sum, it)| *sum += u64::from(it));
                &mut share.allowed
            }
            None => &mut self.tail,
        };
        if allowed {
            part.add_record(&self.target.words, counts);
        }
    }

    fn into_statistics(mut self) -> Statistics {
        for Share { all, tokens, mut allowed } in self.base_and_delta {
            if self.target.apart && self.target.rows.is_some() {
                allowed.tokens = tokens_among(tokens, allowed.records, all);
            }
            self.tail.add(&allowed);
        }
        self.tail
    }
}

/// The best of all segments, with one set of counts for them and the tail.
fn search_segments(
    live: &[Live<TextSegment>],
    target: &Target<'_>,
    counted: &Statistics,
    want: usize,
) -> Result<(Ranking, Vec<TextCandidate>), (String, SegmentError)> {
    let mut statistics = counted.clone();
    let mut allowed = Vec::with_capacity(live.len());
    for Live { file, segment, .. } in live {
        let fail = |error| (file.clone(), error);
        let mut bits = target.rows.map(|_| Bits::new(segment.len()));
        if let (Some(rows), Some(bits)) = (target.rows, &mut bits) {
            segment.positions_of(rows, bits).map_err(fail)?;
        }
        let own = match bits.as_ref().filter(|_| target.apart) {
            Some(bits) => segment.statistics_among(&target.words, bits),
            None => segment.statistics(&target.words),
        };
        statistics.add(&own.map_err(fail)?);
        allowed.push(bits);
    }
    let ranking = Ranking::new(&target.words, &statistics);
    let mut candidates = Vec::new();
    for (Live { file, segment, dead }, allowed) in live.iter().zip(&allowed) {
        let found = segment.search(&ranking, want, allowed.as_ref(), Some(dead.as_ref()));
        candidates.extend(found.map_err(|error| (file.clone(), error))?);
    }
    Ok((ranking, candidates))
}

fn offer(best: &mut Best, ranking: &Ranking, records: &Loose) {
    for (row, counts) in records {
        best.offer(*row, ranking.score(counts));
    }
}

fn has_any(words: &Words, counts: &TermCounts) -> bool {
    words.terms.iter().any(|term| counts.get(term).iter().any(|count| *count > 0))
}
