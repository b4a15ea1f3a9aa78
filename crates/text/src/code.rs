//! Identifiers of program text, their parts and the words around them.

use unicode_normalization::char::is_combining_mark;

use super::fold::Folder;
use super::found::{Found, Pairs};
use super::script::{is_invisible, is_unspaced, is_word};
use super::stem::Stems;
use super::{push_run_within_limit, push_within_limit, run_of};

/// Parts of one identifier that are indexed. Names that people give have far fewer;
/// what has more is data.
const MAX_PARTS: u32 = 64;

/// Reads a text character by character; see [`Analyzer::Code`](super::Analyzer).
#[derive(Debug, Default)]
pub(super) struct Code {
    /// The identifier so far, folded.
    whole: String,
    /// Underscores that belong to it if more follows.
    joints: usize,
    parts: u32,
    part: String,
    /// Where the last upper-case letter of the part starts, which may yet turn out to
    /// begin the next part.
    last_upper: usize,
    uppers: u32,
    case: Option<Case>,
    pairs: Pairs,
    folder: Folder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
    Digit,
}

impl Code {
    #[inline]
    pub(super) fn push(&mut self, c: char, stems: &mut Stems, found: &mut Found) {
        if c == '_' {
            self.unfold(stems, found);
            self.end_part(stems, found);
            if !self.whole.is_empty() {
                self.joints += 1;
            }
        } else if c.is_ascii_alphanumeric() || (!c.is_ascii() && is_word(c)) {
            self.turn(c, stems, found);
            if c.is_ascii() {
                self.letter(c.to_ascii_lowercase(), stems, found);
            } else {
                self.folder.push(c);
                self.take_folded(stems, found);
            }
        } else if c.is_ascii() || !is_invisible(c) {
            self.end(stems, found);
        }
    }

    /// Takes the characters at the start of a text that need no thought, and says how
    /// many bytes they were: further lower-case ASCII letters of a part, or what is
    /// between identifiers.
    #[inline]
    pub(super) fn push_run(&mut self, text: &str) -> usize {
        if !self.folder.is_empty() || !self.pairs.is_empty() {
            return 0;
        }
        match self.case {
            Some(Case::Lower) => {
                let run = run_of(text, |byte| byte.is_ascii_lowercase());
                push_run_within_limit(&mut self.whole, &text[..run]);
                push_run_within_limit(&mut self.part, &text[..run]);
                run
            }
            None if self.whole.is_empty() => run_of(text, |byte| !byte.is_ascii_alphanumeric()),
            _ => 0,
        }
    }

    /// Ends the identifier. It is a term of its own if it has more than one part.
    pub(super) fn end(&mut self, stems: &mut Stems, found: &mut Found) {
        self.unfold(stems, found);
        self.end_part(stems, found);
        if self.parts > 1 && !self.whole.is_empty() {
            found.push_again(&self.whole);
        }
        self.whole.clear();
        self.joints = 0;
        self.parts = 0;
    }

    /// Ends the part where the case turns: aB, ABc (before the B), a1 and 1a.
    fn turn(&mut self, c: char, stems: &mut Stems, found: &mut Found) {
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
        // Letters that join into one syllable are all without case.
        if c.is_ascii() || (self.case, case) != (Some(Case::Lower), Case::Lower) {
            self.unfold(stems, found);
        }
        match (self.case, case) {
            (Some(Case::Upper), Case::Lower) if self.uppers > 1 => {
                self.end_part_before_last_upper(stems, found);
            }
            (Some(Case::Upper), Case::Lower) | (None, _) => {}
            (Some(before), now) if before == now => {}
            _ => self.end_part(stems, found),
        }
        if case == Case::Upper {
            self.uppers = self.uppers.saturating_add(1);
            self.last_upper = self.part.len();
        } else {
            self.uppers = 0;
        }
        self.case = Some(case);
    }

    fn unfold(&mut self, stems: &mut Stems, found: &mut Found) {
        if !self.folder.is_empty() {
            self.folder.flush();
            self.take_folded(stems, found);
        }
    }

    fn take_folded(&mut self, stems: &mut Stems, found: &mut Found) {
        while let Some(c) = self.folder.pop() {
            if is_word(c) {
                self.letter(c, stems, found);
            } else {
                self.end_pairs(found);
                self.end_word(stems, found);
            }
        }
    }

    fn letter(&mut self, c: char, stems: &mut Stems, found: &mut Found) {
        if self.joints > 0 {
            for _ in 0..self.joints.min(super::MAX_TERM_BYTES) {
                push_within_limit(&mut self.whole, '_');
            }
            self.joints = 0;
        }
        push_within_limit(&mut self.whole, c);
        if is_unspaced(c) {
            self.end_word(stems, found);
            self.pairs.push(c, found);
        } else {
            self.end_pairs(found);
            push_within_limit(&mut self.part, c);
        }
    }

    fn end_part(&mut self, stems: &mut Stems, found: &mut Found) {
        self.end_pairs(found);
        self.end_word(stems, found);
        self.case = None;
        self.uppers = 0;
    }

    fn end_pairs(&mut self, found: &mut Found) {
        if !self.pairs.is_empty() {
            self.pairs.end(found);
            self.parts = self.parts.saturating_add(1);
        }
    }

    fn end_word(&mut self, stems: &mut Stems, found: &mut Found) {
        if self.part.is_empty() {
            return;
        }
        if self.parts < MAX_PARTS {
            found.push(stems.of(&self.part));
        }
        self.parts = self.parts.saturating_add(1);
        self.part.clear();
        self.last_upper = 0;
    }

    fn end_part_before_last_upper(&mut self, stems: &mut Stems, found: &mut Found) {
        let rest = self.part.split_off(self.last_upper.min(self.part.len()));
        self.end_word(stems, found);
        self.part = rest;
    }
}
