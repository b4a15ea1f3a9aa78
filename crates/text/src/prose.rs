//! Words of natural language.

use super::fold::Folder;
use super::found::{Found, Pairs};
use super::script::{is_apostrophe, is_invisible, is_unspaced, is_word};
use super::stem::Stems;
use super::{push_run_within_limit, push_within_limit, run_of};

/// Reads a text character by character; see [`Analyzer::Prose`](super::Analyzer).
#[derive(Debug, Default)]
pub(super) struct Prose {
    word: String,
    /// An apostrophe came after the word, and is part of it if a letter follows.
    apostrophe: bool,
    pairs: Pairs,
    folder: Folder,
}

impl Prose {
    #[inline]
    pub(super) fn push(&mut self, c: char, stems: &mut Stems, found: &mut Found) {
        if c.is_ascii_alphanumeric() && self.pairs.is_empty() {
            self.unfold(stems, found);
            self.letter(c.to_ascii_lowercase());
        } else if is_apostrophe(c) {
            self.unfold(stems, found);
            self.pairs.end(found);
            if self.apostrophe || self.word.is_empty() {
                self.end_word(stems, found);
            } else {
                self.apostrophe = true;
            }
        } else if is_word(c) {
            self.folder.push(c);
            self.take_folded(stems, found);
        } else if !is_invisible(c) {
            self.end(stems, found);
        }
    }

    /// Takes the characters at the start of a text that need no thought, and says how
    /// many bytes they were: ASCII letters and digits, or what is between words.
    #[inline]
    pub(super) fn push_run(&mut self, text: &str) -> usize {
        if !self.folder.is_empty() || !self.pairs.is_empty() || self.apostrophe {
            return 0;
        }
        let mut skipped = 0;
        if self.word.is_empty() {
            skipped = run_of(text, |byte| !byte.is_ascii_alphanumeric());
        }
        let run = run_of(&text[skipped..], |byte| byte.is_ascii_alphanumeric());
        let start = self.word.len();
        push_run_within_limit(&mut self.word, &text[skipped..skipped + run]);
        self.word[start..].make_ascii_lowercase();
        skipped + run
    }

    pub(super) fn end(&mut self, stems: &mut Stems, found: &mut Found) {
        self.unfold(stems, found);
        self.pairs.end(found);
        self.end_word(stems, found);
    }

    fn unfold(&mut self, stems: &mut Stems, found: &mut Found) {
        if !self.folder.is_empty() {
            self.folder.flush();
            self.take_folded(stems, found);
        }
    }

    fn take_folded(&mut self, stems: &mut Stems, found: &mut Found) {
        while let Some(c) = self.folder.pop() {
            if is_unspaced(c) {
                self.end_word(stems, found);
                self.pairs.push(c, found);
            } else if is_word(c) {
                self.pairs.end(found);
                self.letter(c);
            } else {
                self.pairs.end(found);
                self.end_word(stems, found);
            }
        }
    }

    fn letter(&mut self, c: char) {
        if self.apostrophe {
            push_within_limit(&mut self.word, '\'');
            self.apostrophe = false;
        }
        push_within_limit(&mut self.word, c);
    }

    fn end_word(&mut self, stems: &mut Stems, found: &mut Found) {
        self.apostrophe = false;
        if !self.word.is_empty() {
            found.push(stems.of(&self.word));
            self.word.clear();
        }
    }
}
