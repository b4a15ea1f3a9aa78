//! Finds the best matching records of a text segment.
//!
//! Postings are read in windows of positions, by term and field, so that sums have a fixed order
//! and stay in the cache. All postings of the query are read, unless so few positions are allowed
//! that it is faster to look these up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, TERMINATED};

use super::ranking::{FieldScale, Ranking};
use super::segment::TextSegment;
use crate::bits::ones;
use crate::{Bits, SegmentError};

/// Number of positions that are scored together.
const WINDOW: usize = 4096;
const WORDS: usize = WINDOW / 64;
/// Cost of looking up a position, in postings read sequentially.
const LOOKUP_COST: usize = 6;

/// A record that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextCandidate {
    /// The record's row.
    pub row: u64,
    /// The change number, which identifies the version of the record.
    pub change: u64,
    /// The score; higher is better.
    pub score: f32,
}

impl TextSegment {
    /// The `limit` best records, by score and then by row. Only positions in `allowed`, if given,
    /// and not in `dead`.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn search(
        &self,
        ranking: &Ranking,
        limit: usize,
        allowed: Option<&Bits>,
        dead: Option<&Bits>,
    ) -> Result<Vec<TextCandidate>, SegmentError> {
        let mut terms = self.cursors(ranking)?;
        let mut top = TopScores::new(limit.min(self.len()));
        if top.limit > 0 && !terms.is_empty() {
            let postings: usize =
                terms.iter().flat_map(|term| &term.cursors).map(Cursor::len).sum();
            let cursors: usize = terms.iter().map(|term| term.cursors.len()).sum();
            match allowed {
                Some(allowed) if allowed.count() * cursors * LOOKUP_COST < postings => {
                    look_up(&mut terms, ranking, allowed, dead, &mut top);
                }
                _ => scan(&mut terms, ranking, allowed, dead, &mut top),
            }
        }
        let (rows, changes) = (self.rows()?, self.changes()?);
        let out_of_range = || self.unreadable("a posting's position is out of range");
        let candidate = |(position, score)| {
            let row = rows.get(position).ok_or_else(out_of_range)?;
            let change = changes.get(position).ok_or_else(out_of_range)?;
            Ok(TextCandidate { row, change, score })
        };
        top.into_sorted().map(candidate).collect()
    }

    fn cursors<'a>(&'a self, ranking: &'a Ranking) -> Result<Vec<TermCursors<'a>>, SegmentError> {
        let mut terms = Vec::new();
        for (term, text) in ranking.keywords().terms.iter().enumerate() {
            let mut cursors = Vec::new();
            for (field, index) in self.index().into_iter().flatten().enumerate() {
                if !ranking.field(field).counts() {
                    continue;
                }
                if let Some(info) = self.find(field, index, text)? {
                    let postings = index
                        .terms
                        .read_block_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)
                        .map_err(|error| self.unreadable(error))?;
                    let scale = ranking.field(field);
                    cursors.push(Cursor { postings, at: 0, lengths: &index.lengths, scale });
                }
            }
            if !cursors.is_empty() {
                terms.push(TermCursors { term, cursors });
            }
        }
        Ok(terms)
    }
}

/// The postings of a term, for each field that contains it.
struct TermCursors<'a> {
    term: usize,
    cursors: Vec<Cursor<'a>>,
}

struct Cursor<'a> {
    postings: BlockSegmentPostings,
    at: usize,
    lengths: &'a FieldNormReader,
    scale: &'a FieldScale,
}

impl Cursor<'_> {
    fn len(&self) -> usize {
        self.postings.doc_freq() as usize
    }

    fn position(&self) -> DocId {
        self.postings.docs().get(self.at).copied().unwrap_or(TERMINATED)
    }

    /// Calls `take` for each position below `end`, with the amount that it adds to `x`.
    fn take_below(&mut self, end: DocId, mut take: impl FnMut(DocId, f32)) {
        loop {
            let (docs, counts) = (self.postings.docs(), self.postings.freqs());
            let length = docs.len().min(counts.len());
            for (&doc, &count) in docs[self.at..length].iter().zip(&counts[self.at..length]) {
                if doc >= end {
                    return;
                }
                take(doc, self.scale.occurrences(count, self.lengths.fieldnorm_id(doc)));
                self.at += 1;
            }
            if length == 0 {
                return;
            }
            self.postings.advance();
            self.at = 0;
        }
    }

    /// The amount that a position adds to `x`. Calls must be in ascending order of positions.
    fn look_up(&mut self, position: DocId) -> Option<f32> {
        if self.position() < position {
            self.at = self.postings.seek(position);
        }
        (self.position() == position).then(|| {
            let length = self.lengths.fieldnorm_id(position);
            self.scale.occurrences(self.postings.freq(self.at), length)
        })
    }
}

/// Reads all postings.
fn scan(
    terms: &mut [TermCursors<'_>],
    ranking: &Ranking,
    allowed: Option<&Bits>,
    dead: Option<&Bits>,
    top: &mut TopScores,
) {
    let mut window = Window::new();
    loop {
        let next = terms.iter().flat_map(|term| &term.cursors).map(Cursor::position).min();
        let Some(next) = next.filter(|next| *next != TERMINATED) else {
            return;
        };
        window.start = next as usize / WINDOW * WINDOW;
        for term in terms.iter_mut() {
            window.add(term, ranking);
        }
        window.offer(allowed, dead, top);
    }
}

/// Looks up the allowed positions.
fn look_up(
    terms: &mut [TermCursors<'_>],
    ranking: &Ranking,
    allowed: &Bits,
    dead: Option<&Bits>,
    top: &mut TopScores,
) {
    for position in allowed.iter().filter(|at| !dead.is_some_and(|dead| dead.contains(*at))) {
        let Ok(doc) = DocId::try_from(position) else {
            return;
        };
        let mut score = None;
        for term in terms.iter_mut() {
            let mut x = None;
            for cursor in &mut term.cursors {
                if let Some(more) = cursor.look_up(doc) {
                    x = Some(x.unwrap_or(0.0) + more);
                }
            }
            if let Some(x) = x {
                score = Some(score.unwrap_or(0.0) + ranking.term(term.term, x));
            }
        }
        if let Some(score) = score {
            top.offer(position, score);
        }
    }
}

/// The scores of [`WINDOW`] consecutive positions.
struct Window {
    start: usize,
    x: Box<[f32; WINDOW]>,
    scores: Box<[f32; WINDOW]>,
    /// Which positions have a score.
    scored: [u64; WORDS],
}

impl Window {
    fn new() -> Self {
        Self {
            start: 0,
            x: Box::new([0.0; WINDOW]),
            scores: Box::new([0.0; WINDOW]),
            scored: [0; WORDS],
        }
    }

    /// Adds a term to the scores.
    fn add(&mut self, term: &mut TermCursors<'_>, ranking: &Ranking) {
        let Self { start, x, scores, scored } = self;
        let end = (*start + WINDOW).min(TERMINATED as usize) as DocId;
        let start = *start as DocId;
        if let [cursor] = term.cursors.as_mut_slice() {
            cursor.take_below(end, |doc, more| {
                let at = (doc - start) as usize % WINDOW;
                scores[at] += ranking.term(term.term, more);
                scored[at / 64] |= 1 << (at % 64);
            });
            return;
        }
        let mut touched = [0u64; WORDS];
        for cursor in &mut term.cursors {
            cursor.take_below(end, |doc, more| {
                let at = (doc - start) as usize % WINDOW;
                x[at] += more;
                touched[at / 64] |= 1 << (at % 64);
            });
        }
        for (word, touched) in touched.into_iter().enumerate() {
            for at in ones(touched).map(|bit| 64 * word + bit) {
                scores[at] += ranking.term(term.term, x[at]);
                x[at] = 0.0;
            }
            scored[word] |= touched;
        }
    }

    /// Passes the scores to `top` and resets them.
    fn offer(&mut self, allowed: Option<&Bits>, dead: Option<&Bits>, top: &mut TopScores) {
        for (word, scored) in self.scored.iter_mut().enumerate() {
            let all = self.start / 64 + word;
            let shown = *scored
                & allowed.map_or(u64::MAX, |allowed| allowed.word(all))
                & !dead.map_or(0, |dead| dead.word(all));
            for bit in ones(shown) {
                top.offer(64 * all + bit, self.scores[64 * word + bit]);
            }
            for bit in ones(*scored) {
                self.scores[64 * word + bit] = 0.0;
            }
            *scored = 0;
        }
    }
}

/// The best scores so far. Positions must be offered in ascending order.
struct TopScores {
    limit: usize,
    /// A min-heap. Scores are never negative, so their bits sort like their values.
    heap: BinaryHeap<Reverse<(u32, Reverse<usize>)>>,
    /// Scores must exceed this to be inserted.
    floor: f32,
}

impl TopScores {
    fn new(limit: usize) -> Self {
        Self { limit, heap: BinaryHeap::with_capacity(limit.min(4096)), floor: -1.0 }
    }

    #[inline]
    fn offer(&mut self, position: usize, score: f32) {
        if score > self.floor {
            self.insert(position, score);
        }
    }

    fn insert(&mut self, position: usize, score: f32) {
        let entry = Reverse((score.to_bits(), Reverse(position)));
        if self.heap.len() < self.limit {
            self.heap.push(entry);
        } else if let Some(mut worst) = self.heap.peek_mut() {
            *worst = entry;
        }
        if self.heap.len() == self.limit
            && let Some(Reverse((worst, _))) = self.heap.peek()
        {
            self.floor = f32::from_bits(*worst);
        }
    }

    fn into_sorted(self) -> impl Iterator<Item = (usize, f32)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse((score, Reverse(position)))| (position, f32::from_bits(score)))
    }
}
