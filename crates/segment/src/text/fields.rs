//! The parts of a record that keywords are looked for in.

use std::collections::HashMap;

use isolith_text::{Analyzer, Tokenizer};
use serde::{Deserialize, Serialize};

/// How many fields there are.
pub const FIELDS: usize = 4;

/// This many folders tell what a file is about; those above them are the same for many.
const FOLDERS: usize = 3;

/// Where each field is in a [`PerField`].
pub mod field {
    /// The text itself.
    pub const BODY: usize = 0;
    /// Names that it defines.
    pub const SYMBOLS: usize = 1;
    /// The stem of its file's name.
    pub const STEM: usize = 2;
    /// The folders that its file is in.
    pub const FOLDERS: usize = 3;
}

/// A number for each field: body, symbols, stem, folders; see [`field`].
pub type PerField<T> = [T; FIELDS];

/// The names of the fields, in the order of [`PerField`].
pub(super) const FIELD_NAMES: PerField<&str> = ["body", "symbols", "stem", "folders"];

/// The texts of a record. Documents have a body alone; the fields have their names from
/// chunks of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextFields<'t> {
    /// The text itself.
    pub body: &'t str,
    /// Names that it defines; of a passage, who wrote it and its tags.
    pub symbols: &'t str,
    /// The stem of its file's name.
    pub stem: &'t str,
    /// The folders that its file is in; of a passage, its date in words.
    pub folders: &'t str,
}

impl<'t> TextFields<'t> {
    /// A document.
    pub fn body(body: &'t str) -> Self {
        Self { body, ..Self::default() }
    }

    /// A chunk of a file: `symbols` are the names that it defines, `path` is the file's,
    /// with slashes. The stem is the name up to its first dot, the folders are the last
    /// three above it.
    pub fn of_chunk(body: &'t str, symbols: &'t str, path: &'t str) -> Self {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let shown = name.trim_start_matches('.');
        let stem = shown.split_once('.').map_or(shown, |(stem, _)| stem);
        let third = above.rmatch_indices('/').nth(FOLDERS - 1);
        let folders = third.map_or(above, |(slash, _)| &above[slash + 1..]);
        Self { body, symbols, stem, folders }
    }

    /// A passage of a drawer: `labels` are its author and tags, `date` is its date in words.
    pub fn of_passage(body: &'t str, labels: &'t str, date: &'t str) -> Self {
        Self { body, symbols: labels, stem: "", folders: date }
    }

    /// The fields in order.
    pub fn each(&self) -> PerField<&'t str> {
        [self.body, self.symbols, self.stem, self.folders]
    }
}

/// How often which terms occur in which field of one record, and how many terms each
/// field has. All that ranking needs to know of a record outside of segments.
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

    /// Counts the terms of a query alone, which costs less and is enough for its score.
    /// The tokenizer may go on to the next record.
    pub fn of_terms(tokenizer: &mut Tokenizer, fields: &TextFields<'_>, terms: &[String]) -> Self {
        let none = |term: &String| (term.clone(), PerField::default());
        let mut some = Self { counts: terms.iter().map(none).collect(), ..Self::default() };
        some.count(tokenizer, fields, |_, _, _| {});
        some
    }

    /// How many terms each field has.
    pub fn lengths(&self) -> PerField<u32> {
        self.lengths
    }

    /// How often a term occurs in each field.
    pub fn get(&self, term: &str) -> PerField<u32> {
        self.counts.get(term).copied().unwrap_or_default()
    }

    fn count(
        &mut self,
        tokenizer: &mut Tokenizer,
        fields: &TextFields<'_>,
        meet: impl Fn(&mut HashMap<String, PerField<u32>>, &str, usize),
    ) {
        let Self { lengths, counts } = self;
        for (field, text) in fields.each().into_iter().enumerate() {
            tokenizer.for_each(text, &mut |term, _| {
                lengths[field] += 1;
                match counts.get_mut(term) {
                    Some(counts) => counts[field] += 1,
                    None => meet(counts, term, field),
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_stem_and_folders() {
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
    fn counts_are_kept_by_field() {
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
