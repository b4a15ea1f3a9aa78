//! Keywords: tokenizers, one ranking formula, and segments of an inverted index.
//!
//! A query becomes [`Keywords`]; base, delta and tail each count for them
//! ([`Statistics`]), the sum makes a [`Ranking`], and with it all three score alike:
//! [`TextSegment::search`] for segments, [`Ranking::score`] for records of the tail. There
//! are no phrases and no query language here.

mod build;
mod bytes;
mod directory;
mod fields;
mod index;
mod parameters;
mod ranking;
mod search;
mod segment;
mod tokens;

pub use build::{TextBuilder, remove_scratch};
pub use fields::{FIELDS, PerField, TermCounts, TextFields};
pub use ranking::{FieldWeight, Keywords, Ranking, Statistics, Weights, tokens_among};
pub use search::TextCandidate;
pub use segment::TextSegment;
pub use tokens::{Analyzer, MAX_QUERY_TERMS, MAX_TERM_BYTES, Tokenizer, query_terms, stem, tokens};

#[cfg(test)]
mod tests;
