//! Reading a damaged table by ranges of row numbers, halving those that fail.

use std::ops::RangeInclusive;

use isolith_protocol::StoreError;

use crate::deadline::Deadline;

/// This many failures are worth it; what is left then counts as lost.
const MOST_FAILURES: u64 = 200_000;

/// What a walk over a table could not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps {
    /// How many row numbers are in ranges that could not be read.
    pub(super) rows: u64,
    /// The ranges, in ascending order.
    pub(super) ranges: Vec<RangeInclusive<i64>>,
    /// What was said about the first of them.
    pub(super) reason: String,
}

impl Gaps {
    /// All of a table.
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

/// Reads `range` from below. `read` hands over what it can of a range, in ascending
/// order, and returns the last row it handed over together with the error that stopped
/// it, if one did.
pub(super) fn walk(
    range: RangeInclusive<i64>,
    deadline: &Deadline,
    read: &mut dyn FnMut(RangeInclusive<i64>) -> Stop,
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
            Stop::End => continue,
            Stop::Fatal(error) => return Err(error),
            Stop::Damage { last, reason } => match last {
                // What comes after it is tried on its own.
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
        if low == high || failures > MOST_FAILURES {
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
pub(super) enum Stop {
    /// There was no more.
    End,
    /// The file is damaged after the row `last`.
    Damage {
        /// The last row that could be read.
        last: Option<i64>,
        /// What SQLite said.
        reason: String,
    },
    /// It cannot go on at all.
    Fatal(StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_damaged_rows_is_read() {
        let damaged = |row: i64| (300..310).contains(&row) || row == 77;
        let mut got = Vec::new();
        let gaps = walk(1..=1000, &Deadline::at(None), &mut |range| {
            let mut last = None;
            for row in range {
                if damaged(row) {
                    return Stop::Damage { last, reason: format!("row {row}") };
                }
                got.push(row);
                last = Some(row);
            }
            Stop::End
        })
        .unwrap();
        let ranges = vec![77..=77, 300..=309];
        assert!(gaps.contains(77) && gaps.contains(309) && !gaps.contains(78));
        assert_eq!(gaps, Gaps { rows: 11, ranges, reason: "row 77".to_owned() });
        assert_eq!(got, (1..=1000).filter(|row| !damaged(*row)).collect::<Vec<_>>());
    }
}
