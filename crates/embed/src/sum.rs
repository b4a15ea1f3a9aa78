//! Sums of rows. All additions are plain ones of 32-bit floats, in an order that the
//! text alone decides, so that every machine comes to the same bits.

use crate::model::{DIMENSION, rows};

/// A text's vector: [`DIMENSION`] numbers, of length one.
pub type Vector = [f32; DIMENSION];

/// How many different rows wait until they are added.
const BATCH: usize = 128;

/// How many rows are added at a time, and how many of their numbers, so that sums stay
/// in registers and rows in the nearest cache.
const GROUP: usize = 16;
const BLOCK: usize = 32;

/// Adds up rows as they come. Program text repeats itself: a row that came before in
/// the same batch is only counted.
pub(crate) struct Sum<'v> {
    total: &'v mut Vector,
    waiting: [Waiting; BATCH],
    count: usize,
    /// Where a row waits, from 1, at a place that its number says.
    places: [u8; PLACES],
}

const PLACES: usize = 4 * BATCH;

#[derive(Clone, Copy, Default)]
struct Waiting {
    row: u16,
    times: u16,
}

impl<'v> Sum<'v> {
    /// A sum that starts at zero.
    pub(crate) fn in_place(total: &'v mut Vector) -> Self {
        total.fill(0.0);
        Self { total, waiting: [Waiting::default(); BATCH], count: 0, places: [0; PLACES] }
    }

    #[inline]
    pub(crate) fn add(&mut self, row: u16) {
        let mut place = usize::from(row.wrapping_mul(0x9e35)) % PLACES;
        while let Some(index) = usize::from(self.places[place]).checked_sub(1) {
            let known = &mut self.waiting[index];
            if known.row == row {
                known.times += 1;
                if known.times == u16::MAX {
                    self.flush();
                }
                return;
            }
            place = (place + 1) % PLACES;
        }
        self.waiting[self.count] = Waiting { row, times: 1 };
        self.count += 1;
        self.places[place] = self.count as u8;
        if self.count == BATCH {
            self.flush();
        }
    }

    /// Makes the sum unit. False if there is nothing to make it from; it is zero then.
    pub(crate) fn finish(mut self) -> bool {
        self.flush();
        make_unit(self.total)
    }

    fn flush(&mut self) {
        for group in self.waiting[..self.count].chunks(GROUP) {
            add_rows(self.total, group);
        }
        self.count = 0;
        self.places.fill(0);
    }
}

/// Makes a vector unit, unless it is zero: then it stays so, and false is returned.
pub(crate) fn make_unit(vector: &mut Vector) -> bool {
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

fn add_rows(total: &mut Vector, group: &[Waiting]) {
    let (rows, scales) = rows();
    for (block, sums) in total.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        let mut added = *sums;
        for waiting in group {
            let row = usize::from(waiting.row);
            let scale = f32::from_le_bytes(scales[row]) * f32::from(waiting.times);
            let numbers = &rows[row].as_chunks::<BLOCK>().0[block];
            for (sum, &number) in added.iter_mut().zip(numbers) {
                *sum += f32::from(number as i8) * scale;
            }
        }
        *sums = added;
    }
}
