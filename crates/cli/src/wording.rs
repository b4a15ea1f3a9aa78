//! Wording that several commands share.

use std::fmt::Write as _;

use isolith_engine::Rejected;

/// Rejected rows that are listed; the others are only counted.
const LISTED: usize = 10;

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The number of rejected rows, and why the first ones were rejected. Empty if none was.
pub(crate) fn left_out(count: u64, (one, many): (&str, &str), rejected: &[Rejected]) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("  {} skipped:\n", counted(count, one, many));
    for Rejected { row, reason } in rejected.iter().take(LISTED) {
        let _ = writeln!(text, "    row {row}: {reason}");
    }
    if count > LISTED as u64 {
        text.push_str("    …\n");
    }
    text
}
