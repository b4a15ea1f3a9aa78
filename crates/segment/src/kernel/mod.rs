//! The inner loops of vector search. Each is written in plain Rust that compilers vectorize, and
//! compiled a second time for AVX2. Two of them also have an AVX2 version with intrinsics. All
//! versions give bit-identical results.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod plain;

#[cfg(test)]
mod tests;

/// Number of positions in a block of codes.
pub(crate) const CODES_PER_BLOCK: usize = 32;
/// Maximum entry of a lookup table, so that the sum of eight fits into a byte.
pub(crate) const MAX_TABLE_ENTRY: u8 = 31;
/// Maximum magnitude of a quantized query component.
pub(crate) const MAX_QUERY_COMPONENT: f32 = 32_767.0;

/// The inner loops for one instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(InstructionSet);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstructionSet {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    /// For the best instruction set of this processor.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return Self(InstructionSet::Avx2);
        }
        Self::plain()
    }

    /// For any processor.
    pub(crate) fn plain() -> Self {
        Self(InstructionSet::Plain)
    }

    /// Whether filtering codes is faster than computing products of components.
    pub(crate) fn has_fast_codes(self) -> bool {
        self != Self::plain()
    }
}

/// The factors of a quantized vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantized {
    pub(crate) scale: f32,
    /// The length of the quantization error, rounded up.
    pub(crate) residual: f32,
    /// The length of the vector, rounded up.
    pub(crate) norm: f32,
}

/// A filter for blocks of codes. Positions pass if `addend − slope × (step × sum + shift)` is at
/// most `limit`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeFilter {
    pub(crate) step: f32,
    pub(crate) shift: f32,
    pub(crate) limit: f32,
}

macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $(-> $output:ty)?;)*) => {
        impl Kernel {
            $($(#[$doc])*
            #[allow(unsafe_code)]
            #[inline]
            pub(crate) fn $name(self, $($argument: $kind),*) $(-> $output)? {
                match self.0 {
                    InstructionSet::Plain => plain::$name($($argument),*),
                    // SAFETY: only `detect` creates this variant, after it has detected AVX2.
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx2 => unsafe { avx2::$name($($argument),*) },
                }
            })*
        }
    };
}

kernels! {
    /// The inner product, over the shorter length.
    fn dot(one: &[f32], other: &[f32]) -> f64;
    /// The inner product and the squared length of `other`.
    fn dot_and_square(one: &[f32], other: &[f32]) -> (f64, f64);
    /// The squared Euclidean distance.
    fn distance(one: &[f32], other: &[f32]) -> f64;
    /// As `dot_and_square`, with `other` in little-endian bytes.
    fn dot_and_square_bytes(one: &[f32], other: &[u8]) -> (f64, f64);
    /// As `distance`, with `other` in little-endian bytes.
    fn distance_bytes(one: &[f32], other: &[u8]) -> f64;
    /// Quantizes components to signed bytes. Does not change `out` beyond the vector's length.
    fn quantize(vector: &[f32], out: &mut [u8]) -> Quantized;
    /// The inner product of signed bytes and a query of the same length, which must be a
    /// multiple of 16.
    fn dot_components(components: &[u8], query: &[i16]) -> i64;
    /// Multiplies by `factors`, then applies an unscaled Walsh-Hadamard transform to `length`
    /// values from `start` on.
    fn walsh_hadamard(values: &mut [f32], factors: &[f32], start: usize, length: usize);
    /// Writes the signs of the values, eight per byte. Returns the sum of their magnitudes.
    fn signs(values: &[f32], out: &mut [u8]) -> f64;
    /// A bit mask of the positions of a block that pass. `tables` has 16 entries for every four
    /// bits of a code.
    fn filter_codes(block: &[u8], tables: &[u8], filter: CodeFilter) -> u32;
}

/// Maximum number of bytes to prefetch; the processor's own prefetcher takes over from there.
#[cfg(target_arch = "x86_64")]
const PREFETCHED: usize = 2048;

/// Prefetches bytes that will be needed soon.
#[allow(unsafe_code)]
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64).take(PREFETCHED / 64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address within a slice, which reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
