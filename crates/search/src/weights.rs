//! The constants of the ranking.

use std::fmt;
use std::str::FromStr;

use isolith_types::Unknown;
use serde::{Deserialize, Serialize};

use crate::paths::Role;

/// What is looked for: words, meaning or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Keywords and vectors together, and all that names say.
    #[default]
    Hybrid,
    /// Keywords and names alone.
    Keyword,
    /// Vectors alone.
    Vector,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hybrid, Self::Keyword, Self::Vector];

    /// The name in flags and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
            Self::Vector => "vector",
        }
    }

    /// Whether the question's words are looked for.
    pub fn has_keywords(self) -> bool {
        self != Self::Vector
    }

    /// Whether its meaning is.
    pub fn has_vectors(self) -> bool {
        self != Self::Keyword
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| Unknown(name.to_owned()))
    }
}

/// Every constant of the ranking. A share or boost of 0 and a factor of 1 switch a signal
/// off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// The share of vectors, for the file that they like best.
    pub vectors: f32,
    /// The share of keywords.
    pub keywords: f32,
    /// How much of what all chunks have in common is taken out of the question's vector
    /// before chunks are compared with it, from 0 to 1. Without it, chunks that are like
    /// all others come near to every question.
    pub common: f32,
    /// How much each further chunk of a file counts, relative to the one before.
    pub next_chunk: f32,
    /// How many chunks of a file count.
    pub chunks: u32,
    /// Added if the file is named like words of the question. This, `stem_words` and
    /// `stem_keywords` are all that the name of a file counts at query time. At index time
    /// it counts as part of the path, in the vectors of chunks: see `ChunkWeights` of
    /// `isolith-embed`.
    pub stem: f32,
    /// How many words in a row are tried for that, at most eight.
    pub stem_words: u32,
    /// What a word in the name of the file is worth to the ranking by keywords, compared with
    /// one in its text; see `Bm25Weights::code` of `isolith-segment`.
    pub stem_keywords: f32,
    /// Added if the file defines a type that the question names; less if others do, too.
    pub type_definition: f32,
    /// The same for functions and constants.
    pub other_definition: f32,
    /// Added if all words of the query, four at least, stand in a chunk in the same order. A part
    /// of them counts as much less as it is shorter.
    pub exact: f32,
    /// Added if the query is nothing but a name, and a chunk defines exactly that name.
    pub exact_definition: f32,
    /// Factor for tests.
    pub test: f32,
    /// Factor for examples.
    pub example: f32,
    /// Factor for benchmarks.
    pub benchmark: f32,
    /// Factor for documents.
    pub docs: f32,
    /// Factor for data and settings.
    pub data: f32,
    /// Factor for what is kept for those who need the old way.
    pub compat: f32,
    /// Factor for copies of other projects.
    pub vendored: f32,
    /// Factor for what programs have written.
    pub generated: f32,
    /// Factor for files that pass on names of other files.
    pub entry: f32,
}

impl Default for Weights {
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
        }
    }
}

impl Weights {
    /// The factor for a role.
    pub fn factor(&self, role: Role) -> f32 {
        match role {
            Role::Test => self.test,
            Role::Example => self.example,
            Role::Benchmark => self.benchmark,
            Role::Docs => self.docs,
            Role::Data => self.data,
            Role::Compat => self.compat,
            Role::Vendored => self.vendored,
            Role::Generated => self.generated,
            Role::Entry => self.entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert!("fuzzy".parse::<Mode>().is_err());
    }

    #[test]
    fn an_evaluation_changes_one_weight_and_no_unknown_one() {
        let weights: Weights = serde_json::from_str(r#"{"test":1.0}"#).unwrap();
        assert_eq!(weights, Weights { test: 1.0, ..Weights::default() });
        assert!(serde_json::from_str::<Weights>(r#"{"tset":1.0}"#).is_err());
        let bytes = postcard::to_stdvec(&weights).unwrap();
        assert_eq!(postcard::from_bytes::<Weights>(&bytes).unwrap(), weights);
    }
}
