//! The loops in plain Rust. Sums use 16 lanes in a fixed order, so that every processor computes
//! the same result.

use super::{CODES_PER_BLOCK, CodeFilter, Quantized};

const LANES: usize = 16;
/// Number of terms that are summed in f32 before the sum is added to an f64.
const SHORT: usize = 16 * LANES;

/// A sequence of f32, as a slice or as bytes.
trait Floats: Copy {
    fn length(self) -> usize;
    fn part(self, start: usize, end: usize) -> Self;
    fn lanes(self, at: usize) -> [f32; LANES];
    fn one(self, at: usize) -> f32;
}

impl Floats for &[f32] {
    #[inline(always)]
    fn length(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn part(self, start: usize, end: usize) -> Self {
        &self[start..end]
    }

    #[inline(always)]
    fn lanes(self, at: usize) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        lanes.copy_from_slice(&self[at..at + LANES]);
        lanes
    }

    #[inline(always)]
    fn one(self, at: usize) -> f32 {
        self[at]
    }
}

/// Little-endian, with any alignment.
impl Floats for &[u8] {
    #[inline(always)]
    fn length(self) -> usize {
        self.len() / 4
    }

    #[inline(always)]
    fn part(self, start: usize, end: usize) -> Self {
        &self[4 * start..4 * end]
    }

    #[inline(always)]
    fn lanes(self, at: usize) -> [f32; LANES] {
        let bytes = &self[4 * at..4 * (at + LANES)];
        std::array::from_fn(|lane| {
            f32::from_le_bytes([
                bytes[4 * lane],
                bytes[4 * lane + 1],
                bytes[4 * lane + 2],
                bytes[4 * lane + 3],
            ])
        })
    }

    #[inline(always)]
    fn one(self, at: usize) -> f32 {
        f32::from_le_bytes([self[4 * at], self[4 * at + 1], self[4 * at + 2], self[4 * at + 3]])
    }
}

/// Sums N terms over all pairs of components.
#[inline(always)]
fn sums<F: Floats, const N: usize>(
    one: &[f32],
    other: F,
    terms: impl Fn(f32, f32) -> [f32; N],
) -> [f64; N] {
    let length = one.len().min(other.length());
    let mut totals = [0.0; N];
    let mut start = 0;
    while start < length {
        let end = length.min(start + SHORT);
        let (a, b) = (one.part(start, end), other.part(start, end));
        let mut lanes = [[0.0f32; LANES]; N];
        let whole = (end - start) / LANES;
        for at in 0..whole {
            let (x, y) = (a.lanes(at * LANES), b.lanes(at * LANES));
            for lane in 0..LANES {
                let new = terms(x[lane], y[lane]);
                for sum in 0..N {
                    lanes[sum][lane] += new[sum];
                }
            }
        }
        for at in whole * LANES..end - start {
            let new = terms(a.one(at), b.one(at));
            for sum in 0..N {
                totals[sum] += f64::from(new[sum]);
            }
        }
        for sum in 0..N {
            totals[sum] += lanes[sum].iter().map(|lane| f64::from(*lane)).sum::<f64>();
        }
        start = end;
    }
    totals
}

#[inline(always)]
pub(super) fn dot(one: &[f32], other: &[f32]) -> f64 {
    sums(one, other, |x, y| [x * y])[0]
}

#[inline(always)]
pub(super) fn dot_and_square(one: &[f32], other: &[f32]) -> (f64, f64) {
    let [dot, square] = sums(one, other, |x, y| [x * y, y * y]);
    (dot, square)
}

#[inline(always)]
pub(super) fn distance(one: &[f32], other: &[f32]) -> f64 {
    sums(one, other, |x, y| [(x - y) * (x - y)])[0]
}

#[inline(always)]
pub(super) fn dot_and_square_bytes(one: &[f32], other: &[u8]) -> (f64, f64) {
    let [dot, square] = sums(one, other, |x, y| [x * y, y * y]);
    (dot, square)
}

#[inline(always)]
pub(super) fn distance_bytes(one: &[f32], other: &[u8]) -> f64 {
    sums(one, other, |x, y| [(x - y) * (x - y)])[0]
}

/// Adding this to a small number rounds it and puts the integer into the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// Upper bound of the length lost when squares underflow in f32.
const UNDERFLOW: f64 = 1e-18;

#[inline(always)]
pub(super) fn quantize(vector: &[f32], out: &mut [u8]) -> Quantized {
    let largest = vector.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    let scale = largest / 127.0;
    // If the scale is too small to divide by, the residual is the whole vector.
    let (scale, inverse) =
        if scale >= f32::MIN_POSITIVE { (scale, scale.recip()) } else { (0.0, 0.0) };
    for (x, component) in vector.iter().zip(out.iter_mut()) {
        let bits = (x * inverse + ROUND).to_bits();
        *component = bits.wrapping_sub(ROUND.to_bits()) as u8;
    }
    let mut squares = [0.0f64; 2];
    for (part, components) in vector.chunks(SHORT).zip(out.chunks(SHORT)) {
        let mut lanes = [[0.0f32; LANES]; 2];
        for (x, c) in part.chunks(LANES).zip(components.chunks(LANES)) {
            for (lane, (x, c)) in x.iter().zip(c).enumerate() {
                let rest = x - scale * f32::from(*c as i8);
                lanes[0][lane] += rest * rest;
                lanes[1][lane] += x * x;
            }
        }
        for (square, lanes) in squares.iter_mut().zip(lanes) {
            *square += lanes.iter().map(|lane| f64::from(*lane)).sum::<f64>();
        }
    }
    let norm = squares[1].sqrt() * (1.0 + 4e-6) + UNDERFLOW;
    // The second term covers the rounding of each difference and of the vector.
    let residual = squares[0].sqrt() * (1.0 + 4e-6) + norm * 4e-7 + UNDERFLOW;
    Quantized { scale, residual: round_up(residual), norm: round_up(norm) }
}

/// The smallest f32 that is not less than `value`.
fn round_up(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) < value { nearest.next_up() } else { nearest }
}

#[inline(always)]
pub(super) fn dot_components(components: &[u8], query: &[i16]) -> i64 {
    // The sum of 512 products (127 × 32,767) fits into an i32.
    let part = |components: &[u8], query: &[i16]| {
        let mut sum = 0i32;
        for (component, x) in components.iter().zip(query) {
            sum += i32::from(*component as i8) * i32::from(*x);
        }
        i64::from(sum)
    };
    components.chunks(512).zip(query.chunks(512)).map(|(c, q)| part(c, q)).sum()
}

#[inline(always)]
pub(super) fn walsh_hadamard(values: &mut [f32], factors: &[f32], start: usize, length: usize) {
    for (value, factor) in values.iter_mut().zip(factors) {
        *value *= factor;
    }
    let values = &mut values[start..start + length];
    for eight in values.chunks_exact_mut(8) {
        let mut v = [0.0f32; 8];
        v.copy_from_slice(eight);
        let v: [f32; 8] =
            std::array::from_fn(|i| if i & 1 == 0 { v[i] + v[i + 1] } else { v[i - 1] - v[i] });
        let v: [f32; 8] =
            std::array::from_fn(|i| if i & 2 == 0 { v[i] + v[i + 2] } else { v[i - 2] - v[i] });
        let v: [f32; 8] =
            std::array::from_fn(|i| if i & 4 == 0 { v[i] + v[i + 4] } else { v[i - 4] - v[i] });
        eight.copy_from_slice(&v);
    }
    let mut half = 8;
    while half < length {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

#[inline(always)]
pub(super) fn signs(values: &[f32], out: &mut [u8]) -> f64 {
    let mut total = 0.0;
    for (part, bytes) in values.chunks(SHORT).zip(out.chunks_mut(SHORT / 8)) {
        let mut lanes = [0.0f32; 8];
        for (eight, byte) in part.chunks(8).zip(bytes) {
            *byte = 0;
            for (lane, value) in eight.iter().enumerate() {
                lanes[lane] += value.abs();
                *byte |= u8::from(*value >= 0.0) << lane;
            }
        }
        total += lanes.iter().map(|lane| f64::from(*lane)).sum::<f64>();
    }
    total
}

pub(super) fn filter_codes(block: &[u8], tables: &[u8], filter: CodeFilter) -> u32 {
    let (codes, factors) = block.split_at(tables.len() * CODES_PER_BLOCK / 32);
    let mut sums = [0u16; CODES_PER_BLOCK];
    for (bytes, pair) in codes.chunks_exact(CODES_PER_BLOCK).zip(tables.chunks_exact(32)) {
        for (sum, byte) in sums.iter_mut().zip(bytes) {
            let low = pair[usize::from(byte & 15)];
            let high = pair[16 + usize::from(byte >> 4)];
            *sum += u16::from(low) + u16::from(high);
        }
    }
    let (addends, slopes) = (&factors[..4 * CODES_PER_BLOCK], &factors[4 * CODES_PER_BLOCK..]);
    let mut mask = 0;
    for (position, sum) in sums.iter().enumerate() {
        let estimate = addends.one(position)
            - slopes.one(position) * (filter.step * f32::from(*sum) + filter.shift);
        mask |= u32::from(estimate <= filter.limit) << position;
    }
    mask
}
