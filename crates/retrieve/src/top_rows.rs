//! Keeps the best rows of a search.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use isolith_protocol::{NearRecord, StoreError};
use isolith_store::Snapshot;
use isolith_types::Hit;

/// The best `limit` rows so far, by distance or by score. Equal rows are ordered by number.
pub(crate) struct TopRows {
    limit: usize,
    /// 1 if low values are better, −1 if high values are.
    sign: f32,
    /// The worst row is on top.
    heap: BinaryHeap<RankedRow>,
}

#[derive(Debug, Clone, Copy)]
struct RankedRow {
    key: f32,
    row: u64,
}

/// The distance or the score that a row was ranked by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowMeasure {
    pub(crate) distance: Option<f32>,
    pub(crate) score: Option<f32>,
}

impl TopRows {
    /// Keeps the rows with the lowest values.
    pub(crate) fn lowest(limit: usize) -> Self {
        Self { limit, sign: 1.0, heap: BinaryHeap::with_capacity(limit.min(1024) + 1) }
    }

    /// Keeps the rows with the highest values.
    pub(crate) fn highest(limit: usize) -> Self {
        Self { sign: -1.0, ..Self::lowest(limit) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }

    pub(crate) fn offer(&mut self, row: u64, value: f32) {
        let ranked = RankedRow { key: value * self.sign, row };
        if self.heap.len() < self.limit {
            self.heap.push(ranked);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && ranked < *worst
        {
            *worst = ranked;
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.heap.len() >= self.limit
    }

    /// The value of the worst row kept.
    pub(crate) fn worst(&self) -> f32 {
        self.heap.peek().map_or(f32::INFINITY, |worst| worst.key) * self.sign
    }

    /// Loads the records of the rows, best first; rows that no longer exist are skipped.
    pub(crate) fn into_hits(
        self,
        snapshot: &Snapshot<'_>,
        measure: fn(f32) -> RowMeasure,
    ) -> Result<Vec<Hit>, StoreError> {
        let ranked = self.into_ranked();
        let rows: Vec<u64> = ranked.iter().map(|(row, _)| *row).collect();
        let records = snapshot.records(&rows, false)?;
        let hits = ranked.iter().zip(records).filter_map(|((_, value), stored)| {
            let record = stored?.record;
            let RowMeasure { distance, score } = measure(*value);
            let (document, metadata) = (record.document, record.metadata);
            let (fused, why) = (None, Vec::new());
            Some(Hit { id: record.id, distance, score, fused, why, document, metadata })
        });
        Ok(hits.collect())
    }

    /// Loads the records of the rows with their distances, best first; rows that no longer exist
    /// are skipped.
    pub(crate) fn into_records(
        self,
        snapshot: &Snapshot<'_>,
        with_vectors: bool,
    ) -> Result<Vec<NearRecord>, StoreError> {
        let ranked = self.into_ranked();
        let rows: Vec<u64> = ranked.iter().map(|(row, _)| *row).collect();
        let records = snapshot.records(&rows, with_vectors)?;
        let found = ranked.iter().zip(records).filter_map(|((_, distance), stored)| {
            Some(NearRecord { record: stored?.record, distance: *distance })
        });
        Ok(found.collect())
    }

    /// Rows and values, best first.
    pub(crate) fn into_ranked(self) -> Vec<(u64, f32)> {
        let sign = self.sign;
        self.heap.into_sorted_vec().iter().map(|ranked| (ranked.row, ranked.key * sign)).collect()
    }
}

impl Ord for RankedRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for RankedRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedRow {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedRow {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_rows_come_first_and_equal_ones_by_number() {
        let values = [(5, 0.3), (1, 0.1), (4, 0.1), (2, 0.9), (3, 0.2)];
        let mut best = TopRows::lowest(3);
        values.iter().for_each(|(row, value)| best.offer(*row, *value));
        assert!(best.is_full() && best.worst() == 0.2);
        assert_eq!(best.into_ranked(), [(1, 0.1), (4, 0.1), (3, 0.2)]);
        let mut best = TopRows::highest(2);
        values.iter().for_each(|(row, value)| best.offer(*row, *value));
        assert_eq!(best.into_ranked(), [(2, 0.9), (5, 0.3)]);
    }
}
