use isolith_types::Metric;

use crate::exact;

/// Codes pay for themselves from here on.
const FEWEST_BITS: usize = 64;
/// Beyond this, sums over codes would leave a u16.
const MOST_BITS: usize = 8192;
/// A vector has no more components.
pub(super) const MOST_DIMENSIONS: usize = 65_536;
/// Bytes of a record before its components: scale, residual, norm, addend.
pub(super) const RECORD_HEAD: usize = 16;

const HEAD: usize = 32;
const SEED: u64 = 0x1501_17b5_eed0_0001;

/// What all rows of a segment share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameters {
    pub(super) rows: usize,
    pub(super) dimension: usize,
    pub(super) metric: Metric,
    /// Bits of a code; 0 if there are none.
    pub(super) bits: usize,
    pub(super) seed: u64,
    pub(super) centre: Vec<f32>,
}

impl Parameters {
    pub(super) fn new(dimension: usize, metric: Metric, centre: Vec<f32>) -> Self {
        let bits = dimension.next_multiple_of(32);
        let bits = if (FEWEST_BITS..=MOST_BITS).contains(&dimension) { bits } else { 0 };
        Self { rows: 0, dimension, metric, bits, seed: SEED, centre }
    }

    /// Components of a record, padding included.
    pub(super) fn components(&self) -> usize {
        self.dimension.next_multiple_of(16)
    }

    /// Bytes of a record.
    pub(super) fn stride(&self) -> usize {
        RECORD_HEAD + self.components()
    }

    /// Bytes of a block of codes.
    pub(super) fn block(&self) -> usize {
        self.bits / 8 * 32 + 2 * 4 * 32
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let metric: u32 = match self.metric {
            Metric::Cosine => 1,
            Metric::L2 => 2,
            Metric::Dot => 3,
        };
        let mut bytes = (self.rows as u64).to_le_bytes().to_vec();
        for value in [self.dimension as u32, metric, self.bits as u32, 0] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend(self.centre.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    /// None for bytes that no version of this program writes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let metric = match u32_at(12)? {
            1 => Metric::Cosine,
            2 => Metric::L2,
            3 => Metric::Dot,
            _ => return None,
        };
        let dimension = u32_at(8)? as usize;
        let centre: Vec<f32> = exact::floats(bytes.get(HEAD..)?).collect();
        let mut parameters = Self::new(dimension, metric, centre);
        parameters.rows = usize::try_from(u64_at(0)?).ok()?;
        parameters.seed = u64_at(24)?;
        let sound = (1..=MOST_DIMENSIONS).contains(&dimension)
            && parameters.bits == u32_at(16)? as usize
            && bytes.len() == HEAD + 4 * dimension
            && parameters.centre.iter().all(|x| x.is_finite());
        sound.then_some(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_survive_and_nonsense_is_refused() {
        for dimension in [1, 63, 64, 384, 8192, 8193] {
            let mut parameters = Parameters::new(dimension, Metric::L2, vec![0.5; dimension]);
            parameters.rows = 12;
            let bytes = parameters.encode();
            assert_eq!(Parameters::decode(&bytes).as_ref(), Some(&parameters));
            assert_eq!(Parameters::decode(&bytes[..bytes.len() - 1]), None);
            for (at, value) in [(8, 0), (12, 9), (16, 7), (HEAD + 2, 255)] {
                let mut wrong = bytes.clone();
                wrong[at..at + 2].fill(value);
                assert_eq!(Parameters::decode(&wrong), None, "{dimension}, byte {at}");
            }
        }
    }
}
