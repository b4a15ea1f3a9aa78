//! What was asked.

use std::collections::{BTreeMap, BTreeSet};

use isolith_text::{Analyzer, query_terms};

use crate::paths::{PathRoles, Role};
use crate::words::{Stemmer, is_of_name, names, words_of};

/// How many words in a row are compared with names of files, at most.
pub(crate) const LONGEST_RUN: usize = 8;

/// What is read of a question. Whoever pastes a file is understood from its beginning.
const MAX_BYTES: usize = 8 << 10;
const MAX_WORDS: usize = 256;
const MAX_IDENTIFIERS: usize = 16;

/// What was asked, worked out once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    stems: BTreeSet<String>,
    identifiers: Vec<String>,
    /// Whether it is one name and nothing else.
    is_name: bool,
    asked: PathRoles,
    files: BTreeSet<String>,
    /// Words in a row, written as one, and how many they are.
    runs: BTreeMap<String, usize>,
}

impl Question {
    /// Reads a question.
    pub fn of(text: &str) -> Self {
        let text = beginning_of(text, MAX_BYTES);
        let mut stemmer = Stemmer::new();
        let stems: BTreeSet<String> = query_terms(Analyzer::Code, text).into_iter().collect();
        let words: Vec<Word> = names(text)
            .flat_map(words_of)
            .take(MAX_WORDS)
            .map(|word| Word { tells: tells(&word, &stems, &mut stemmer), word })
            .collect();
        Self {
            identifiers: identifiers(text),
            is_name: is_symbol(text.trim()),
            asked: asked(text),
            files: files(text),
            runs: runs(&words, &mut stemmer),
            stems,
        }
    }

    /// Names that the question means as such: those that are written as in code, and the
    /// whole question if it is nothing but a name. Definitions of them are looked up.
    pub fn identifiers(&self) -> &[String] {
        &self.identifiers
    }

    /// The name that is looked for, if the question is nothing else: of a qualified name
    /// (`Model.save`) the last part.
    pub(crate) fn wanted_name(&self) -> Option<&str> {
        self.identifiers.last().filter(|_| self.is_name).map(String::as_str)
    }

    /// The kinds of files that it asks for.
    pub fn asked(&self) -> PathRoles {
        self.asked
    }

    /// Whether it names this file, with its extension.
    pub(crate) fn names_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        !self.files.is_empty() && self.files.contains(&name.to_lowercase())
    }

    /// Whether a file of such a stem is named like at most so many of its words in a row.
    pub(crate) fn has_run(&self, stem: &str, most: usize, stemmer: &mut Stemmer) -> bool {
        let words = words_of(stem);
        !words.is_empty()
            && stemmer
                .joined(&words)
                .iter()
                .any(|way| self.runs.get(way).is_some_and(|&length| length <= most))
    }

    /// Whether it names this, letter by letter.
    pub(crate) fn names(&self, symbol: &str) -> bool {
        self.identifiers.iter().any(|identifier| identifier == symbol)
    }

    /// How much a name has to do with the question: the share of its words that are in
    /// it, and more than all of them if it is one of the identifiers.
    pub(crate) fn likeness(&self, symbol: &str, stemmer: &mut Stemmer) -> f32 {
        if self.names(symbol) {
            return 3.0;
        }
        if self.identifiers.iter().any(|name| name.eq_ignore_ascii_case(symbol)) {
            return 2.0;
        }
        let words = words_of(symbol);
        let known = words.iter().filter(|word| self.stems.contains(&stemmer.stem(word))).count();
        known as f32 / words.len().max(1) as f32
    }
}

struct Word {
    word: String,
    /// Whether it says what is asked, not how.
    tells: bool,
}

/// Words that do not are plain English ones, and not among the stems.
fn tells(word: &str, stems: &BTreeSet<String>, stemmer: &mut Stemmer) -> bool {
    !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || stems.contains(&stemmer.stem(word))
}

/// All rows of words that begin and end with one that tells, and the same without those
/// that do not.
fn runs(words: &[Word], stemmer: &mut Stemmer) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    let telling: Vec<&Word> = words.iter().filter(|word| word.tells).collect();
    let all: Vec<&Word> = words.iter().collect();
    for row in [telling, all] {
        for start in 0..row.len() {
            let most = LONGEST_RUN.min(row.len() - start);
            for length in 1..=most {
                let run = &row[start..start + length];
                if !(run[0].tells && run[length - 1].tells) {
                    continue;
                }
                let run: Vec<String> = run.iter().map(|word| word.word.clone()).collect();
                for way in stemmer.joined(&run) {
                    let known = runs.entry(way).or_insert(length);
                    *known = length.min(*known);
                }
            }
        }
    }
    runs
}

/// Names in the order of the question, each once.
fn identifiers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let whole = is_symbol(text.trim());
    for token in text.split_whitespace() {
        let marked = ["`", "()", "::", "->"].iter().any(|mark| token.contains(mark));
        for name in names(token) {
            let meant = whole || marked || is_written_as_code(name);
            let is_number = name.chars().all(|c| c.is_numeric() || c == '_');
            if meant && !is_number && !found.iter().any(|known| known == name) {
                found.push(name.to_owned());
            }
        }
        if found.len() >= MAX_IDENTIFIERS {
            found.truncate(MAX_IDENTIFIERS);
            break;
        }
    }
    found
}

/// What may stand around a name in a sentence.
fn is_around(c: char) -> bool {
    matches!(c, '`' | '\'' | '"' | ',' | '.' | ';' | ':' | '?' | '!')
}

/// Whether a text is one name, perhaps with those around it, as `Queue`, `Sinatra::Base`,
/// `client.send()` or `Hash#fetch`.
fn is_symbol(text: &str) -> bool {
    let text = text.trim_matches(is_around).trim_end_matches("()");
    !text.is_empty()
        && text.starts_with(|c: char| !c.is_numeric() && is_of_name(c))
        && text.ends_with(|c: char| is_of_name(c) || matches!(c, '?' | '!'))
        && text.chars().all(|c| is_of_name(c) || matches!(c, ':' | '.' | '#' | '?' | '!'))
}

/// Whether a word looks like a name in code: an underscore inside, or words that only
/// capitals set apart.
fn is_written_as_code(name: &str) -> bool {
    name.starts_with("__")
        || name.trim_matches('_').contains('_')
        || (name.contains(char::is_lowercase) && words_of(name).len() > 1)
}

/// The kinds of files that words of the question stand for.
fn asked(text: &str) -> PathRoles {
    let words: Vec<String> =
        names(text).flat_map(|name| words_of(&name.to_lowercase())).take(MAX_WORDS).collect();
    let is_asked = |asking: &[&str]| words.iter().any(|word| asking.contains(&word.as_str()));
    ASKING.iter().filter(|(_, asking)| is_asked(asking)).map(|&(role, _)| role).collect()
}

const ASKING: [(Role, &[&str]); 9] = [
    (Role::Test, &["test", "tests", "testing", "tested", "spec", "specs", "unittest", "unittests"]),
    (Role::Example, &["example", "examples", "demo", "demos", "samples", "tutorial", "tutorials"]),
    (Role::Benchmark, &["bench", "benchmark", "benchmarks", "benchmarking"]),
    (Role::Docs, &["doc", "docs", "documentation", "readme", "changelog", "guide"]),
    (Role::Data, &["dataset", "datasets", "fixture", "fixtures", "lockfile", "manifest"]),
    (Role::Compat, &["compat", "compatibility", "legacy", "deprecated", "backwards", "obsolete"]),
    (Role::Vendored, &["vendor", "vendored", "vendoring"]),
    (Role::Generated, &["generated", "autogenerated"]),
    (Role::Entry, &["init", "reexport", "reexports", "barrel"]),
];

/// Names of files, with extensions, in lower case.
fn files(text: &str) -> BTreeSet<String> {
    text.split_whitespace()
        .map(|token| token.trim_matches(|c| is_around(c) || matches!(c, '(' | ')' | '[' | ']')))
        .filter_map(|token| token.rsplit('/').next())
        .filter(|name| name.trim_matches('.').contains('.'))
        .map(str::to_lowercase)
        .collect()
}

fn beginning_of(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests;
