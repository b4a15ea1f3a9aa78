//! Wording that several commands share.

use std::fmt::Write as _;

use isolith_engine::Rejected;
use isolith_types::counted;

/// Rejected rows that are listed; the others are only counted.
const LISTED: usize = 10;

/// The number of rejected rows, and why the first ones were rejected. Empty if none was.
pub(crate) fn left_out(count: u64, noun: &str, rejected: &[Rejected]) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("  {} skipped:\n", counted(count, noun));
    for Rejected { row, reason } in rejected.iter().take(LISTED) {
        let _ = writeln!(text, "    row {row}: {reason}");
    }
    if count > LISTED as u64 {
        text.push_str("    …\n");
    }
    text
}
