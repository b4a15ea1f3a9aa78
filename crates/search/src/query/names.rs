//! The names that a query asks for: qualified, incomplete or misspelled.

use super::{CodeQuery, MAX_BYTES, is_symbol, looks_like_code, truncated};
use crate::identifiers::{is_name_char, split_names};

/// Shorter names are not completed, and not corrected: too many others are close.
const MIN_PREFIX: usize = 4;
const MIN_MISSPELLED: usize = 5;

/// Factor for names that are less similar to the one asked for than another.
const OTHER_NAME: f32 = 0.5;

/// Factor for a member of a type that a qualified name does not have.
const OTHER_TYPE: f32 = 0.8;

/// The last parts of file names, which are no incomplete names.
const EXTENSIONS: &[&str] = &[
    "adoc",
    "bash",
    "conf",
    "cpp",
    "css",
    "csv",
    "gradle",
    "graphql",
    "html",
    "java",
    "jpeg",
    "json",
    "lock",
    "proto",
    "properties",
    "scala",
    "scss",
    "svelte",
    "swift",
    "text",
    "toml",
    "tsx",
    "yaml",
    "yml",
];

/// The names that are defined and similar to one that is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarNames {
    /// The identifier, as written in the query.
    pub asked: String,
    /// The defined names, most similar first.
    pub names: Vec<String>,
}

impl CodeQuery {
    /// The name searched for, if the query is nothing but a symbol: the last part of a qualified
    /// name such as `Model.save`.
    pub fn symbol_name(&self) -> Option<&str> {
        self.symbols.first().map(String::as_str)
    }

    /// That name, and others that it may mean.
    pub fn symbol_names(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().map(String::as_str)
    }

    /// Whether the whole query names this symbol, or one similar to it.
    pub fn is_named(&self, symbol: &str) -> bool {
        self.symbols.iter().any(|name| name == symbol)
    }

    /// Factor for a definition of a name: less for those that the query less probably means.
    pub(crate) fn name_factor(&self, name: &str) -> f32 {
        if self.symbol_name() == Some(name) { 1.0 } else { OTHER_NAME }
    }

    /// Whether this name was found for one that is not defined.
    pub(crate) fn is_similar(&self, name: &str) -> bool {
        self.similar.contains(name)
    }

    /// Whether the query is a qualified name.
    pub fn is_qualified(&self) -> bool {
        !self.qualifiers.is_empty()
    }

    /// The identifiers for which similar names may be looked up if they are not defined. Single
    /// words of a question are words, not names.
    pub fn completable(&self) -> impl Iterator<Item = &str> {
        let is_last = |name: &str| self.symbol_name() == Some(name);
        let is_extension =
            |name: &str| self.is_qualified() && EXTENSIONS.contains(&name.to_lowercase().as_str());
        self.identifiers
            .iter()
            .map(String::as_str)
            .filter(move |name| looks_like_code(name) || is_last(name) && !is_extension(name))
            .filter(|name| name.chars().count() >= MIN_PREFIX)
    }

    /// Whether a name is long enough to be recognized with a typing error.
    pub fn may_be_misspelled(name: &str) -> bool {
        name.chars().count() >= MIN_MISSPELLED
    }

    /// The text of a query with the most similar names in the place of those that are not
    /// defined, and its analysis, which knows about the other similar names, too.
    pub fn parse_with(text: &str, similar: &[SimilarNames]) -> (String, Self) {
        let text = replaced(truncated(text, MAX_BYTES), similar);
        let mut query = Self::parse(&text);
        for SimilarNames { names, .. } in similar {
            let first = names.first().map(String::as_str);
            if first.is_some() && query.symbol_name() == first {
                query.symbols.extend(names.iter().skip(1).cloned());
            }
            for name in names {
                if !query.identifiers.contains(name) {
                    query.identifiers.push(name.clone());
                }
                query.similar.insert(name.clone());
            }
        }
        (text, query)
    }

    /// How much of the query's qualified name a definition has, from 0 to 1: `qualified` is its
    /// name with those of enclosing definitions, joined by dots. Modules and packages are compared
    /// with the path.
    pub fn qualification(&self, path: &str, qualified: &str) -> f32 {
        if self.qualifiers.is_empty() {
            return 0.0;
        }
        let file = path
            .rsplit_once('.')
            .map_or(path, |(stem, extension)| if extension.contains('/') { path } else { stem });
        let enclosing = qualified.rsplit_once('.').map_or("", |(enclosing, _)| enclosing);
        let mut around: Vec<&str> =
            file.split('/').chain(enclosing.split('.')).filter(|part| !part.is_empty()).collect();
        let mut found = 0;
        // In the same order, from the inside out, possibly with others between.
        for qualifier in self.qualifiers.iter().rev() {
            let equal = |part: &&str| part.eq_ignore_ascii_case(qualifier);
            if let Some(at) = around.iter().rposition(equal) {
                around.truncate(at);
                found += 1;
            }
        }
        let is_named = |name: &str| self.qualifiers.iter().any(|it| it.eq_ignore_ascii_case(name));
        let inner = enclosing.rsplit('.').next().unwrap_or(enclosing);
        let factor = if inner.is_empty() || is_named(inner) { 1.0 } else { OTHER_TYPE };
        factor * found as f32 / self.qualifiers.len() as f32
    }
}

/// The last name of a query that is nothing but a symbol.
pub(super) fn symbol(text: &str) -> Option<String> {
    let last = split_names(text).filter(|name| !is_number(name)).last();
    last.filter(|_| is_symbol(text.trim())).map(str::to_owned)
}

/// The names before the last one, if the query is nothing but a symbol.
pub(super) fn qualifiers(text: &str) -> Vec<String> {
    if !is_symbol(text.trim()) {
        return Vec::new();
    }
    let names = split_names(text).filter(|name| !is_number(name));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.pop();
    names
}

pub(super) fn is_number(name: &str) -> bool {
    name.chars().all(|c| c.is_numeric() || c == '_')
}

/// The text with the first similar name in the place of each name asked for.
fn replaced(text: &str, similar: &[SimilarNames]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let of_name = similar.iter().find(|it| it.asked == name);
        result.push_str(of_name.and_then(|it| it.names.first()).map_or(name, String::as_str));
        let next = after.find(is_name_char).unwrap_or(after.len());
        result.push_str(&after[..next]);
        rest = &after[next..];
    }
    result
}
