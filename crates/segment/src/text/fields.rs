//! The searchable text fields of a record.

use std::collections::HashMap;

use isolith_text::{Analyzer, Tokenizer};
use serde::{Deserialize, Serialize};

/// Number of fields.
pub const FIELDS: usize = 4;

/// Number of parent folders that are indexed. Those further up are shared by many files.
const FOLDERS: usize = 3;

/// The index of each field in a [`PerField`].
pub mod field {
    /// The text.
    pub const BODY: usize = 0;
    /// The names it defines.
    pub const SYMBOLS: usize = 1;
    /// The file name without extensions.
    pub const STEM: usize = 2;
    /// The file's folders.
    pub const FOLDERS: usize = 3;
}

/// A value per field, indexed by the constants in [`field`].
pub type PerField<T> = [T; FIELDS];

pub(super) const FIELD_NAMES: PerField<&str> = ["body", "symbols", "stem", "folders"];

/// The texts of a record. Fields are named after their use in code; documents have only a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextFields<'t> {
    /// The text.
    pub body: &'t str,
    /// The names it defines; for a passage, its author and tags.
    pub symbols: &'t str,
    /// The file name without extensions.
    pub stem: &'t str,
    /// The file's folders; for a passage, its date in words.
    pub folders: &'t str,
}

impl<'t> TextFields<'t> {
    /// The fields of a document.
    pub fn body(body: &'t str) -> Self {
        Self { body, ..Self::default() }
    }

    /// The fields of a code chunk. `symbols` are the names it defines; `path` is the file's, with
    /// slashes. The stem ends at the first dot of the file name; the folders are the last three.
    pub fn of_chunk(body: &'t str, symbols: &'t str, path: &'t str) -> Self {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let shown = name.trim_start_matches('.');
        let stem = shown.split_once('.').map_or(shown, |(stem, _)| stem);
        let third = above.rmatch_indices('/').nth(FOLDERS - 1);
        let folders = third.map_or(above, |(slash, _)| &above[slash + 1..]);
        Self { body, symbols, stem, folders }
    }

    /// The fields of a passage. `labels` are its author and tags; `date` is its date in words.
    pub fn of_passage(body: &'t str, labels: &'t str, date: &'t str) -> Self {
        Self { body, symbols: labels, stem: "", folders: date }
    }

    /// The texts in the order of [`field`].
    pub fn each(&self) -> PerField<&'t str> {
        [self.body, self.symbols, self.stem, self.folders]
    }
}

/// Term frequencies and lengths of the fields of one record, for ranking it without a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TermCounts {
    lengths: PerField<u32>,
    counts: HashMap<String, PerField<u32>>,
}

impl TermCounts {
    /// Counts all terms.
    pub fn of(analyzer: Analyzer, fields: &TextFields<'_>) -> Self {
        let mut all = Self::default();
        all.count(&mut Tokenizer::new(analyzer), fields, |counts, term, field| {
            counts.entry(term.to_owned()).or_default()[field] = 1;
        });
        all
    }

    /// Counts only the terms of a query, which is faster and enough to score it. The tokenizer
    /// can be reused.
    pub fn of_terms(tokenizer: &mut Tokenizer, fields: &TextFields<'_>, terms: &[String]) -> Self {
        let none = |term: &String| (term.clone(), PerField::default());
        let mut some = Self { counts: terms.iter().map(none).collect(), ..Self::default() };
        some.count(tokenizer, fields, |_, _, _| {});
        some
    }

    /// The number of terms in each field.
    pub fn lengths(&self) -> PerField<u32> {
        self.lengths
    }

    /// The frequency of a term in each field.
    pub fn get(&self, term: &str) -> PerField<u32> {
        self.counts.get(term).copied().unwrap_or_default()
    }

    fn count(
        &mut self,
        tokenizer: &mut Tokenizer,
        fields: &TextFields<'_>,
        on_new_term: impl Fn(&mut HashMap<String, PerField<u32>>, &str, usize),
    ) {
        let Self { lengths, counts } = self;
        for (field, text) in fields.each().into_iter().enumerate() {
            tokenizer.for_each(text, &mut |term, _| {
                lengths[field] += 1;
                match counts.get_mut(term) {
                    Some(counts) => counts[field] += 1,
                    None => on_new_term(counts, term, field),
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_paths_into_stem_and_folders() {
        for (path, stem, folders) in [
            ("main.rs", "main", ""),
            ("src/main.rs", "main", "src"),
            ("a/b/c/Makefile", "Makefile", "a/b/c"),
            ("w/a/b/c/index.d.ts", "index", "a/b/c"),
            ("v/w/a/b/c/.eslintrc.json", "eslintrc", "a/b/c"),
            ("/etc/hosts", "hosts", "/etc"),
            ("ä/ö/ü/é/ß.txt", "ß", "ö/ü/é"),
            ("", "", ""),
        ] {
            let fields = TextFields::of_chunk("body", "symbols", path);
            assert_eq!(fields, TextFields { body: "body", symbols: "symbols", stem, folders });
        }
    }

    #[test]
    fn counts_terms_per_field() {
        let fields = TextFields {
            body: "fn parse_file(parse: File)",
            symbols: "parse_file",
            stem: "parser",
            folders: "src io",
        };
        let all = TermCounts::of(Analyzer::Code, &fields);
        assert_eq!(all.lengths(), [6, 3, 1, 2]);
        assert_eq!(all.get("pars"), [2, 1, 0, 0]);
        assert_eq!(all.get("parse_file"), [1, 1, 0, 0]);
        assert_eq!(all.get("io"), [0, 0, 0, 1]);
        assert_eq!(all.get("absent"), [0; 4]);

        let mut tokenizer = Tokenizer::new(Analyzer::Code);
        let some = TermCounts::of_terms(&mut tokenizer, &fields, &["io".into(), "pars".into()]);
        assert_eq!(some.lengths(), all.lengths());
        assert_eq!(some.get("pars"), all.get("pars"));
        assert_eq!(some.get("file"), [0; 4]);
    }
}
