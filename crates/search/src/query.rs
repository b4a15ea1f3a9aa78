//! Query analysis for code search.

mod names;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use isolith_text::{Analyzer, query_terms};

use crate::identifiers::{Stemmer, is_name_char, split_names, split_words};
use crate::paths::{FileRole, FileRoles};

pub use names::SimilarNames;
use paths::MentionedPaths;

/// Maximum number of consecutive words that are compared with file names.
pub(crate) const MAX_RUN_WORDS: usize = 8;

/// Only the beginning of a longer query is analyzed, such as of a pasted file.
pub(crate) const MAX_BYTES: usize = 8 << 10;
const MAX_WORDS: usize = 256;
const MAX_IDENTIFIERS: usize = 16;

/// A query with more distinct terms is a report: prose, code and traces pasted whole.
pub(crate) const MAX_QUESTION_TERMS: usize = 24;

/// A code query, analyzed once for all candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeQuery {
    stems: BTreeSet<String>,
    identifiers: Vec<String>,
    /// The name that is the whole query, and names that it may mean.
    symbols: Vec<String>,
    /// The names that qualify it: `a` and `b` in `a.b.c`.
    qualifiers: Vec<String>,
    /// Names that were found for identifiers that are not defined.
    similar: BTreeSet<String>,
    /// All names as written.
    names: BTreeSet<String>,
    paths: MentionedPaths,
    requested_roles: FileRoles,
    /// File names with extensions, in lower case.
    file_names: BTreeSet<String>,
    /// Runs of consecutive words, joined, with the smallest number of words.
    runs: BTreeMap<String, usize>,
}

impl CodeQuery {
    /// Analyzes the text of a query.
    pub fn parse(text: &str) -> Self {
        let text = truncated(text, MAX_BYTES);
        let mut stemmer = Stemmer::new();
        let stems: BTreeSet<String> = query_terms(Analyzer::Code, text).into_iter().collect();
        let words: Vec<Word> = split_names(text)
            .flat_map(split_words)
            .take(MAX_WORDS)
            .map(|text| Word { significant: is_significant(&text, &stems, &mut stemmer), text })
            .collect();
        Self {
            identifiers: identifiers(text),
            symbols: names::symbol(text).into_iter().collect(),
            qualifiers: names::qualifiers(text),
            similar: BTreeSet::new(),
            names: split_names(text).map(str::to_owned).collect(),
            paths: MentionedPaths::parse(text),
            requested_roles: requested_roles(text),
            file_names: file_names(text),
            runs: runs(&words, &mut stemmer),
            stems,
        }
    }

    /// The identifiers in the query, whose definitions should be looked up: words written as in
    /// code, or every name of a query that is nothing but a symbol.
    pub fn identifiers(&self) -> &[String] {
        &self.identifiers
    }

    /// The stems of the words to search for.
    pub(crate) fn stems(&self) -> &BTreeSet<String> {
        &self.stems
    }

    /// Whether the query is longer than a question, such as a pasted bug report.
    pub fn is_report(&self) -> bool {
        self.stems.len() > MAX_QUESTION_TERMS
    }

    /// Whether the query contains the name of a definition, or the last part of a qualified one.
    pub(crate) fn mentions_name(&self, definition: &str) -> bool {
        let last = definition.rsplit(|c| !is_name_char(c)).next().unwrap_or(definition);
        !last.is_empty() && self.names.contains(last)
    }

    /// Whether the query mentions a path that ends like this one.
    pub(crate) fn mentions_path(&self, path: &str) -> bool {
        self.paths.matches(path)
    }

    /// The file roles that the query asks for, such as tests.
    pub fn requested_roles(&self) -> FileRoles {
        self.requested_roles
    }

    /// Whether the query contains this file's name, with its extension.
    pub(crate) fn mentions_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        !self.file_names.is_empty() && self.file_names.contains(&name.to_lowercase())
    }

    /// Whether a file stem equals a run of at most `max_words` consecutive words of the query.
    pub(crate) fn matches_stem(&self, stem: &str, max_words: usize, stemmer: &mut Stemmer) -> bool {
        if !self.has_run_like(stem) {
            return false;
        }
        let words = split_words(stem);
        !words.is_empty()
            && stemmer
                .joined(&words)
                .iter()
                .any(|joined| self.runs.get(joined).is_some_and(|&length| length <= max_words))
    }

    /// Whether a run begins with the first letter of a file stem, unless that is not ASCII. No
    /// other can be equal: stemming keeps the beginnings of words.
    fn has_run_like(&self, stem: &str) -> bool {
        let first = stem.chars().find(|c| c.is_alphanumeric());
        let Some(first) = first.filter(char::is_ascii_alphabetic) else { return true };
        let mut start = [0; 4];
        let start: &str = first.to_ascii_lowercase().encode_utf8(&mut start);
        let next = self.runs.range::<str, _>((Bound::Included(start), Bound::Unbounded)).next();
        next.is_some_and(|(run, _)| run.starts_with(start))
    }

    /// How well a symbol's name matches the query: 3 for one of the identifiers, 2 if only the
    /// case differs, otherwise the share of its words that are in the query.
    pub(crate) fn name_similarity(&self, symbol: &str, stemmer: &mut Stemmer) -> f32 {
        if self.identifiers.iter().any(|name| name == symbol) {
            return 3.0;
        }
        if self.identifiers.iter().any(|name| name.eq_ignore_ascii_case(symbol)) {
            return 2.0;
        }
        let words = split_words(symbol);
        let known = words.iter().filter(|word| self.stems.contains(&stemmer.stem(word))).count();
        known as f32 / words.len().max(1) as f32
    }
}

struct Word {
    text: String,
    /// Whether it is not a stop word.
    significant: bool,
}

/// Stop words are plain English words that the analyzer drops.
fn is_significant(word: &str, stems: &BTreeSet<String>, stemmer: &mut Stemmer) -> bool {
    !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || stems.contains(&stemmer.stem(word))
}

/// All runs of words that begin and end with a significant word, with and without the stop words
/// between.
fn runs(words: &[Word], stemmer: &mut Stemmer) -> BTreeMap<String, usize> {
    let mut runs = BTreeMap::new();
    let significant: Vec<&Word> = words.iter().filter(|word| word.significant).collect();
    let all: Vec<&Word> = words.iter().collect();
    for words in [significant, all] {
        for start in 0..words.len() {
            let longest = MAX_RUN_WORDS.min(words.len() - start);
            for length in 1..=longest {
                let run = &words[start..start + length];
                if !(run[0].significant && run[length - 1].significant) {
                    continue;
                }
                let run: Vec<String> = run.iter().map(|word| word.text.clone()).collect();
                for joined in stemmer.joined(&run) {
                    let shortest = runs.entry(joined).or_insert(length);
                    *shortest = length.min(*shortest);
                }
            }
        }
    }
    runs
}

/// Distinct identifiers, in query order.
fn identifiers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let whole = is_symbol(text.trim());
    for token in text.split_whitespace() {
        let marked = ["`", "()", "::", "->"].iter().any(|mark| token.contains(mark));
        for name in split_names(token) {
            let is_code = whole || marked || looks_like_code(name);
            if is_code && !names::is_number(name) && !found.iter().any(|known| known == name) {
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

/// Quotes and punctuation that may surround a name in a sentence.
fn is_punctuation(c: char) -> bool {
    matches!(c, '`' | '\'' | '"' | ',' | '.' | ';' | ':' | '?' | '!')
}

/// Whether a text is a single symbol, perhaps qualified: `Queue`, `Sinatra::Base`,
/// `client.send()`, `Hash#fetch`.
fn is_symbol(text: &str) -> bool {
    let text = text.trim_matches(is_punctuation).trim_end_matches("()");
    !text.is_empty()
        && text.starts_with(|c: char| !c.is_numeric() && is_name_char(c))
        && text.ends_with(|c: char| is_name_char(c) || matches!(c, '?' | '!'))
        && text.chars().all(|c| is_name_char(c) || matches!(c, ':' | '.' | '#' | '?' | '!'))
}

/// Whether a word is written in snake case or camel case.
fn looks_like_code(name: &str) -> bool {
    name.starts_with("__")
        || name.trim_matches('_').contains('_')
        || (name.contains(char::is_lowercase) && split_words(name).len() > 1)
}

fn requested_roles(text: &str) -> FileRoles {
    let names = split_names(text).flat_map(|name| split_words(&name.to_lowercase()));
    let words: BTreeSet<String> = names.take(MAX_WORDS).collect();
    let is_requested = |role: &FileRole| query_words(*role).iter().any(|it| words.contains(*it));
    FileRole::ALL.into_iter().filter(is_requested).collect()
}

/// Words of a query that ask for files of a role.
fn query_words(role: FileRole) -> &'static [&'static str] {
    match role {
        FileRole::Test => {
            &["test", "tests", "testing", "tested", "spec", "specs", "unittest", "unittests"]
        }
        FileRole::Example => {
            &["example", "examples", "demo", "demos", "samples", "tutorial", "tutorials"]
        }
        FileRole::Benchmark => &["bench", "benchmark", "benchmarks", "benchmarking"],
        FileRole::Docs => &["doc", "docs", "documentation", "readme", "changelog", "guide"],
        FileRole::Data => &["dataset", "datasets", "fixture", "fixtures", "lockfile", "manifest"],
        FileRole::Compat => {
            &["compat", "compatibility", "legacy", "deprecated", "backwards", "obsolete"]
        }
        FileRole::Vendored => &["vendor", "vendored", "vendoring"],
        FileRole::Generated => &["generated", "autogenerated"],
        FileRole::Entry => &["init", "reexport", "reexports", "barrel"],
        FileRole::Superseded => &["older", "superseded"],
        FileRole::Variant => &[],
    }
}

fn file_names(text: &str) -> BTreeSet<String> {
    text.split_whitespace()
        .map(|token| token.trim_matches(|c| is_punctuation(c) || "()[]".contains(c)))
        .filter_map(|token| token.rsplit('/').next())
        .filter(|name| name.trim_matches('.').contains('.'))
        .map(str::to_lowercase)
        .collect()
}

fn truncated(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests;
