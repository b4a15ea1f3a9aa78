//! Reads a damaged table by ranges of row numbers, bisecting those that fail.

use std::ops::RangeInclusive;

use isolith_protocol::StoreError;

use crate::deadline::Deadline;

/// Gives up after this many failures; the rest counts as lost.
const MAX_FAILURES: u64 = 200_000;

/// What could not be read of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    /// Number of row numbers in unreadable ranges.
    pub(super) rows: u64,
    /// The ranges, in ascending order.
    pub(super) ranges: Vec<RangeInclusive<i64>>,
    /// The error for the first range.
    pub(super) reason: String,
}

impl Gaps {
    /// The whole table.
    pub(super) fn everything(reason: String) -> Self {
        Self { rows: u64::MAX, ranges: vec![i64::MIN..=i64::MAX], reason }
    }

    pub(super) fn contains(&self, row: i64) -> bool {
        let after = self.ranges.partition_point(|range| *range.end() < row);
        self.ranges.get(after).is_some_and(|range| range.contains(&row))
    }

    fn add(&mut self, low: i64, high: i64) {
        self.rows = self.rows.saturating_add(low.abs_diff(high).saturating_add(1));
        match self.ranges.last_mut() {
            Some(last) if last.end().checked_add(1) == Some(low) => *last = *last.start()..=high,
            _ => self.ranges.push(low..=high),
        }
    }
}

/// Reads `range` in ascending order. `read` passes on as much as it can of a range and returns
/// the last row together with the error that stopped it, if any.
pub(super) fn walk(
    range: RangeInclusive<i64>,
    deadline: &Deadline,
    read: &mut dyn FnMut(RangeInclusive<i64>) -> RangeEnd,
) -> Result<Gaps, StoreError> {
    let mut gaps = Gaps::default();
    let mut failures = 0;
    let mut open = vec![range];
    while let Some(range) = open.pop() {
        deadline.check("salvage")?;
        let (low, high) = (*range.start(), *range.end());
        if low > high {
            continue;
        }
        let reason = match read(range) {
            RangeEnd::End => continue,
            RangeEnd::Fatal(error) => return Err(error),
            RangeEnd::Damage { last, reason } => match last {
                // Rows after it are tried separately.
                Some(last) if last >= low => {
                    open.push(last.saturating_add(1)..=high);
                    continue;
                }
                _ => reason,
            },
        };
        failures += 1;
        if gaps.reason.is_empty() {
            gaps.reason = reason;
        }
        if low == high || failures > MAX_FAILURES {
            gaps.add(low, high);
            continue;
        }
        let middle = low + (high - low) / 2;
        open.push(middle + 1..=high);
        open.push(low..=middle);
    }
    Ok(gaps)
}

/// How reading a range ended.
pub(super) enum RangeEnd {
    /// Everything was read.
    End,
    /// The file is damaged after the row `last`.
    Damage {
        /// The last row that could be read.
        last: Option<i64>,
        /// SQLite's message.
        reason: String,
    },
    /// Reading cannot continue at all.
    Fatal(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_but_the_damaged_ones_are_read() {
        let damaged = |row: i64| (300..310).contains(&row) || row == 77;
        let mut got = Vec::new();
        let gaps = walk(1..=1000, &Deadline::at(None), &mut |range| {
            let mut last = None;
            for row in range {
                if damaged(row) {
                    return RangeEnd::Damage { last, reason: format!("row {row}") };
                }
                got.push(row);
                last = Some(row);
            }
            RangeEnd::End
        })
        .unwrap();
        let ranges = vec![77..=77, 300..=309];
        assert!(gaps.contains(77) && gaps.contains(309) && !gaps.contains(78));
        assert_eq!(gaps, Gaps { rows: 11, ranges, reason: "row 77".to_owned() });
        assert_eq!(got, (1..=1000).filter(|row| !damaged(*row)).collect::<Vec<_>>());
    }
}
