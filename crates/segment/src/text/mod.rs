//! Keyword search: inverted indexes in segments, ranked with BM25.
//!
//! A query becomes [`Keywords`]. Base, delta and tail each provide [`Statistics`] for them, whose
//! sum determines a [`Ranking`]. With it, [`TextSegment::search`] scores records of segments and
//! [`Ranking::score`] records of the tail. There are no phrases and no query language.

mod build;
mod bytes;
mod directory;
mod fields;
mod index;
mod parameters;
mod ranking;
mod search;
mod segment;

pub use build::{TextBuilder, remove_scratch};
pub use fields::{FIELDS, PerField, TermCounts, TextFields, field};
pub use ranking::{Bm25Weights, FieldWeight, Keywords, Ranking, Statistics, tokens_among};
pub use search::TextCandidate;
pub use segment::TextSegment;
// Part of this module's interface.
pub use isolith_text::{Analyzer, Tokenizer, query_terms};

#[cfg(test)]
mod tests;
