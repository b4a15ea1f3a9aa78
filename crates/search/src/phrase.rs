//! Phrase matching: finds a pasted error message or a quoted line in a text.

use isolith_types::FastMap;

use crate::identifiers::is_name_char;

/// Shorter runs match by chance.
const MIN_RUN_WORDS: usize = 4;

/// A longer query, such as a pasted report, is not one phrase.
const MAX_WORDS: usize = 64;

/// Maximum number of query words that one placeholder in the text matches.
const MAX_PLACEHOLDER_WORDS: usize = 6;

/// Maximum length of a placeholder such as `{name}`; braces further apart are code.
const MAX_PLACEHOLDER_BYTES: usize = 40;

/// The words of a query, to be found in texts in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Phrase {
    words: Vec<String>,
    /// The positions of each word in the query.
    positions: FastMap<String, Vec<usize>>,
    /// The shapes of the words.
    shapes: u64,
}

/// A run of matching words that ends at the current word of the text.
#[derive(Clone, Copy)]
struct Run {
    /// Positions in the query of its first and last word.
    first: usize,
    last: usize,
    /// Number of equal words, without those that placeholders matched.
    length: usize,
    /// Number of query words that may be skipped because of a placeholder in the text.
    slack: usize,
}

impl Phrase {
    /// The phrase of a query; empty if the query has fewer than 4 or more than 64 words.
    pub fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        for token in Tokens::of(text) {
            if let Token::Word(word) = token {
                if words.len() == MAX_WORDS {
                    return Self::default();
                }
                words.push(word.to_lowercase());
            }
        }
        if words.len() < MIN_RUN_WORDS {
            return Self::default();
        }
        let mut positions: FastMap<String, Vec<usize>> = FastMap::default();
        let mut shapes = 0;
        for (at, word) in words.iter().enumerate() {
            positions.entry(word.clone()).or_default().push(at);
            shapes |= shape(word);
        }
        Self { words, positions, shapes }
    }

    /// Whether the query is too short or too long for a phrase.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The share of the phrase that is not in these parts of it; 0 if that is too short for a phrase.
    pub fn share_without(&self, parts: &[String]) -> f32 {
        let words =
            |part: &String| Tokens::of(part).filter(|it| matches!(it, Token::Word(_))).count();
        let others = self.words.len().saturating_sub(parts.iter().map(words).sum());
        if others < MIN_RUN_WORDS { 0.0 } else { others as f32 / self.words.len() as f32 }
    }

    /// The share of the phrase that a text contains as one run, from 0 to 1. Placeholders in the
    /// text (`%s`, `{}`, `{name}`) match any words. Runs of fewer than four words are ignored.
    pub fn share_in(&self, text: &str) -> f32 {
        let mut best = 0;
        let (mut runs, mut next): (Vec<Run>, Vec<Run>) = (Vec::new(), Vec::new());
        let mut lower = String::new();
        for token in Tokens::of(text) {
            match token {
                Token::Placeholder => {
                    runs.iter_mut().for_each(|run| run.slack = MAX_PLACEHOLDER_WORDS);
                    continue;
                }
                Token::Word(word) if word.is_ascii() => {
                    // Most words of a text are none of the query's.
                    if shape(word) & self.shapes == 0 {
                        runs.clear();
                        continue;
                    }
                    lower.clear();
                    lower.push_str(word);
                    lower.make_ascii_lowercase();
                }
                Token::Word(word) => {
                    lower.clear();
                    lower.extend(word.chars().flat_map(char::to_lowercase));
                }
            }
            next.clear();
            for &at in self.positions.get(&lower).into_iter().flatten() {
                let run = extend_run(&runs, at);
                if run.length >= MIN_RUN_WORDS {
                    best = best.max(run.last - run.first + 1);
                }
                next.push(run);
            }
            std::mem::swap(&mut runs, &mut next);
        }
        best as f32 / self.words.len().max(1) as f32
    }
}

/// One bit for the length of a word, its first and its last letter in either case. Words of
/// different shapes are different words.
fn shape(word: &str) -> u64 {
    const CASE: u8 = b'a' ^ b'A';
    let letter = |byte: Option<&u8>| byte.map_or(0, |byte| usize::from(byte | CASE));
    let bytes = word.as_bytes();
    1 << ((letter(bytes.first()) + 5 * letter(bytes.last()) + 11 * bytes.len()) % 64)
}

/// Extends the longest run that the query word at `at` continues, or starts a new one.
fn extend_run(runs: &[Run], at: usize) -> Run {
    let reaches = |run: &&Run| (run.last + 1..=run.last + 1 + run.slack).contains(&at);
    let previous = runs.iter().filter(reaches).max_by_key(|run| run.length);
    let (first, length) = previous.map_or((at, 0), |run| (run.first, run.length));
    Run { first, last: at, length: length + 1, slack: 0 }
}

enum Token<'t> {
    Word(&'t str),
    Placeholder,
}

/// Iterates over the words and placeholders of a text.
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
            let start = token_start(self.rest)?;
            let text = &self.rest[start..];
            if let Some(length) = placeholder(text) {
                self.rest = &text[length..];
                return Some(Token::Placeholder);
            }
            let end = name_length(text);
            self.rest = &text[end.max(1)..];
            let word = &text[..end];
            // Skip the prefix of a string literal, as in `f"…"`: a message may continue in it.
            let is_prefix = word.len() <= 2
                && self.rest.starts_with(['"', '\''])
                && word.bytes().all(|byte| b"fFrRbBuU".contains(&byte));
            if !word.is_empty() && !is_prefix {
                return Some(Token::Word(word));
            }
        }
    }
}

/// What an ASCII character can begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Name,
    Placeholder,
    Gap,
}

const CLASSES: [Class; 128] = {
    let mut classes = [Class::Gap; 128];
    let mut byte: u8 = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => Class::Name,
            b'%' | b'{' => Class::Placeholder,
            _ => Class::Gap,
        };
        byte += 1;
    }
    classes
};

/// Where the first name or placeholder of a text may begin.
fn token_start(text: &str) -> Option<usize> {
    find(text, |byte| CLASSES[usize::from(byte)] != Class::Gap, true)
}

/// The length of the name at the start of a text.
fn name_length(text: &str) -> usize {
    find(text, |byte| CLASSES[usize::from(byte)] != Class::Name, false).unwrap_or(text.len())
}

/// The position of the first character that matches, or that is not ASCII and may be in a name or,
/// if `in_name` is false, may not.
fn find(text: &str, matches_ascii: impl Fn(u8) -> bool, in_name: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (matches, length) = match byte.is_ascii() {
            true => (matches_ascii(byte), 1),
            false => {
                let c = text[at..].chars().next()?;
                (is_name_char(c) == in_name, c.len_utf8())
            }
        };
        if matches {
            return Some(at);
        }
        at += length;
    }
    None
}

/// The length of the placeholder at the start of a text: `%s`, `%5.2f`, `%(name)s`, `{}`.
fn placeholder(text: &str) -> Option<usize> {
    if let Some(inside) = text.strip_prefix('{') {
        let end = inside.bytes().take(MAX_PLACEHOLDER_BYTES).position(|byte| byte == b'}')?;
        let clean = inside.bytes().take(end).all(|byte| byte != b'\n' && byte != b'{');
        return clean.then_some(end + 2);
    }
    let inside = text.strip_prefix('%')?;
    let named = inside.strip_prefix('(').and_then(|rest| Some(rest.find(')')? + 2));
    let from = named.filter(|length| *length <= MAX_PLACEHOLDER_BYTES).unwrap_or(0);
    let flags = inside[from..].bytes().take_while(|byte| b"+-#.0123456789$lhz".contains(byte));
    let end = from + flags.count();
    let mut rest = inside[end..].chars();
    let is_letter = rest.next().is_some_and(|c| c.is_ascii_alphabetic());
    (is_letter && rest.next().is_none_or(|c| !is_name_char(c))).then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_begin_and_end_at_characters(text in "[a-zA-Z0-9_%{}\"' \n.\u{b2}\u{e9}\u{130}\u{2014}\u{4e00}]{0,12}") {
            let begins = |c: char| is_name_char(c) || c == '%' || c == '{';
            prop_assert_eq!(token_start(&text), text.find(begins));
            let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
            prop_assert_eq!(name_length(&text), end);
        }

        #[test]
        fn words_have_the_same_shape_in_upper_and_lower_case(word in "[a-zA-Z0-9_]{1,20}") {
            prop_assert_eq!(shape(&word), shape(&word.to_lowercase()));
            prop_assert_eq!(shape(&word), shape(&word.to_uppercase()));
        }
    }

    fn share(query: &str, text: &str) -> f32 {
        Phrase::parse(query).share_in(text)
    }

    #[test]
    fn messages_match_in_word_order() {
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
    fn placeholders_match_formatted_values() {
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
    fn queries_of_unsuitable_length_are_ignored() {
        for query in ["", "retry policy", "one two three", &"word ".repeat(MAX_WORDS + 1)] {
            assert!(Phrase::parse(query).is_empty(), "{query}");
            assert_eq!(share(query, query), 0.0, "{query}");
        }
    }

    #[test]
    fn malformed_placeholders_are_tokenized() {
        for text in ["%", "{", "%é", "{é", "a%", "%(", "%(é", "{\n}", "a b c d %", "ééé ü % {}"]
        {
            let _ = share("a b c d", text);
            assert!(Tokens::of(text).count() < 8, "{text}");
        }
    }
}
