use crate::kernel::Kernel;

/// Number of steps, which alternately transform the front and the end.
const STEPS: usize = 4;

/// A random orthogonal transform in O(n log n). It spreads a vector's length evenly over its
/// components, so that their signs carry as much information as possible.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    bits: usize,
    /// Number of components that a step transforms: the largest power of two that fits.
    span: usize,
    /// Random signs for each step, multiplied by the scale of the transform where it applies.
    factors: Vec<f32>,
    kernel: Kernel,
}

impl Rotation {
    /// For vectors of `bits` components, at least 8.
    pub(super) fn new(bits: usize, seed: u64, kernel: Kernel) -> Self {
        let span = 1 << bits.ilog2();
        let scale = (span as f32).sqrt().recip();
        let mut random = SplitMix(seed);
        let mut factors = Vec::with_capacity(STEPS * bits);
        for step in 0..STEPS {
            let start = Self::start(step, bits, span);
            for at in 0..bits {
                let sign = if random.next() >> 63 == 0 { 1.0 } else { -1.0 };
                let within = (start..start + span).contains(&at);
                factors.push(if within { sign * scale } else { sign });
            }
        }
        Self { bits, span, factors, kernel }
    }

    pub(super) fn apply(&self, values: &mut [f32]) {
        for (step, factors) in self.factors.chunks_exact(self.bits).enumerate() {
            let start = Self::start(step, self.bits, self.span);
            self.kernel.walsh_hadamard(values, factors, start, self.span);
        }
    }

    fn start(step: usize, bits: usize, span: usize) -> usize {
        if step.is_multiple_of(2) { 0 } else { bits - span }
    }
}

/// SplitMix64. Its sequence is part of the file format.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preserves_products_and_spreads_lengths() {
        for bits in [32, 64, 96, 128, 384, 1536] {
            let rotation = Rotation::new(bits, 7, Kernel::detect());
            let mut one = vec![0.0; bits];
            let mut other = vec![0.0; bits];
            one[bits / 3] = 3.0;
            other[bits / 3] = 2.0;
            other[0] += 1.0;
            rotation.apply(&mut one);
            rotation.apply(&mut other);
            let dot: f32 = one.iter().zip(&other).map(|(x, y)| x * y).sum();
            let square: f32 = one.iter().map(|x| x * x).sum();
            assert!((dot - 6.0).abs() < 1e-4, "{bits}: {dot}");
            assert!((square - 9.0).abs() < 1e-4, "{bits}: {square}");
            let largest = one.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            assert!(largest < 3.0 * 6.0 / (bits as f32).sqrt(), "{bits}: {largest}");
        }
    }

    #[test]
    fn random_sequence_is_fixed() {
        let mut random = SplitMix(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
