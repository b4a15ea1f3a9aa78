//! Searches a store by keywords, vectors, code and memory.
//!
//! A [`Searcher`] collects candidates from the mapped [`Segments`] and from the [`Tails`] that no
//! segment covers yet, and `isolith-search` ranks them. Ids, texts and final scores come from one
//! snapshot of the database, so a damaged segment can lose hits but never invent one.
//!
//! This crate runs in workers only and writes nothing.

mod chunks;
mod code;
mod hybrid;
mod indexed_text;
mod keywords;
mod matches;
mod memory;
mod names;
mod quoted;
mod searcher;
mod segments;
mod similar_drawers;
mod tail;
mod top_rows;
mod vectors;

pub use indexed_text::{TextVisitor, analyzer, for_each_text};
pub use searcher::Searcher;
pub use segments::{Segments, damage_kind};
pub use tail::Tails;
