/// Row numbers of a segment, in ascending order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a>(&'a [[u8; 8]]);

impl<'a> Rows<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    pub(super) fn get(self, position: usize) -> u64 {
        u64::from_le_bytes(self.0[position])
    }

    /// The position of a row, or where it would be inserted.
    pub(super) fn find(self, row: u64) -> Result<usize, usize> {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Err(0) };
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        if row < first {
            return Err(0);
        }
        if row > last {
            return Err(self.0.len());
        }
        // Rows have few gaps, so interpolation is close.
        let share = u128::from(row - first) * (self.0.len() as u128 - 1);
        let guess = (share / u128::from((last - first).max(1))) as usize;
        self.gallop(row, guess)
    }

    /// Galloping search, starting at `from`.
    fn gallop(self, row: u64, from: usize) -> Result<usize, usize> {
        let (mut low, mut high) = (from, from);
        let mut step = 1;
        while low > 0 && self.get(low) > row {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while high < self.0.len() && self.get(high) < row {
            low = high;
            high = self.0.len().min(high + step);
            step *= 2;
        }
        let end = self.0.len().min(high + 1);
        self.0[low..end]
            .binary_search_by(|bytes| u64::from_le_bytes(*bytes).cmp(&row))
            .map(|at| low + at)
            .map_err(|at| low + at)
    }

    /// Calls `found` with the position of each of `rows` that exists. Faster if they ascend.
    pub(super) fn find_all(self, rows: &[u64], mut found: impl FnMut(usize)) {
        let mut from = 0;
        for row in rows {
            if from >= self.0.len() {
                return;
            }
            match self.gallop(*row, from) {
                Ok(position) => {
                    found(position);
                    from = position;
                }
                Err(position) => from = position.min(self.0.len() - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(rows: &[u64]) -> Vec<u8> {
        rows.iter().flat_map(|row| row.to_le_bytes()).collect()
    }

    proptest! {
        #[test]
        fn finds_exactly_the_existing_rows(
            rows in prop::collection::btree_set(0u64..2000, 0..300),
            wanted in prop::collection::vec(0u64..2100, 0..100),
            huge in any::<bool>(),
        ) {
            // Huge gaps at both ends mislead the interpolation.
            let mut rows: Vec<u64> = rows.into_iter().map(|row| row + 10).collect();
            if huge {
                rows.insert(0, 1);
                rows.push(u64::MAX);
            }
            let bytes = bytes(&rows);
            let table = Rows::new(&bytes);
            for row in wanted.iter().chain(&[0, 1, u64::MAX]) {
                prop_assert_eq!(table.find(*row), rows.binary_search(row));
            }
            let mut wanted = wanted;
            wanted.sort_unstable();
            let mut found = Vec::new();
            table.find_all(&wanted, |position| found.push(position));
            let expected: Vec<usize> =
                wanted.iter().filter_map(|row| rows.binary_search(row).ok()).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
