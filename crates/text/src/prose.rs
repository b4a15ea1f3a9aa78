//! Splits natural language into words.

use super::normalize::Normalizer;
use super::script::{is_apostrophe, is_invisible, is_unspaced, is_word};
use super::stem::StemCache;
use super::term_queue::{Bigrams, TermQueue};
use super::{ascii_prefix_len, push_run_within_limit, push_within_limit};

/// Splits a text character by character; see [`Analyzer::Prose`](super::Analyzer).
#[derive(Debug, Default)]
pub(super) struct ProseSplitter {
    word: String,
    /// Whether an apostrophe followed the word; it is part of the word if a letter comes next.
    apostrophe: bool,
    bigrams: Bigrams,
    normalizer: Normalizer,
}

impl ProseSplitter {
    #[inline]
    pub(super) fn push(&mut self, c: char, stems: &mut StemCache, queue: &mut TermQueue) {
        if c.is_ascii_alphanumeric() && self.bigrams.is_empty() {
            self.flush_normalizer(stems, queue);
            self.push_normalized(c.to_ascii_lowercase());
        } else if is_apostrophe(c) {
            self.flush_normalizer(stems, queue);
            self.bigrams.end(queue);
            if self.apostrophe || self.word.is_empty() {
                self.end_word(stems, queue);
            } else {
                self.apostrophe = true;
            }
        } else if is_word(c) {
            self.normalizer.push(c);
            self.drain_normalizer(stems, queue);
        } else if !is_invisible(c) {
            self.end(stems, queue);
        }
    }

    /// Fast path: consumes a prefix of ASCII characters between words, then ASCII letters and
    /// digits. Returns its length.
    #[inline]
    pub(super) fn push_run(&mut self, text: &str) -> usize {
        if !self.normalizer.is_empty() || !self.bigrams.is_empty() || self.apostrophe {
            return 0;
        }
        let mut skipped = 0;
        if self.word.is_empty() {
            skipped = ascii_prefix_len(text, |byte| !byte.is_ascii_alphanumeric());
        }
        let length = ascii_prefix_len(&text[skipped..], |byte| byte.is_ascii_alphanumeric());
        let start = self.word.len();
        push_run_within_limit(&mut self.word, &text[skipped..skipped + length]);
        self.word[start..].make_ascii_lowercase();
        skipped + length
    }

    pub(super) fn end(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        self.flush_normalizer(stems, queue);
        self.bigrams.end(queue);
        self.end_word(stems, queue);
    }

    fn flush_normalizer(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        if !self.normalizer.is_empty() {
            self.normalizer.flush();
            self.drain_normalizer(stems, queue);
        }
    }

    fn drain_normalizer(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        while let Some(c) = self.normalizer.pop() {
            if is_unspaced(c) {
                self.end_word(stems, queue);
                self.bigrams.push(c, queue);
            } else if is_word(c) {
                self.bigrams.end(queue);
                self.push_normalized(c);
            } else {
                self.bigrams.end(queue);
                self.end_word(stems, queue);
            }
        }
    }

    fn push_normalized(&mut self, c: char) {
        if self.apostrophe {
            push_within_limit(&mut self.word, '\'');
            self.apostrophe = false;
        }
        push_within_limit(&mut self.word, c);
    }

    fn end_word(&mut self, stems: &mut StemCache, queue: &mut TermQueue) {
        self.apostrophe = false;
        if !self.word.is_empty() {
            queue.push(stems.stem(&self.word));
            self.word.clear();
        }
    }
}
