//! What several commands tell people in the same words.

use std::fmt::Write as _;

use isolith_engine::Rejected;

/// Rejected rows that are listed.
const LISTED: usize = 10;

/// So many of something.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What was left out and why, the first of it; nothing if nothing was.
pub(crate) fn left_out(count: u64, (one, many): (&str, &str), rejected: &[Rejected]) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("  {} left out:\n", counted(count, one, many));
    for Rejected { row, reason } in rejected.iter().take(LISTED) {
        let _ = writeln!(text, "    row {row}: {reason}");
    }
    if count > LISTED as u64 {
        text.push_str("    …\n");
    }
    text
}
