//! From text and code to search terms: one way for what is indexed, what is asked, and what
//! is not indexed yet.
//!
//! Everything here is pure, takes time linear in the text, and keeps a few hundred
//! bytes of it at a time. Nothing here knows of an index. Whoever changes the terms raises
//! the layout version of text segments (`segment/src/text/parameters.rs`), which are built
//! of them.

mod code;
mod fold;
mod found;
mod prose;
mod query;
mod script;
mod stem;

use std::fmt;
use std::str::{Chars, FromStr};

use isolith_types::Unknown;
use serde::{Deserialize, Serialize};

use code::Code;
use found::Found;
use prose::Prose;
use stem::Stems;

pub use query::{MAX_QUERY_TERMS, query_terms};

/// The longest term, in bytes. A longer word is cut to it, at a character.
const MAX_TERM_BYTES: usize = 128;

/// How text becomes terms. Both fold case, accents and compatibility forms, both take
/// scripts without spaces in overlapping pairs of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analyzer {
    /// Identifiers as the stems of their parts (`parseJSONFiles2`: pars, json, file,
    /// 2) and, if they have more than one, as a whole.
    Code,
    /// Words as their stems.
    Prose,
}

impl Analyzer {
    /// The name in segments and settings.
    pub fn name(self) -> &'static str {
        match self {
            Analyzer::Code => "code",
            Analyzer::Prose => "prose",
        }
    }
}

impl fmt::Display for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Analyzer {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        [Analyzer::Code, Analyzer::Prose]
            .into_iter()
            .find(|analyzer| analyzer.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// Makes terms of one text after the other. It remembers stems from one to the next.
#[derive(Clone)]
pub struct Tokenizer {
    analyzer: Analyzer,
    stems: Stems,
    found: Found,
}

impl Tokenizer {
    /// A tokenizer that has seen no text yet.
    pub fn new(analyzer: Analyzer) -> Self {
        Self { analyzer, stems: Stems::default(), found: Found::default() }
    }

    /// Calls `take` with each term of a text and its position.
    pub fn each(&mut self, text: &str, take: &mut dyn FnMut(&str, u32)) {
        let mut terms = self.terms(text);
        while terms.advance() {
            let (term, position) = terms.current();
            take(term, position);
        }
    }

    /// The terms of a text, one at a time.
    pub fn terms<'t>(&'t mut self, text: &'t str) -> Terms<'t> {
        self.found.restart();
        let reader = match self.analyzer {
            Analyzer::Code => Reader::Code(Code::default()),
            Analyzer::Prose => Reader::Prose(Prose::default()),
        };
        Terms {
            rest: text.chars(),
            ended: false,
            reader,
            stems: &mut self.stems,
            found: &mut self.found,
        }
    }
}

/// The terms of a text, one at a time.
pub struct Terms<'t> {
    rest: Chars<'t>,
    ended: bool,
    reader: Reader,
    stems: &'t mut Stems,
    found: &'t mut Found,
}

enum Reader {
    Code(Code),
    Prose(Prose),
}

impl Terms<'_> {
    /// Goes to the next term, if there is one.
    pub fn advance(&mut self) -> bool {
        loop {
            if self.found.next() {
                return true;
            }
            let text = self.rest.as_str();
            let run = match &mut self.reader {
                Reader::Code(code) => code.push_run(text),
                Reader::Prose(prose) => prose.push_run(text),
            };
            if run > 0 {
                self.rest = text[run..].chars();
            }
            match (self.rest.next(), &mut self.reader) {
                (Some(c), Reader::Code(code)) => code.push(c, self.stems, self.found),
                (Some(c), Reader::Prose(prose)) => prose.push(c, self.stems, self.found),
                (None, _) if self.ended => return false,
                (None, Reader::Code(code)) => {
                    self.ended = true;
                    code.end(self.stems, self.found);
                }
                (None, Reader::Prose(prose)) => {
                    self.ended = true;
                    prose.end(self.stems, self.found);
                }
            }
        }
    }

    /// The current term and its position.
    pub fn current(&self) -> (&str, u32) {
        self.found.current()
    }
}

/// Cuts terms at a character. The limit is the same for characters of any length, so
/// that nothing is pushed any more once something was left out.
#[inline]
fn push_within_limit(term: &mut String, c: char) {
    if term.len() + char::MAX.len_utf8() <= MAX_TERM_BYTES {
        term.push(c);
    }
}

/// The same for many characters at once, which are all ASCII.
#[inline]
fn push_run_within_limit(term: &mut String, run: &str) {
    let most = MAX_TERM_BYTES + 1 - char::MAX.len_utf8();
    let room = most.saturating_sub(term.len());
    term.push_str(&run[..run.len().min(room)]);
}

/// How many bytes at the start of a text are such characters, which are all ASCII.
#[inline]
fn run_of(text: &str, such: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !byte.is_ascii() || !such(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
