//! The loops in plain Rust. Sums run in 16 lanes, always in the same order, so that
//! every processor gets the same result.

use super::{GROUP, Gate, Quantized};

const LANES: usize = 16;
/// Sums in f32 are this short before they go on in f64.
const SHORT: usize = 16 * LANES;

/// Floats in some form.
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

/// Little-endian, at any address.
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

/// The sums of N terms for each pair of components.
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

/// Adding this to a small number rounds it, and leaves it in the lowest bits.
const ROUND: f32 = 12_582_912.0;
/// More than the length of what is lost where squares of f32 become zero.
const VANISHING: f64 = 1e-18;

#[inline(always)]
pub(super) fn quantize(vector: &[f32], out: &mut [u8]) -> Quantized {
    let largest = vector.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
    let scale = largest / 127.0;
    // A scale too small to divide by leaves everything to the residual.
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
    let norm = squares[1].sqrt() * (1.0 + 4e-6) + VANISHING;
    // The second term covers the rounding of each difference, and of the vector.
    let residual = squares[0].sqrt() * (1.0 + 4e-6) + norm * 4e-7 + VANISHING;
    Quantized { scale, residual: above(residual), norm: above(norm) }
}

/// The next f32 that is not below.
fn above(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

#[inline(always)]
pub(super) fn dot_components(components: &[u8], query: &[i16]) -> i64 {
    // 512 products of 127 × 32,767 fit an i32.
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
pub(super) fn mix(values: &mut [f32], factors: &[f32], start: usize, length: usize) {
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

pub(super) fn pass(block: &[u8], tables: &[u8], gate: Gate) -> u32 {
    let (codes, factors) = block.split_at(tables.len() * GROUP / 32);
    let mut sums = [0u16; GROUP];
    for (bytes, pair) in codes.chunks_exact(GROUP).zip(tables.chunks_exact(32)) {
        for (sum, byte) in sums.iter_mut().zip(bytes) {
            let low = pair[usize::from(byte & 15)];
            let high = pair[16 + usize::from(byte >> 4)];
            *sum += u16::from(low) + u16::from(high);
        }
    }
    let (addends, slopes) = (&factors[..4 * GROUP], &factors[4 * GROUP..]);
    let mut mask = 0;
    for (position, sum) in sums.iter().enumerate() {
        let estimate = addends.one(position)
            - slopes.one(position) * (gate.step * f32::from(*sum) + gate.shift);
        mask |= u32::from(estimate <= gate.limit) << position;
    }
    mask
}
