//! The inner loops. Each is written once, in plain Rust that compilers turn into
//! vector instructions, and compiled a second time for AVX2; the two that need more
//! than that are written with intrinsics as well. Both ways give the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod plain;

#[cfg(test)]
mod tests;

/// Positions in a block of codes.
pub(crate) const GROUP: usize = 32;
/// The largest entry of a table: eight of them add up within a byte.
pub(crate) const MOST_ENTRY: u8 = 31;
/// Components of a query as integers are no larger.
pub(crate) const MOST_QUERY: f32 = 32_767.0;

/// Which instructions the loops use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    /// The best that this processor has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return Self(Level::Avx2);
        }
        Self::plain()
    }

    /// What every processor has.
    pub(crate) fn plain() -> Self {
        Self(Level::Plain)
    }

    /// Whether sums over codes cost less than products of components.
    pub(crate) fn has_fast_codes(self) -> bool {
        self != Self::plain()
    }
}

/// A quantized vector's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantized {
    pub(crate) scale: f32,
    /// The length of what the components leave out, rounded up.
    pub(crate) residual: f32,
    /// The length of the vector, rounded up.
    pub(crate) norm: f32,
}

/// What a block of codes is held against: positions pass whose
/// `addend − slope × (step × sum + shift)` is at most `limit`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate {
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
                    Level::Plain => plain::$name($($argument),*),
                    // SAFETY: this level comes only from `detect`, which found AVX2.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => unsafe { avx2::$name($($argument),*) },
                }
            })*
        }
    };
}

kernels! {
    /// The inner product; over the shorter length.
    fn dot(one: &[f32], other: &[f32]) -> f64;
    /// The inner product and the square of the second vector's length.
    fn dot_and_square(one: &[f32], other: &[f32]) -> (f64, f64);
    /// The square of the distance.
    fn distance(one: &[f32], other: &[f32]) -> f64;
    /// As `dot_and_square`; the second vector in little-endian bytes.
    fn dot_and_square_bytes(one: &[f32], other: &[u8]) -> (f64, f64);
    /// As `distance`; the second vector in little-endian bytes.
    fn distance_bytes(one: &[f32], other: &[u8]) -> f64;
    /// Components as signed bytes. Those of `out` beyond the vector stay as they are.
    fn quantize(vector: &[f32], out: &mut [u8]) -> Quantized;
    /// The inner product of signed bytes and a query of the same length, which is a
    /// multiple of 16.
    fn dot_components(components: &[u8], query: &[i16]) -> i64;
    /// Multiplies by `factors` and transforms `length` values from `start` on.
    fn mix(values: &mut [f32], factors: &[f32], start: usize, length: usize);
    /// The signs of the values, eight to a byte, and the sum of their magnitudes.
    fn signs(values: &[f32], out: &mut [u8]) -> f64;
    /// Which positions of a block of codes pass. `tables` has 16 entries for each four
    /// bits of a code.
    fn pass(block: &[u8], tables: &[u8], gate: Gate) -> u32;
}

/// So much is asked for ahead; the processor sees by itself where that leads.
const PREFETCHED: usize = 2048;

/// Asks for bytes that will be needed soon.
#[allow(unsafe_code)]
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64).take(PREFETCHED / 64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address within a slice; it reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
