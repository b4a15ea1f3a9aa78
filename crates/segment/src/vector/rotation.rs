use crate::kernel::Kernel;

/// Steps of a rotation: front, end, front, end.
const STEPS: usize = 4;

/// A random orthogonal transform that costs n log n. After it, a vector's length is
/// spread over all its components, so that their signs say as much as they can.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    bits: usize,
    /// The largest power of two that fits.
    mixed: usize,
    /// Random signs for each step, with the transform's scale where it applies.
    factors: Vec<f32>,
    kernel: Kernel,
}

impl Rotation {
    /// For vectors of `bits` components, at least 8.
    pub(super) fn new(bits: usize, seed: u64, kernel: Kernel) -> Self {
        let mixed = 1 << bits.ilog2();
        let scale = (mixed as f32).sqrt().recip();
        let mut random = SplitMix(seed);
        let mut factors = Vec::with_capacity(STEPS * bits);
        for step in 0..STEPS {
            let start = Self::start(step, bits, mixed);
            for at in 0..bits {
                let sign = if random.next() >> 63 == 0 { 1.0 } else { -1.0 };
                let within = (start..start + mixed).contains(&at);
                factors.push(if within { sign * scale } else { sign });
            }
        }
        Self { bits, mixed, factors, kernel }
    }

    pub(super) fn apply(&self, values: &mut [f32]) {
        for (step, factors) in self.factors.chunks_exact(self.bits).enumerate() {
            let start = Self::start(step, self.bits, self.mixed);
            self.kernel.mix(values, factors, start, self.mixed);
        }
    }

    fn start(step: usize, bits: usize, mixed: usize) -> usize {
        if step.is_multiple_of(2) { 0 } else { bits - mixed }
    }
}

/// A small generator; the format depends on its sequence.
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
    fn lengths_and_products_are_kept_and_spread() {
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
    fn the_sequence_of_the_format_is_fixed() {
        let mut random = SplitMix(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
