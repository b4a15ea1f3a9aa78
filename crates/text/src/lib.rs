//! Turns text and code into search terms, the same for indexes, queries and tails.
//!
//! Tokenization is pure, takes linear time and buffers only a few hundred bytes. A change of the
//! terms requires a new layout version of text segments (`segment/src/text/parameters.rs`).

mod code;
mod normalize;
mod prose;
mod query;
mod script;
mod stem;
mod term_queue;

use std::fmt;
use std::str::{Chars, FromStr};

use isolith_types::Unknown;
use serde::{Deserialize, Serialize};

use code::CodeSplitter;
use prose::ProseSplitter;
use stem::StemCache;
use term_queue::TermQueue;

pub use query::{MAX_QUERY_TERMS, query_terms};

/// Longer words are truncated at a character boundary.
const MAX_TERM_BYTES: usize = 128;

/// How text is split into terms. Both analyzers ignore case, accents and compatibility forms, and
/// split scripts without spaces into character bigrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analyzer {
    /// Identifiers: the stems of their parts (`parseJSONFiles2`: pars, json, file, 2) and, if they
    /// have several parts, also the whole.
    Code,
    /// Natural language: the stems of words.
    Prose,
}

impl Analyzer {
    /// The name stored in segments.
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

/// Splits texts into terms. Reuse it: it caches stems.
#[derive(Clone)]
pub struct Tokenizer {
    analyzer: Analyzer,
    stems: StemCache,
    queue: TermQueue,
}

impl Tokenizer {
    /// Creates a tokenizer with an empty cache.
    pub fn new(analyzer: Analyzer) -> Self {
        Self { analyzer, stems: StemCache::default(), queue: TermQueue::default() }
    }

    /// Calls `visit` with each term of a text and its position.
    pub fn for_each(&mut self, text: &str, visit: &mut dyn FnMut(&str, u32)) {
        let mut terms = self.terms(text);
        while terms.advance() {
            let (term, position) = terms.current();
            visit(term, position);
        }
    }

    /// The only term of a word of lower-case ASCII letters. `None` for other texts.
    pub fn term_of_word<'w>(&'w mut self, word: &'w str) -> Option<&'w str> {
        // A term of this length is not truncated.
        let is_word = (1..=MAX_TERM_BYTES - char::MAX.len_utf8()).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_lowercase());
        is_word.then(|| self.stems.stem(word))
    }

    /// Returns a cursor over the terms of a text.
    pub fn terms<'t>(&'t mut self, text: &'t str) -> Terms<'t> {
        self.queue.restart();
        let splitter = match self.analyzer {
            Analyzer::Code => Splitter::Code(CodeSplitter::default()),
            Analyzer::Prose => Splitter::Prose(ProseSplitter::default()),
        };
        Terms {
            rest: text.chars(),
            ended: false,
            splitter,
            stems: &mut self.stems,
            queue: &mut self.queue,
        }
    }
}

/// A cursor over the terms of a text, before the first one at the start.
pub struct Terms<'t> {
    rest: Chars<'t>,
    ended: bool,
    splitter: Splitter,
    stems: &'t mut StemCache,
    queue: &'t mut TermQueue,
}

enum Splitter {
    Code(CodeSplitter),
    Prose(ProseSplitter),
}

impl Terms<'_> {
    /// Moves to the next term; false if there is none.
    pub fn advance(&mut self) -> bool {
        loop {
            if self.queue.next() {
                return true;
            }
            let text = self.rest.as_str();
            let run = match &mut self.splitter {
                Splitter::Code(code) => code.push_run(text),
                Splitter::Prose(prose) => prose.push_run(text),
            };
            if run > 0 {
                self.rest = text[run..].chars();
            }
            match (self.rest.next(), &mut self.splitter) {
                (Some(c), Splitter::Code(code)) => code.push(c, self.stems, self.queue),
                (Some(c), Splitter::Prose(prose)) => prose.push(c, self.stems, self.queue),
                (None, _) if self.ended => return false,
                (None, Splitter::Code(code)) => {
                    self.ended = true;
                    code.end(self.stems, self.queue);
                }
                (None, Splitter::Prose(prose)) => {
                    self.ended = true;
                    prose.end(self.stems, self.queue);
                }
            }
        }
    }

    /// The current term and its position. Valid after [`advance`](Self::advance) returned true.
    pub fn current(&self) -> (&str, u32) {
        self.queue.current()
    }
}

/// Appends a character unless the term is full. The limit does not depend on the character's
/// length, so that nothing is appended after a character was left out.
#[inline]
fn push_within_limit(term: &mut String, c: char) {
    if term.len() + char::MAX.len_utf8() <= MAX_TERM_BYTES {
        term.push(c);
    }
}

/// Appends as many ASCII characters as fit.
#[inline]
fn push_run_within_limit(term: &mut String, run: &str) {
    let limit = MAX_TERM_BYTES + 1 - char::MAX.len_utf8();
    let room = limit.saturating_sub(term.len());
    term.push_str(&run[..run.len().min(room)]);
}

/// The length of the longest prefix of ASCII characters that match.
#[inline]
fn ascii_prefix_len(text: &str, matches: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !byte.is_ascii() || !matches(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
