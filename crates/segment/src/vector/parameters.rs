use isolith_types::Metric;

use crate::exact;

/// Codes make searches faster from this dimension on.
const MIN_BITS: usize = 64;
/// Above this, sums over codes would overflow a u16.
const MAX_BITS: usize = 8192;
pub(super) const MAX_DIMENSION: usize = 65_536;
/// Number of bytes before the components of a record: scale, residual, norm, addend.
pub(super) const RECORD_HEAD: usize = 16;

const HEAD: usize = 32;
const SEED: u64 = 0x1501_17b5_eed0_0001;

/// What all rows of a segment have in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VectorParameters {
    pub(super) rows: usize,
    pub(super) dimension: usize,
    pub(super) metric: Metric,
    /// Length of a code in bits; 0 if there are no codes.
    pub(super) bits: usize,
    pub(super) seed: u64,
    pub(super) centroid: Vec<f32>,
}

impl VectorParameters {
    pub(super) fn new(dimension: usize, metric: Metric, centroid: Vec<f32>) -> Self {
        let bits = dimension.next_multiple_of(32);
        let bits = if (MIN_BITS..=MAX_BITS).contains(&dimension) { bits } else { 0 };
        Self { rows: 0, dimension, metric, bits, seed: SEED, centroid }
    }

    /// Number of components of a record, including padding.
    pub(super) fn components(&self) -> usize {
        self.dimension.next_multiple_of(16)
    }

    /// Size of a record in bytes.
    pub(super) fn stride(&self) -> usize {
        RECORD_HEAD + self.components()
    }

    /// Size of a block of codes in bytes.
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
        bytes.extend(self.centroid.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    /// `None` if the bytes are not valid.
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
        let centroid: Vec<f32> = exact::floats(bytes.get(HEAD..)?).collect();
        let mut parameters = Self::new(dimension, metric, centroid);
        parameters.rows = usize::try_from(u64_at(0)?).ok()?;
        parameters.seed = u64_at(24)?;
        let valid = (1..=MAX_DIMENSION).contains(&dimension)
            && parameters.bits == u32_at(16)? as usize
            && bytes.len() == HEAD + 4 * dimension
            && parameters.centroid.iter().all(|x| x.is_finite());
        valid.then_some(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_round_trip_and_reject_invalid_values() {
        for dimension in [1, 63, 64, 384, 8192, 8193] {
            let mut parameters = VectorParameters::new(dimension, Metric::L2, vec![0.5; dimension]);
            parameters.rows = 12;
            let bytes = parameters.encode();
            assert_eq!(VectorParameters::decode(&bytes).as_ref(), Some(&parameters));
            assert_eq!(VectorParameters::decode(&bytes[..bytes.len() - 1]), None);
            for (at, value) in [(8, 0), (12, 9), (16, 7), (HEAD + 2, 255)] {
                let mut wrong = bytes.clone();
                wrong[at..at + 2].fill(value);
                assert_eq!(VectorParameters::decode(&wrong), None, "{dimension}, byte {at}");
            }
        }
    }
}
