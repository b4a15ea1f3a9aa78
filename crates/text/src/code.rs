//! Splits code into identifiers and their parts.

use unicode_normalization::char::is_combining_mark;

use super::normalize::Normalizer;
use super::script::{is_invisible, is_unspaced, is_word};
use super::stem::StemCache;
use super::term_queue::{Bigrams, TermQueue};
use super::{ascii_prefix_len, push_run_within_limit, push_within_limit};

/// Maximum number of parts of one identifier that become terms; names with more are data.
const MAX_PARTS: u32 = 64;

/// Splits a text character by character; see [`Analyzer::Code`](super::Analyzer).
#[derive(Debug, Default)]
pub(super) struct CodeSplitter {
    /// The normalized identifier so far.
    whole: String,
    /// Number of trailing underscores, which belong to the identifier if it goes on.
    underscores: usize,
    parts: u32,
    part: String,
    /// Where the last upper-case letter of the part starts; it may begin the next part.
    last_upper: usize,
    upper_run: u32,
    case: Option<Case>,
    bigrams: Bigrams,
    normalizer: Normalizer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
    Digit,
}

impl CodeSplitter {
    #[inline]
    pub(super) fn push(&mut self, c: char, stems: &mut StemCache, queue: &mut TermQueue) {
        if c == '_' {
            self.flush_normalizer(stems, queue);
            self.end_part(stems, queue);
            if !self.whole.is_empty() {
                self.underscores += 1;
            }
        } else if c.is_ascii_alphanumeric() || (!c.is_ascii() && is_word(c)) {
            self.update_case(c, stems, queue);
            if c.is_ascii() {
                self.push_normalized(c.to_ascii_lowercase(), stems, queue);
            } else {
                self.normalizer.push(c);
                self.drain_normalizer(stems, queue);
            }
        } else if c.is_ascii() || !is_invisible(c) {
            self.end(stems, queue);
        }
    }

    /// Fast path: consumes a prefix of further lower-case ASCII letters of a part, or of ASCII
    /// characters between identifiers. Returns its length.
    #[inline]
    pub(super) fn push_run(&mut self, text: &str) -> usize {
        if !self.normalizer.is_empty() || !self.bigrams.is_empty() {
            return 0;
        }
        match self.case {
            Some(Case::Lower) => {
                let length = ascii_prefix_len(text, |byte| byte.is_ascii_lowercase());
                push_run_within_limit(&mut self.whole, &text[..length]);
                push_run_within_limit(&mut self.part, &text[..length]);
                length
            }
            None if self.whole.is_empty() => {
                ascii_prefix_len(text, |byte| !byte.is_ascii_alphanumeric())
            }
            _ => 0,
        }
    }

    /// Ends the identifier, which becomes a term if it has several parts.
    pub(super) fn end(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        self.flush_normalizer(stems, queue);
        self.end_part(stems, queue);
        if self.parts > 1 && !self.whole.is_empty() {
            queue.push_at_last_position(&self.whole);
        }
        self.whole.clear();
        self.underscores = 0;
        self.parts = 0;
    }

    /// Ends the part where the case changes: aB, ABc (before the B), a1 and 1a.
    fn update_case(&mut self, c: char, stems: &mut StemCache, queue: &mut TermQueue) {
        if !c.is_ascii() && is_combining_mark(c) {
            return;
        }
        let case = if c.is_numeric() {
            Case::Digit
        } else if c.is_uppercase() {
            Case::Upper
        } else {
            Case::Lower
        };
        // Letters that compose into one syllable have no case.
        if c.is_ascii() || (self.case, case) != (Some(Case::Lower), Case::Lower) {
            self.flush_normalizer(stems, queue);
        }
        match (self.case, case) {
            (Some(Case::Upper), Case::Lower) if self.upper_run > 1 => {
                self.end_part_before_last_upper(stems, queue);
            }
            (Some(Case::Upper), Case::Lower) | (None, _) => {}
            (Some(previous), case) if previous == case => {}
            _ => self.end_part(stems, queue),
        }
        if case == Case::Upper {
            self.upper_run = self.upper_run.saturating_add(1);
            self.last_upper = self.part.len();
        } else {
            self.upper_run = 0;
        }
        self.case = Some(case);
    }

    fn flush_normalizer(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        if !self.normalizer.is_empty() {
            self.normalizer.flush();
            self.drain_normalizer(stems, queue);
        }
    }

    fn drain_normalizer(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        while let Some(c) = self.normalizer.pop() {
            if is_word(c) {
                self.push_normalized(c, stems, queue);
            } else {
                self.end_bigrams(queue);
                self.end_word(stems, queue);
            }
        }
    }

    fn push_normalized(&mut self, c: char, stems: &mut StemCache, queue: &mut TermQueue) {
        if self.underscores > 0 {
            for _ in 0..self.underscores.min(super::MAX_TERM_BYTES) {
                push_within_limit(&mut self.whole, '_');
            }
            self.underscores = 0;
        }
        push_within_limit(&mut self.whole, c);
        if is_unspaced(c) {
            self.end_word(stems, queue);
            self.bigrams.push(c, queue);
        } else {
            self.end_bigrams(queue);
            push_within_limit(&mut self.part, c);
        }
    }

    fn end_part(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        self.end_bigrams(queue);
        self.end_word(stems, queue);
        self.case = None;
        self.upper_run = 0;
    }

    fn end_bigrams(&mut self, queue: &mut TermQueue) {
        if !self.bigrams.is_empty() {
            self.bigrams.end(queue);
            self.parts = self.parts.saturating_add(1);
        }
    }

    fn end_word(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        if self.part.is_empty() {
            return;
        }
        if self.parts < MAX_PARTS {
            queue.push(stems.stem(&self.part));
        }
        self.parts = self.parts.saturating_add(1);
        self.part.clear();
        self.last_upper = 0;
    }

    fn end_part_before_last_upper(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        let rest = self.part.split_off(self.last_upper.min(self.part.len()));
        self.end_word(stems, queue);
        self.part = rest;
    }
}
