//! What editing JSON and editing TOML have in common.

use std::cmp::Reverse;
use std::ops::Range;

/// A piece of text, and what comes in its place.
pub(crate) type Edit = (Range<usize>, String);

/// The text with all edits made. They must not overlap.
pub(crate) fn splice(text: &str, mut edits: Vec<Edit>) -> String {
    let mut text = text.to_owned();
    edits.sort_by_key(|(piece, _)| Reverse(piece.start));
    for (piece, new) in edits {
        text.replace_range(piece, &new);
    }
    text
}

/// How lines end in a text.
pub(crate) fn newline_of(text: &str) -> &'static str {
    let crlf = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
    if crlf { "\r\n" } else { "\n" }
}
