//! Sums of rows. All additions are 32-bit float additions in an order that depends only on the
//! text, so the result is bit-identical on every machine.

use crate::model::{DIMENSION, rows};

/// A text's vector: [`DIMENSION`] numbers, normalised to length one.
pub type Vector = [f32; DIMENSION];

/// The maximum number of distinct rows that are collected before they are added.
const BATCH: usize = 128;

/// How many rows are added at a time, and how many of their numbers, so that sums stay in
/// registers and rows in the first-level cache.
const GROUP: usize = 16;
const BLOCK: usize = 32;

/// Adds up rows. Program text is repetitive, so repeated rows within a batch are only counted.
pub(crate) struct Sum<'v> {
    total: &'v mut Vector,
    pending: [PendingRow; BATCH],
    count: usize,
    /// A hash table from row to its index in the batch, from 1.
    table: [u8; TABLE_SLOTS],
}

const TABLE_SLOTS: usize = 4 * BATCH;

#[derive(Clone, Copy, Default)]
struct PendingRow {
    row: u16,
    times: u16,
}

impl<'v> Sum<'v> {
    /// A sum that starts at zero.
    pub(crate) fn in_place(total: &'v mut Vector) -> Self {
        total.fill(0.0);
        Self { total, pending: [PendingRow::default(); BATCH], count: 0, table: [0; TABLE_SLOTS] }
    }

    #[inline]
    pub(crate) fn add(&mut self, row: u16) {
        let mut slot = usize::from(row.wrapping_mul(0x9e35)) % TABLE_SLOTS;
        while let Some(index) = usize::from(self.table[slot]).checked_sub(1) {
            let known = &mut self.pending[index];
            if known.row == row {
                known.times += 1;
                if known.times == u16::MAX {
                    self.flush();
                }
                return;
            }
            slot = (slot + 1) % TABLE_SLOTS;
        }
        self.pending[self.count] = PendingRow { row, times: 1 };
        self.count += 1;
        self.table[slot] = self.count as u8;
        if self.count == BATCH {
            self.flush();
        }
    }

    /// Normalises the sum. Returns false if it is zero.
    pub(crate) fn finish(mut self) -> bool {
        self.flush();
        normalize(self.total)
    }

    fn flush(&mut self) {
        for group in self.pending[..self.count].chunks(GROUP) {
            add_rows(self.total, group);
        }
        self.count = 0;
        self.table.fill(0);
    }
}

/// Normalises a vector. Returns false if it is zero or not finite, and zeroes it.
pub(crate) fn normalize(vector: &mut Vector) -> bool {
    let mut squares = [0.0_f32; 8];
    for part in vector.as_chunks::<8>().0 {
        for (square, number) in squares.iter_mut().zip(part) {
            *square += number * number;
        }
    }
    let length = squares.iter().sum::<f32>().sqrt();
    if length > 0.0 && length.is_finite() {
        vector.iter_mut().for_each(|number| *number /= length);
        true
    } else {
        vector.fill(0.0);
        false
    }
}

fn add_rows(total: &mut Vector, group: &[PendingRow]) {
    let (rows, scales) = rows();
    for (block, sums) in total.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let mut added = *sums;
        for pending in group {
            let row = usize::from(pending.row);
            let scale = f32::from_le_bytes(scales[row]) * f32::from(pending.times);
            let numbers = &rows[row].as_chunks::<BLOCK>().0[block];
            for (sum, &number) in added.iter_mut().zip(numbers) {
                *sum += f32::from(number as i8) * scale;
            }
        }
        *sums = added;
    }
}
