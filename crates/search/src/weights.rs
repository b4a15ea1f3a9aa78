//! Search modes and the constants of code ranking.

use std::fmt;
use std::str::FromStr;

use isolith_types::Unknown;
use serde::{Deserialize, Serialize};

use crate::paths::FileRole;

/// Which signals a search uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// Keywords, vectors, and the names of files and symbols.
    #[default]
    Hybrid,
    /// Keywords and names only.
    Keyword,
    /// Vectors only.
    Vector,
}

impl SearchMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Hybrid, Self::Keyword, Self::Vector];

    /// The name in flags and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
            Self::Vector => "vector",
        }
    }

    /// Whether the mode uses keywords.
    pub fn uses_keywords(self) -> bool {
        self != Self::Vector
    }

    /// Whether the mode uses vectors.
    pub fn uses_vectors(self) -> bool {
        self != Self::Keyword
    }
}

impl fmt::Display for SearchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SearchMode {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// The constants of code ranking. A share or boost of 0, or a factor of 1, turns a signal off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeWeights {
    /// Share of the vector score; the best file gets all of it.
    pub vectors: f32,
    /// Share of the keyword score; the best file gets all of it.
    pub keywords: f32,
    /// Share of the mean chunk vector that is removed from the query vector, from 0 to 1.
    /// Without it, chunks close to the mean are close to every query.
    pub common: f32,
    /// Weight of each further chunk of a file, relative to the previous one.
    pub next_chunk: f32,
    /// Maximum number of chunks that count toward the score of a file.
    pub chunks: u32,
    /// Boost for a file name that matches words of the query. At query time, only this,
    /// `stem_words` and `stem_keywords` weigh the file name. At index time it is part of the
    /// path, which chunk vectors include: see `ChunkWeights` of `isolith-embed`.
    pub stem: f32,
    /// Maximum number of consecutive words that form a file name; at most 8.
    pub stem_words: u32,
    /// Weight of a term in the file name, relative to one in the text, for the keyword score;
    /// see `Bm25Weights::code` of `isolith-segment`.
    pub stem_keywords: f32,
    /// Boost for defining a type named in the query; smaller if several files define it.
    pub type_definition: f32,
    /// Boost for defining a function or constant named in the query.
    pub other_definition: f32,
    /// Boost for a file whose path the query mentions, such as in a traceback.
    pub path: f32,
    /// Boost for a chunk inside a definition that the query mentions. It only selects chunks
    /// within a file.
    pub parent: f32,
    /// Factor for the vector scores that select chunks within a file, if the query is a report.
    pub report_vectors: f32,
    /// `stem`, if the query is a report: most of its words name no file.
    pub report_stem: f32,
    /// Boost for a chunk that contains the query, of at least four words, as a phrase. A partial
    /// match gets much less.
    pub exact: f32,
    /// Boost for a chunk that defines the name that is the whole query.
    pub exact_definition: f32,
    /// Factor for tests.
    pub test: f32,
    /// Factor for examples.
    pub example: f32,
    /// Factor for benchmarks.
    pub benchmark: f32,
    /// Factor for documentation.
    pub docs: f32,
    /// Factor for data and configuration files.
    pub data: f32,
    /// Factor for deprecated and compatibility code.
    pub compat: f32,
    /// Factor for vendored code.
    pub vendored: f32,
    /// Factor for generated code.
    pub generated: f32,
    /// Factor for files that mainly re-export others, such as `__init__.py`.
    pub entry: f32,
    /// Factor for files of an older version, if a newer one is among the candidates.
    pub superseded: f32,
    /// Factor for all but the best of a file's variants for different platforms.
    pub variant: f32,
}

impl Default for CodeWeights {
    fn default() -> Self {
        Self {
            vectors: 0.5,
            keywords: 0.5,
            common: 1.0,
            next_chunk: 0.5,
            chunks: 10,
            stem: 0.3,
            stem_words: 5,
            stem_keywords: 2.0,
            type_definition: 0.5,
            other_definition: 0.2,
            path: 0.3,
            parent: 0.15,
            report_vectors: 0.2,
            report_stem: 0.1,
            exact: 2.0,
            exact_definition: 1.0,
            test: 0.3,
            example: 0.3,
            benchmark: 0.3,
            docs: 0.3,
            data: 0.3,
            compat: 0.3,
            vendored: 0.5,
            generated: 0.5,
            entry: 0.5,
            superseded: 0.6,
            variant: 0.7,
        }
    }
}

impl CodeWeights {
    /// The penalty factor of a file role.
    pub fn factor(&self, role: FileRole) -> f32 {
        match role {
            FileRole::Test => self.test,
            FileRole::Example => self.example,
            FileRole::Benchmark => self.benchmark,
            FileRole::Docs => self.docs,
            FileRole::Data => self.data,
            FileRole::Compat => self.compat,
            FileRole::Vendored => self.vendored,
            FileRole::Generated => self.generated,
            FileRole::Entry => self.entry,
            FileRole::Superseded => self.superseded,
            FileRole::Variant => self.variant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_names_parse_and_serialize() {
        for mode in SearchMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert!("fuzzy".parse::<SearchMode>().is_err());
    }

    #[test]
    fn one_weight_can_be_set_and_unknown_ones_are_rejected() {
        let weights: CodeWeights = serde_json::from_str(r#"{"test":1.0}"#).unwrap();
        assert_eq!(weights, CodeWeights { test: 1.0, ..CodeWeights::default() });
        assert!(serde_json::from_str::<CodeWeights>(r#"{"tset":1.0}"#).is_err());
        let bytes = postcard::to_stdvec(&weights).unwrap();
        assert_eq!(postcard::from_bytes::<CodeWeights>(&bytes).unwrap(), weights);
    }
}
