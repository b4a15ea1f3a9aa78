//! Keywords: one ranking formula, and segments of an inverted index.
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

pub use build::{TextBuilder, remove_scratch};
pub use fields::{FIELDS, PerField, TermCounts, TextFields, field};
pub use ranking::{FieldWeight, Keywords, Ranking, Statistics, Weights, tokens_among};
pub use search::TextCandidate;
pub use segment::TextSegment;
// What this module's interface is made of, so that its users need not name the crate.
pub use isolith_text::{Analyzer, Tokenizer, query_terms};

#[cfg(test)]
mod tests;
