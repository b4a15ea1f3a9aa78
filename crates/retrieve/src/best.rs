//! The best rows of a search.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use isolith_protocol::StoreError;
use isolith_store::Snapshot;
use isolith_types::Hit;

/// The best rows so far, by distance or by score. Rows that are equally good stand in
/// the order of their numbers.
pub(crate) struct Best {
    want: usize,
    /// 1 if small measures are good, −1 if large ones are.
    sign: f32,
    /// A heap with the last on top.
    heap: BinaryHeap<Ranked>,
}

#[derive(Debug, Clone, Copy)]
struct Ranked {
    key: f32,
    row: u64,
}

/// What a row was ranked by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) distance: Option<f32>,
    pub(crate) score: Option<f32>,
}

impl Best {
    /// The rows with the smallest measures.
    pub(crate) fn smallest(want: usize) -> Self {
        Self { want, sign: 1.0, heap: BinaryHeap::with_capacity(want.min(1024) + 1) }
    }

    /// The rows with the largest measures.
    pub(crate) fn largest(want: usize) -> Self {
        Self { sign: -1.0, ..Self::smallest(want) }
    }

    pub(crate) fn want(&self) -> usize {
        self.want
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }

    pub(crate) fn offer(&mut self, row: u64, measure: f32) {
        let ranked = Ranked { key: measure * self.sign, row };
        if self.heap.len() < self.want {
            self.heap.push(ranked);
        } else if let Some(mut last) = self.heap.peek_mut()
            && ranked < *last
        {
            *last = ranked;
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.heap.len() >= self.want
    }

    /// The measure of the last row.
    pub(crate) fn last(&self) -> f32 {
        self.heap.peek().map_or(f32::INFINITY, |last| last.key) * self.sign
    }

    /// The records of these rows, the best first.
    pub(crate) fn into_hits(
        self,
        snapshot: &Snapshot<'_>,
        measured: fn(f32) -> Measured,
    ) -> Result<Vec<Hit>, StoreError> {
        let ranked = self.into_ranked();
        let rows: Vec<u64> = ranked.iter().map(|(row, _)| *row).collect();
        let records = snapshot.records(&rows, false)?;
        let hits = ranked.iter().zip(records).filter_map(|((_, measure), stored)| {
            let record = stored?.record;
            let Measured { distance, score } = measured(*measure);
            let (document, metadata) = (record.document, record.metadata);
            Some(Hit { id: record.id, distance, score, document, metadata })
        });
        Ok(hits.collect())
    }

    /// Rows and measures, the best first.
    pub(crate) fn into_ranked(self) -> Vec<(u64, f32)> {
        let sign = self.sign;
        self.heap.into_sorted_vec().iter().map(|ranked| (ranked.row, ranked.key * sign)).collect()
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_equals_by_row() {
        let measures = [(5, 0.3), (1, 0.1), (4, 0.1), (2, 0.9), (3, 0.2)];
        let mut best = Best::smallest(3);
        measures.iter().for_each(|(row, measure)| best.offer(*row, *measure));
        assert!(best.is_full() && best.last() == 0.2);
        assert_eq!(best.into_ranked(), [(1, 0.1), (4, 0.1), (3, 0.2)]);
        let mut best = Best::largest(2);
        measures.iter().for_each(|(row, measure)| best.offer(*row, *measure));
        assert_eq!(best.into_ranked(), [(2, 0.9), (5, 0.3)]);
    }
}
