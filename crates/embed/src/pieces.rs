//! Splits words into pieces of the vocabulary.

use std::ops::ControlFlow;

use crate::model::{beginning, continuation};
use crate::table::{KEY_BYTES, UNKNOWN};
use crate::tokenize::{MAX_WORD_BYTES, Word, WordSink, each_word};

/// The maximum number of bytes read from a text.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// The maximum number of pieces read from a text.
const MAX_PIECES: usize = 65_536;

/// How much may still be read. Shared by texts that form one vector.
pub(crate) struct Budget {
    bytes: usize,
    pieces: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: MAX_TEXT_BYTES, pieces: MAX_PIECES }
    }
}

impl Budget {
    /// Whether nothing more will be read.
    pub(crate) fn is_spent(&self) -> bool {
        self.bytes == 0 || self.pieces == 0
    }
}

/// Calls `take` with the row of each piece of a text, until the budget is spent.
pub(crate) fn each_piece(text: &str, budget: &mut Budget, take: impl FnMut(u16)) {
    let text = truncate(text, budget.bytes);
    budget.bytes -= text.len();
    // It breaks off only when the budget is spent, which the caller sees there.
    let _ = each_word(text, &mut Pieces { left: &mut budget.pieces, take });
}

/// At most `max_bytes` bytes from the start of a text, cut at a character boundary.
fn truncate(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

struct Pieces<'b, F> {
    left: &'b mut usize,
    take: F,
}

impl<F: FnMut(u16)> WordSink for Pieces<'_, F> {
    #[inline]
    fn word(&mut self, word: &Word) -> ControlFlow<()> {
        if word.len() <= KEY_BYTES
            && let Some(bytes) = word.from(0)
            && let Some(row) = beginning(bytes, word.len())
        {
            return self.push(row);
        }
        self.split(word)
    }

    #[inline]
    fn symbol(&mut self, symbol: u8) -> ControlFlow<()> {
        let mut bytes = [0; KEY_BYTES];
        bytes[0] = symbol;
        self.push(beginning(&bytes, 1).unwrap_or(UNKNOWN))
    }
}

impl<F: FnMut(u16)> Pieces<'_, F> {
    #[inline]
    fn push(&mut self, row: u16) -> ControlFlow<()> {
        if *self.left == 0 {
            return ControlFlow::Break(());
        }
        *self.left -= 1;
        (self.take)(row);
        ControlFlow::Continue(())
    }

    /// Greedy: the longest beginning, then the longest continuations up to the word's end.
    #[inline(never)]
    fn split(&mut self, word: &Word) -> ControlFlow<()> {
        if word.len() > MAX_WORD_BYTES {
            return self.push(UNKNOWN);
        }
        let mut rows = [0; MAX_WORD_BYTES];
        let mut count = 0;
        let mut start = 0;
        while start < word.len() {
            let Some((row, length)) = longest(word, start) else {
                return self.push(UNKNOWN);
            };
            rows[count] = row;
            count += 1;
            start += length;
        }
        rows[..count].iter().try_for_each(|&row| self.push(row))
    }
}

/// The longest piece at a position in a word. Pieces and words are UTF-8, so a match ends at a
/// character boundary.
fn longest(word: &Word, start: usize) -> Option<(u16, usize)> {
    let bytes = word.from(start)?;
    let max_bytes = (word.len() - start).min(KEY_BYTES);
    (1..=max_bytes).rev().find_map(|length| {
        let row = if start == 0 { beginning(bytes, length) } else { continuation(bytes, length) };
        row.map(|row| (row, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str, budget: &mut Budget) -> usize {
        let mut count = 0;
        each_piece(text, budget, |_| count += 1);
        count
    }

    #[test]
    fn texts_are_truncated_at_a_character_boundary() {
        let mut budget = Budget::default();
        assert_eq!(count(&"word ".repeat(1_000_000), &mut budget), MAX_PIECES);
        assert_eq!(count("more", &mut budget), 0);

        // Three bytes per character, which does not divide a mebibyte.
        let mut budget = Budget::default();
        assert_eq!(count(&"\u{30c7}".repeat(1_000_000), &mut budget), 1);
        assert_eq!(budget.bytes, MAX_TEXT_BYTES % 3);
    }

    #[test]
    fn an_overlong_word_is_unknown() {
        let rows = |text: &str| {
            let mut rows = Vec::new();
            each_piece(text, &mut Budget::default(), |row| rows.push(row));
            rows
        };
        assert_eq!(rows(&"a".repeat(10_000_000)), [UNKNOWN]);
        assert_eq!(rows(&"a".repeat(MAX_WORD_BYTES + 1)), [UNKNOWN]);
        assert!(rows(&"a".repeat(MAX_WORD_BYTES)).len() > 20);
        assert_eq!(rows("\u{5929}\u{1f600}").len(), 2);
    }
}
