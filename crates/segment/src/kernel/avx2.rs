//! The loops compiled for AVX2.

use std::arch::x86_64::*;

use super::{CODES_PER_BLOCK, CodeFilter, Quantized, plain};

macro_rules! recompiled {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $output:ty)?;)*) => {
        $(#[target_feature(enable = "avx2")]
        pub(super) fn $name($($argument: $kind),*) $(-> $output)? {
            plain::$name($($argument),*)
        })*
    };
}

recompiled! {
    fn dot(one: &[f32], other: &[f32]) -> f64;
    fn dot_and_square(one: &[f32], other: &[f32]) -> (f64, f64);
    fn distance(one: &[f32], other: &[f32]) -> f64;
    fn dot_and_square_bytes(one: &[f32], other: &[u8]) -> (f64, f64);
    fn distance_bytes(one: &[f32], other: &[u8]) -> f64;
    fn quantize(vector: &[f32], out: &mut [u8]) -> Quantized;
    fn walsh_hadamard(values: &mut [f32], factors: &[f32], start: usize, length: usize);
    fn signs(values: &[f32], out: &mut [u8]) -> f64;
}

/// Maximum number of products (127 × 32,767) whose sum fits into eight i32 lanes.
const SHORT: usize = 2048;

#[target_feature(enable = "avx2")]
pub(super) fn dot_components(components: &[u8], query: &[i16]) -> i64 {
    let mut total = 0;
    for (components, query) in components.chunks(SHORT).zip(query.chunks(SHORT)) {
        let mut sums = [_mm256_setzero_si256(); 2];
        let mut pairs = components.chunks_exact(32).zip(query.chunks_exact(32));
        for (c, q) in &mut pairs {
            sums[0] = _mm256_add_epi32(sums[0], products(&c[..16], &q[..16]));
            sums[1] = _mm256_add_epi32(sums[1], products(&c[16..], &q[16..]));
        }
        let done = components.len() / 32 * 32;
        if let (Some(c), Some(q)) = (components.get(done..done + 16), query.get(done..done + 16)) {
            sums[0] = _mm256_add_epi32(sums[0], products(c, q));
        }
        total += sum_of_lanes(sums[0]) + sum_of_lanes(sums[1]);
    }
    total
}

/// The products of 16 pairs, added pairwise.
#[target_feature(enable = "avx2")]
#[inline]
fn products(components: &[u8], query: &[i16]) -> __m256i {
    let components = _mm256_cvtepi8_epi16(load_128(components));
    _mm256_madd_epi16(components, load_words(query))
}

/// Lanes can be up to 2³¹, so they are added as i64.
#[target_feature(enable = "avx2")]
#[inline]
fn sum_of_lanes(lanes: __m256i) -> i64 {
    let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(lanes));
    let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(lanes));
    let four = _mm256_add_epi64(low, high);
    let two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four));
    _mm_extract_epi64::<0>(two) + _mm_extract_epi64::<1>(two)
}

#[target_feature(enable = "avx2")]
pub(super) fn filter_codes(block: &[u8], tables: &[u8], filter: CodeFilter) -> u32 {
    let (codes, factors) = block.split_at(tables.len() * CODES_PER_BLOCK / 32);
    let nibble = _mm256_set1_epi8(15);
    let byte = _mm256_set1_epi16(255);
    let (mut even, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    // Four bytes of each code at a time, because eight entries fit into a byte.
    for (codes, tables) in codes.chunks_exact(4 * CODES_PER_BLOCK).zip(tables.chunks_exact(4 * 32))
    {
        let mut sum = _mm256_setzero_si256();
        for (bytes, pair) in codes.chunks_exact(CODES_PER_BLOCK).zip(tables.chunks_exact(32)) {
            let bytes = load_256(bytes);
            let low = _mm256_and_si256(bytes, nibble);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
            let low_table = _mm256_broadcastsi128_si256(load_128(&pair[..16]));
            let high_table = _mm256_broadcastsi128_si256(load_128(&pair[16..]));
            sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(low_table, low));
            sum = _mm256_add_epi8(sum, _mm256_shuffle_epi8(high_table, high));
        }
        even = _mm256_add_epi16(even, _mm256_and_si256(sum, byte));
        odd = _mm256_add_epi16(odd, _mm256_srli_epi16::<8>(sum));
    }
    let first = _mm256_unpacklo_epi16(even, odd);
    let second = _mm256_unpackhi_epi16(even, odd);
    let eights = [
        _mm256_castsi256_si128(first),
        _mm256_castsi256_si128(second),
        _mm256_extracti128_si256::<1>(first),
        _mm256_extracti128_si256::<1>(second),
    ];
    let (addends, slopes) = factors.split_at(4 * CODES_PER_BLOCK);
    let mut mask = 0;
    for (at, sums) in eights.into_iter().enumerate() {
        let sums = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sums));
        let addend = _mm256_castsi256_ps(load_256(&addends[32 * at..32 * at + 32]));
        let slope = _mm256_castsi256_ps(load_256(&slopes[32 * at..32 * at + 32]));
        let product = _mm256_add_ps(
            _mm256_mul_ps(_mm256_set1_ps(filter.step), sums),
            _mm256_set1_ps(filter.shift),
        );
        let estimate = _mm256_sub_ps(addend, _mm256_mul_ps(slope, product));
        let below = _mm256_cmp_ps::<_CMP_LE_OQ>(estimate, _mm256_set1_ps(filter.limit));
        mask |= (_mm256_movemask_ps(below) as u32) << (8 * at);
    }
    mask
}

#[allow(unsafe_code)]
#[target_feature(enable = "avx2")]
#[inline]
fn load_128(bytes: &[u8]) -> __m128i {
    assert!(bytes.len() == 16);
    // SAFETY: the slice has the 16 bytes that are read, and the load is unaligned.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[allow(unsafe_code)]
#[target_feature(enable = "avx2")]
#[inline]
fn load_256(bytes: &[u8]) -> __m256i {
    assert!(bytes.len() == 32);
    // SAFETY: the slice has the 32 bytes that are read, and the load is unaligned.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[allow(unsafe_code)]
#[target_feature(enable = "avx2")]
#[inline]
fn load_words(words: &[i16]) -> __m256i {
    assert!(words.len() == 16);
    // SAFETY: the slice has the 32 bytes that are read, and the load is unaligned.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
