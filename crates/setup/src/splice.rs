//! Text editing shared by JSON and TOML.

use std::cmp::Reverse;
use std::ops::Range;

/// A range of bytes and its new text.
pub(crate) type Edit = (Range<usize>, String);

/// Applies all replacements, which must not overlap.
pub(crate) fn splice(text: &str, mut edits: Vec<Edit>) -> String {
    let mut text = text.to_owned();
    edits.sort_by_key(|(range, _)| Reverse(range.start));
    for (range, new) in edits {
        text.replace_range(range, &new);
    }
    text
}

/// The line ending of a text, judged by its first line.
pub(crate) fn newline_of(text: &str) -> &'static str {
    let crlf = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
    if crlf { "\r\n" } else { "\n" }
}
