//! Finds the words of a query as they stand: a pasted error message, or a quoted line.

use std::collections::HashMap;

use crate::words::is_of_name;

/// Fewer words than this match by chance.
pub(crate) const SHORTEST_RUN: usize = 4;

/// Words of the query that are compared. A pasted report is longer, and is not one phrase.
const MAX_WORDS: usize = 64;

/// Words of the query that one placeholder of the text can stand for.
const MAX_FILLED: usize = 6;

/// A placeholder such as `{name}` is no longer than this; braces further apart are code.
const MAX_PLACEHOLDER: usize = 40;

/// The words of a query in their order, to be found in texts in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Phrase {
    words: Vec<String>,
    /// Where each word stands in the query.
    places: HashMap<String, Vec<usize>>,
}

/// A run of words that ends at the current place in the text.
#[derive(Clone, Copy)]
struct Run {
    /// The words of the query that it begins and ends with.
    first: usize,
    last: usize,
    /// How many words are equal; placeholders stand for the rest.
    length: usize,
    /// How many words of the query may be skipped, because the text had a placeholder.
    slack: usize,
}

impl Phrase {
    /// The phrase of a query; empty if the query is too short or too long to be one.
    pub fn of(text: &str) -> Self {
        let mut words = Vec::new();
        for token in Tokens::of(text) {
            if let Token::Word(word) = token {
                if words.len() == MAX_WORDS {
                    return Self::default();
                }
                words.push(word.to_lowercase());
            }
        }
        if words.len() < SHORTEST_RUN {
            return Self::default();
        }
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, word) in words.iter().enumerate() {
            places.entry(word.clone()).or_default().push(at);
        }
        Self { words, places }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How much of the phrase a text has in one run, from 0 to 1. Placeholders of the text
    /// (`%s`, `{}`, `{name}`) match what was printed in their place. A run of less than four
    /// words counts as none.
    pub fn share_in(&self, text: &str) -> f32 {
        let mut best = 0;
        let (mut runs, mut next): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
        let mut lower = String::new();
        for token in Tokens::of(text) {
            match token {
                Token::Placeholder => {
                    runs.iter_mut().for_each(|run| run.slack = MAX_FILLED);
                    continue;
                }
                Token::Word(word) => {
                    lower.clear();
                    lower.extend(word.chars().flat_map(char::to_lowercase));
                }
            }
            next.clear();
            for &at in self.places.get(&lower).into_iter().flatten() {
                let run = continued(&runs, at);
                if run.length >= SHORTEST_RUN {
                    best = best.max(run.last - run.first + 1);
                }
                next.push(run);
            }
            std::mem::swap(&mut runs, &mut next);
        }
        best as f32 / self.words.len().max(1) as f32
    }
}

/// The longest run that a word of the query continues, or a new one.
fn continued(runs: &[Run], at: usize) -> Run {
    let reaches = |run: &&Run| (run.last + 1..=run.last + 1 + run.slack).contains(&at);
    let before = runs.iter().filter(reaches).max_by_key(|run| run.length);
    let (first, length) = before.map_or((at, 0), |run| (run.first, run.length));
    Run { first, last: at, length: length + 1, slack: 0 }
}

enum Token<'t> {
    Word(&'t str),
    Placeholder,
}

/// Words and placeholders of a text.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn of(text: &'t str) -> Self {
        Self { rest: text }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let start = self.rest.find(|c: char| is_of_name(c) || c == '%' || c == '{')?;
            let text = &self.rest[start..];
            if let Some(length) = placeholder(text) {
                self.rest = &text[length..];
                return Some(Token::Placeholder);
            }
            let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
            self.rest = &text[end.max(1)..];
            let word = &text[..end];
            // The prefix of a string literal, as in `f"…"`, interrupts no message.
            let is_prefix = word.len() <= 2
                && self.rest.starts_with(['"', '\''])
                && word.bytes().all(|byte| b"fFrRbBuU".contains(&byte));
            if !word.is_empty() && !is_prefix {
                return Some(Token::Word(word));
            }
        }
    }
}

/// The length of the placeholder that a text begins with: `%s`, `%5.2f`, `%(name)s`, `{}`.
fn placeholder(text: &str) -> Option<usize> {
    if let Some(inside) = text.strip_prefix('{') {
        let end = inside.bytes().take(MAX_PLACEHOLDER).position(|byte| byte == b'}')?;
        let clean = inside.bytes().take(end).all(|byte| byte != b'\n' && byte != b'{');
        return clean.then_some(end + 2);
    }
    let inside = text.strip_prefix('%')?;
    let named = inside.strip_prefix('(').and_then(|rest| Some(rest.find(')')? + 2));
    let from = named.filter(|length| *length <= MAX_PLACEHOLDER).unwrap_or(0);
    let flags = inside[from..].bytes().take_while(|byte| b"+-#.0123456789$lhz".contains(byte));
    let end = from + flags.count();
    let mut rest = inside[end..].chars();
    let is_letter = rest.next().is_some_and(|c| c.is_ascii_alphabetic());
    (is_letter && rest.next().is_none_or(|c| !is_of_name(c))).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(query: &str, text: &str) -> f32 {
        Phrase::of(query).share_in(text)
    }

    #[test]
    fn messages_are_found_as_they_stand() {
        let text = "if x {\n    raise ValueError(\"Cannot open the file for reading\")\n}";
        for (query, expected) in [
            ("Cannot open the file for reading", 1.0),
            ("cannot open the FILE for reading!", 1.0),
            ("cannot open the file for writing", 5.0 / 6.0),
            ("reading for file the open cannot", 0.0),
            ("the file is open for reading", 0.0),
            ("open the file", 0.0),
        ] {
            assert_eq!(share(query, text), expected, "{query}");
        }
    }

    #[test]
    fn placeholders_match_what_was_printed() {
        for text in [
            "\"could not bind %s to port %d: %v\"",
            "f\"could not bind {self.host} to port {port}\"",
            "`could not bind ${host} to port ${port}`",
            "'could not bind %(host)s to port %(port)d'",
            "\"could not bind %5.2f \"\n    f\"to port {port}\"",
        ] {
            assert!(share("could not bind localhost to port 8080", text) >= 0.8, "{text}");
            assert_eq!(share(text, text), 1.0, "{text}");
        }
        assert_eq!(share("could not bind a socket to a port", "could not bind"), 0.0);
    }

    #[test]
    fn only_phrases_are_compared() {
        for query in ["", "retry policy", "one two three", &"word ".repeat(MAX_WORDS + 1)] {
            assert!(Phrase::of(query).is_empty(), "{query}");
            assert_eq!(share(query, query), 0.0, "{query}");
        }
    }

    #[test]
    fn odd_texts_are_read_to_their_end() {
        for text in ["%", "{", "%é", "{é", "a%", "%(", "%(é", "{\n}", "a b c d %", "ééé ü % {}"]
        {
            let _ = share("a b c d", text);
            assert!(Tokens::of(text).count() < 8, "{text}");
        }
    }
}
