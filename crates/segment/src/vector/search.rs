use super::query::{PreparedQuery, SearchBuffers};
use super::segment::VectorSegment;
use super::shortlist::{Shortlist, ShortlistEntry};
use crate::bits::ones;
use crate::kernel::{CODES_PER_BLOCK, prefetch};
use crate::{Bits, SegmentError};

/// Margin of the code filter, in standard errors. Chosen by measurement: `examples/recall.rs`.
const SIGMAS: f64 = 2.5;
/// Up to this many positions, all are compared without codes.
const SCAN_ROWS: usize = 4096;
/// Up to this fraction of the segment (1/64), too, because reading the codes would cost as much.
const SCAN_FRACTION: usize = 64;
/// Maximum number of candidates per requested result, but at least [`MIN_CANDIDATES`].
const CANDIDATES_PER_RESULT: usize = 64;
const MIN_CANDIDATES: usize = 4096;
/// Number of records that are prefetched together.
const PREFETCH_QUEUE: usize = 16;

/// A position that may be among the nearest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorCandidate {
    /// The position in the segment.
    pub position: usize,
    /// The record's row.
    pub row: u64,
    /// The change number, which identifies the version of the record.
    pub change: u64,
    /// The estimated distance.
    pub distance_estimate: f32,
    /// Lower bound of the exact distance.
    pub distance_at_least: f32,
}

impl VectorSegment {
    /// The positions that may be among the `limit` nearest to a query, ordered by
    /// `distance_at_least`. Only those in `allowed`, if given, and not in `dead`.
    ///
    /// A caller that computes exact distances in this order can stop at the first candidate whose
    /// `distance_at_least` is not less than the `limit`-th best exact distance so far. In small or
    /// strongly filtered sets every position is compared, and the result is exact. In others,
    /// codes exclude most positions, and miss fewer than one result in a thousand.
    ///
    /// Returns at most 64 candidates per requested result, or 4,096 if that is more. If even more
    /// are indistinguishable (many copies of one vector), those with the lowest rows are returned.
    ///
    /// # Errors
    /// If the query vector is not valid, or the file is damaged.
    pub fn search(
        &self,
        query: &[f32],
        limit: usize,
        allowed: Option<&Bits>,
        dead: Option<&Bits>,
        buffers: &mut SearchBuffers,
    ) -> Result<Vec<VectorCandidate>, SegmentError> {
        let live = LivePositions { length: self.len(), allowed, dead };
        let use_codes = self.kernel.has_fast_codes() && self.codes_pay_off(live, limit);
        self.search_by(use_codes, query, limit, live, buffers)
    }

    /// As [`search`](Self::search), but compares every position, so that the result is exact.
    pub fn search_all(
        &self,
        query: &[f32],
        limit: usize,
        allowed: Option<&Bits>,
        dead: Option<&Bits>,
        buffers: &mut SearchBuffers,
    ) -> Result<Vec<VectorCandidate>, SegmentError> {
        let live = LivePositions { length: self.len(), allowed, dead };
        self.search_by(false, query, limit, live, buffers)
    }

    pub(super) fn search_by(
        &self,
        use_codes: bool,
        query: &[f32],
        limit: usize,
        live: LivePositions<'_>,
        buffers: &mut SearchBuffers,
    ) -> Result<Vec<VectorCandidate>, SegmentError> {
        let mut query = PreparedQuery::new(&self.parameters, query, self.kernel, buffers).map_err(
            |problem| {
                SegmentError::invalid("search", self.container.path(), format!("query: {problem}"))
            },
        )?;
        if limit == 0 {
            return Ok(Vec::new());
        }
        let rotation = self.rotation.as_ref().filter(|_| use_codes);
        if let Some(rotation) = rotation {
            query.tabulate(rotation, self.parameters.bits, buffers);
        }
        let mut scan = Scan {
            segment: self,
            query,
            components: &buffers.components,
            shortlist: Shortlist::new(limit),
            queue: Vec::with_capacity(PREFETCH_QUEUE + CODES_PER_BLOCK),
        };
        match rotation {
            Some(_) => scan.scan_codes(live, &buffers.tables)?,
            None => scan.scan_records(live)?,
        }
        let mut entries = scan.shortlist.finish();
        entries.truncate(MIN_CANDIDATES.max(limit.saturating_mul(CANDIDATES_PER_RESULT)));
        let (rows, changes) = (self.all_rows()?, self.all_changes()?);
        let candidate = |entry: &ShortlistEntry| VectorCandidate {
            position: entry.position,
            row: rows.get(entry.position),
            change: changes.get(entry.position),
            distance_estimate: entry.estimate as f32,
            distance_at_least: (entry.at_least as f32).next_down(),
        };
        Ok(entries.iter().map(candidate).collect())
    }

    fn codes_pay_off(&self, live: LivePositions<'_>, limit: usize) -> bool {
        let positions = live.allowed.map_or(self.len(), Bits::count);
        self.parameters.bits > 0
            && positions > SCAN_ROWS.max(self.len() / SCAN_FRACTION)
            && limit.saturating_mul(100) < positions
    }
}

/// The positions that a search considers.
#[derive(Debug, Clone, Copy)]
pub(super) struct LivePositions<'a> {
    pub(super) length: usize,
    pub(super) allowed: Option<&'a Bits>,
    pub(super) dead: Option<&'a Bits>,
}

impl<'a> LivePositions<'a> {
    /// The non-zero words of the set, of 64 positions each.
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
    query: PreparedQuery,
    components: &'a [i16],
    shortlist: Shortlist,
    /// Positions whose records are being prefetched.
    queue: Vec<usize>,
}

impl Scan<'_> {
    /// Compares every record.
    fn scan_records(&mut self, live: LivePositions<'_>) -> Result<(), SegmentError> {
        for (at, word) in live.words() {
            if word.count_ones() < 16 {
                self.enqueue(ones(word).map(|i| 64 * at + i))?;
                continue;
            }
            // Records this dense are read sequentially, which needs no prefetching.
            let end = live.length.min(64 * at + 64);
            let bytes = self.segment.container.bytes(self.segment.records(64 * at..end))?;
            let stride = self.segment.parameters.stride();
            for i in ones(word) {
                let record = &bytes[i * stride..(i + 1) * stride];
                self.compare(64 * at + i, record);
            }
        }
        self.drain_queue()
    }

    /// Compares the records whose codes pass the filter for the nearest found so far.
    fn scan_codes(&mut self, live: LivePositions<'_>, tables: &[u8]) -> Result<(), SegmentError> {
        let segment = self.segment;
        let block = segment.parameters.block();
        let mut filter = self.query.code_filter(f64::INFINITY, SIGMAS);
        for (at, word) in live.words() {
            for half in 0..2 {
                let live = (word >> (CODES_PER_BLOCK * half)) as u32;
                if live == 0 {
                    continue;
                }
                let start = segment.codes.start + (2 * at + half) * block;
                let bytes = segment.container.bytes(start..start + block)?;
                // Hardware prefetchers stop at page boundaries.
                prefetch(segment.container.unchecked(start + 2 * block..start + 3 * block));
                let passed = segment.kernel.filter_codes(bytes, tables, filter) & live;
                if passed != 0 {
                    let first = 64 * at + CODES_PER_BLOCK * half;
                    self.enqueue(ones(passed.into()).map(|i| first + i))?;
                    filter = self.query.code_filter(self.shortlist.limit(), SIGMAS);
                }
            }
        }
        self.drain_queue()
    }

    fn enqueue(&mut self, positions: impl Iterator<Item = usize>) -> Result<(), SegmentError> {
        for position in positions {
            let range = self.segment.records(position..position + 1);
            prefetch(self.segment.container.unchecked(range));
            self.queue.push(position);
        }
        if self.queue.len() >= PREFETCH_QUEUE { self.drain_queue() } else { Ok(()) }
    }

    fn drain_queue(&mut self) -> Result<(), SegmentError> {
        let mut queue = std::mem::take(&mut self.queue);
        for position in queue.drain(..) {
            let range = self.segment.records(position..position + 1);
            let record = self.segment.container.bytes(range)?;
            self.compare(position, record);
        }
        self.queue = queue;
        Ok(())
    }

    #[inline]
    fn compare(&mut self, position: usize, record: &[u8]) {
        let estimate = self.query.estimate(record, self.components, self.segment.kernel);
        self.shortlist.offer(position, estimate);
    }
}
