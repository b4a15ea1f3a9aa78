use super::query::{Numbers, Scratch};
use super::segment::VectorSegment;
use super::shortlist::{Entry, Shortlist};
use crate::bits::ones;
use crate::kernel::{GROUP, prefetch};
use crate::{Bits, SegmentError};

/// Standard errors of a code's estimate that a position is given before it is passed
/// over. Chosen by measurement: `examples/recall.rs`.
const DOUBT: f64 = 2.5;
/// Up to so many positions are all looked at.
const FEW: usize = 4096;
/// And up to such a part of the segment: reading the codes would cost as much.
const PART: usize = 64;
/// No more candidates come back for each that is wanted,
const MOST_EACH: usize = 64;
/// or these, if they are more.
const MOST: usize = 4096;
/// Records that are asked for ahead of their use.
const AHEAD: usize = 16;

/// A position that may be among the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Where it is in the segment.
    pub position: usize,
    /// Which row it is.
    pub row: u64,
    /// Which version of it.
    pub change: u64,
    /// About how far it is.
    pub distance_estimate: f32,
    /// The exact distance is not less.
    pub distance_at_least: f32,
}

impl VectorSegment {
    /// The positions that may be among the `want` nearest to a query, out of those that
    /// are `allowed` and not `dead`, by the distance that they have at least.
    ///
    /// Who takes exact distances in this order can stop at the first candidate whose
    /// `distance_at_least` is no less than the `want`-th best so far. In small or
    /// strongly filtered sets every position is looked at, and the result is exact. In
    /// others, codes choose what to look at, and miss less than one in a thousand.
    ///
    /// At most 64 for each that is wanted come back, or 4,096 if that is more: where
    /// even more cannot be told apart (many copies of one vector), the lowest rows.
    ///
    /// # Errors
    /// If the query is no vector of this dimension, or the file is damaged.
    pub fn search(
        &self,
        query: &[f32],
        want: usize,
        allowed: Option<&Bits>,
        dead: Option<&Bits>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Candidate>, SegmentError> {
        let live = Live { length: self.len(), allowed, dead };
        let by_codes = self.kernel.has_fast_codes() && self.codes_pay(live, want);
        self.search_by(by_codes, query, want, live, scratch)
    }

    /// As [`search`](Self::search), looking at every position: the result is exact.
    ///
    /// # Errors
    /// As there.
    pub fn search_all(
        &self,
        query: &[f32],
        want: usize,
        allowed: Option<&Bits>,
        dead: Option<&Bits>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Candidate>, SegmentError> {
        let live = Live { length: self.len(), allowed, dead };
        self.search_by(false, query, want, live, scratch)
    }

    pub(super) fn search_by(
        &self,
        by_codes: bool,
        query: &[f32],
        want: usize,
        live: Live<'_>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Candidate>, SegmentError> {
        let mut numbers =
            Numbers::new(&self.parameters, query, self.kernel, scratch).map_err(|problem| {
                SegmentError::refused("search", self.container.path(), format!("query: {problem}"))
            })?;
        if want == 0 {
            return Ok(Vec::new());
        }
        let rotation = self.rotation.as_ref().filter(|_| by_codes);
        if let Some(rotation) = rotation {
            numbers.tabulate(rotation, self.parameters.bits, scratch);
        }
        let mut scan = Scan {
            segment: self,
            numbers,
            components: &scratch.components,
            shortlist: Shortlist::new(want),
            queue: Vec::with_capacity(AHEAD + GROUP),
        };
        match rotation {
            Some(_) => scan.codes(live, &scratch.tables)?,
            None => scan.records(live)?,
        }
        let mut entries = scan.shortlist.finish();
        entries.truncate(MOST.max(want.saturating_mul(MOST_EACH)));
        let candidate = |entry: &Entry| {
            Ok(Candidate {
                position: entry.position,
                row: self.row(entry.position)?,
                change: self.change(entry.position)?,
                distance_estimate: entry.estimate as f32,
                distance_at_least: (entry.at_least as f32).next_down(),
            })
        };
        entries.iter().map(candidate).collect()
    }

    fn codes_pay(&self, live: Live<'_>, want: usize) -> bool {
        let looked_at = live.allowed.map_or(self.len(), Bits::count);
        self.parameters.bits > 0
            && looked_at > FEW.max(self.len() / PART)
            && want.saturating_mul(100) < looked_at
    }
}

/// Which positions of a segment a search looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live<'a> {
    pub(super) length: usize,
    pub(super) allowed: Option<&'a Bits>,
    pub(super) dead: Option<&'a Bits>,
}

impl<'a> Live<'a> {
    /// The words of the set that are not empty, 64 positions each.
    fn words(self) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        (0..self.length.div_ceil(64))
            .map(move |at| (at, self.word(at)))
            .filter(|(_, word)| *word != 0)
    }

    fn word(self, at: usize) -> u64 {
        let left = self.length - 64 * at;
        let mut word = if left < 64 { (1 << left) - 1 } else { u64::MAX };
        if let Some(allowed) = self.allowed {
            word &= allowed.word(at);
        }
        if let Some(dead) = self.dead {
            word &= !dead.word(at);
        }
        word
    }
}

struct Scan<'a> {
    segment: &'a VectorSegment,
    numbers: Numbers,
    components: &'a [i16],
    shortlist: Shortlist,
    /// Positions whose records are on their way from memory.
    queue: Vec<usize>,
}

impl Scan<'_> {
    /// Looks at every record.
    fn records(&mut self, live: Live<'_>) -> Result<(), SegmentError> {
        for (at, word) in live.words() {
            if word.count_ones() < 16 {
                self.enqueue(ones(word).map(|i| 64 * at + i))?;
                continue;
            }
            // This many of them come in the order of memory, which needs no hints.
            let end = live.length.min(64 * at + 64);
            let bytes = self.segment.container.bytes(self.segment.records(64 * at..end))?;
            let stride = self.segment.parameters.stride();
            for i in ones(word) {
                let record = &bytes[i * stride..(i + 1) * stride];
                self.look(64 * at + i, record);
            }
        }
        self.empty_queue()
    }

    /// Looks at the records whose codes say that they may be near enough, given what
    /// was found so far.
    fn codes(&mut self, live: Live<'_>, tables: &[u8]) -> Result<(), SegmentError> {
        let segment = self.segment;
        let block = segment.parameters.block();
        let mut gate = self.numbers.gate(f64::INFINITY, DOUBT);
        for (at, word) in live.words() {
            for half in 0..2 {
                let live = (word >> (GROUP * half)) as u32;
                if live == 0 {
                    continue;
                }
                let start = segment.codes.start + (2 * at + half) * block;
                let bytes = segment.container.bytes(start..start + block)?;
                // Processors do not look beyond a page by themselves.
                prefetch(segment.container.unchecked(start + 2 * block..start + 3 * block));
                let passed = segment.kernel.pass(bytes, tables, gate) & live;
                if passed != 0 {
                    let first = 64 * at + GROUP * half;
                    self.enqueue(ones(passed.into()).map(|i| first + i))?;
                    gate = self.numbers.gate(self.shortlist.limit(), DOUBT);
                }
            }
        }
        self.empty_queue()
    }

    fn enqueue(&mut self, positions: impl Iterator<Item = usize>) -> Result<(), SegmentError> {
        for position in positions {
            let range = self.segment.records(position..position + 1);
            prefetch(self.segment.container.unchecked(range));
            self.queue.push(position);
        }
        if self.queue.len() >= AHEAD { self.empty_queue() } else { Ok(()) }
    }

    fn empty_queue(&mut self) -> Result<(), SegmentError> {
        let mut queue = std::mem::take(&mut self.queue);
        for position in queue.drain(..) {
            let range = self.segment.records(position..position + 1);
            let record = self.segment.container.bytes(range)?;
            self.look(position, record);
        }
        self.queue = queue;
        Ok(())
    }

    #[inline]
    fn look(&mut self, position: usize, record: &[u8]) {
        let estimate = self.numbers.estimate(record, self.components, self.segment.kernel);
        self.shortlist.offer(position, estimate);
    }
}
