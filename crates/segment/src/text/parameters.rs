//! The sections of a text segment that are not tantivy files.

use isolith_text::Analyzer;

/// Raised for every change of the layout, and when the tokenizer produces different terms.
pub(super) const LAYOUT: u32 = 1;

/// Names of sections.
pub(super) mod section {
    pub(in super::super) const PARAMETERS: &str = "parameters";
    pub(in super::super) const ROWS: &str = "rows";
    pub(in super::super) const CHANGES: &str = "changes";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextParameters {
    pub(super) rows: u64,
    pub(super) analyzer: Analyzer,
}

impl TextParameters {
    pub(super) fn encode(self) -> [u8; 16] {
        let analyzer: u32 = match self.analyzer {
            Analyzer::Code => 1,
            Analyzer::Prose => 2,
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.rows.to_le_bytes());
        bytes[8..12].copy_from_slice(&analyzer.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
        let analyzer = match rest {
            [1, 0, 0, 0, 0, 0, 0, 0] => Analyzer::Code,
            [2, 0, 0, 0, 0, 0, 0, 0] => Analyzer::Prose,
            _ => return None,
        };
        Some(Self { rows: u64::from_le_bytes([a, b, c, d, e, f, g, h]), analyzer })
    }
}

/// A u64 for each position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column<'b>(&'b [[u8; 8]]);

impl<'b> Column<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    pub(super) fn get(self, position: usize) -> Option<u64> {
        self.0.get(position).map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The first position from `from` on whose number is at least `target`. Numbers must ascend.
    /// Galloping search: fast for nearby positions.
    pub(super) fn seek(self, from: usize, target: u64) -> usize {
        let below = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) < target;
        let rest = self.0.get(from..).unwrap_or_default();
        let mut end = 1;
        while end < rest.len() && below(&rest[end]) {
            end *= 2;
        }
        let start = end / 2;
        from + start + rest[start..rest.len().min(end + 1)].partition_point(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_round_trip_and_reject_unknown_values() {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let parameters = TextParameters { rows: 1 << 40, analyzer };
            let bytes = parameters.encode();
            assert_eq!(TextParameters::decode(&bytes), Some(parameters));
            assert_eq!(TextParameters::decode(&bytes[..15]), None);
        }
        assert_eq!(TextParameters::decode(&[0; 16]), None);
        assert_eq!(TextParameters::decode(&[1; 16]), None);
    }

    #[test]
    fn seek_finds_the_first_number_not_below_the_target() {
        let numbers: Vec<u64> = (0..500).map(|n| n * 3).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let column = Column::new(&bytes);
        for from in [0, 1, 7, 63, 499, 500, 900] {
            for target in 0..1510 {
                let mut rest = numbers.iter().enumerate().skip(from);
                let expected = rest.find(|(_, n)| **n >= target).map(|(at, _)| at);
                let expected = expected.unwrap_or(from.max(500));
                assert_eq!(column.seek(from, target), expected, "{from} {target}");
            }
        }
        assert_eq!(Column::new(&[]).seek(0, 5), 0);
        assert_eq!(column.get(2), Some(6));
        assert_eq!(column.get(500), None);
    }
}
