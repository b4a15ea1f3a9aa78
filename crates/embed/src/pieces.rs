//! From words to pieces of the vocabulary.

use std::ops::ControlFlow;

use crate::model::{beginning, continuation};
use crate::table::{KEY_BYTES, UNKNOWN};
use crate::words::{MAX_WORD_BYTES, TakeWords, Word, each_word};

/// What is read of one text, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// What is read of one text, in pieces.
const MAX_PIECES: usize = 65_536;

/// What may still be read. Texts that make one vector share it.
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

/// Calls `take` with the row of each piece of a text, as far as the budget reaches.
pub(crate) fn each_piece(text: &str, budget: &mut Budget, take: impl FnMut(u16)) {
    let text = beginning_of(text, budget.bytes);
    budget.bytes -= text.len();
    // Having broken off means that the budget is spent, which it knows.
    let _ = each_word(text, &mut Pieces { left: &mut budget.pieces, take });
}

/// At most this many bytes of a text, cut at a character.
fn beginning_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

struct Pieces<'b, F> {
    left: &'b mut usize,
    take: F,
}

impl<F: FnMut(u16)> TakeWords for Pieces<'_, F> {
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
    fn sign(&mut self, sign: u8) -> ControlFlow<()> {
        let mut bytes = [0; KEY_BYTES];
        bytes[0] = sign;
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

    /// The longest beginning, then the longest continuation, and so on to the word's end.
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

/// The longest piece at a place of a word. Pieces and words are UTF-8, so that what is
/// equal ends between characters.
fn longest(word: &Word, start: usize) -> Option<(u16, usize)> {
    let bytes = word.from(start)?;
    let most = (word.len() - start).min(KEY_BYTES);
    (1..=most).rev().find_map(|length| {
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
    fn texts_are_cut_at_a_character_within_the_budget() {
        let mut budget = Budget::default();
        assert_eq!(count(&"word ".repeat(1_000_000), &mut budget), MAX_PIECES);
        assert_eq!(count("more", &mut budget), 0);

        // Three bytes each, which a mebibyte is no multiple of.
        let mut budget = Budget::default();
        assert_eq!(count(&"\u{30c7}".repeat(1_000_000), &mut budget), 1);
        assert_eq!(budget.bytes, MAX_TEXT_BYTES % 3);
    }

    #[test]
    fn a_word_that_is_too_long_is_unknown() {
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
