//! Answers searches over a store: by keywords, by vectors, over code and over memory.
//!
//! A [`Searcher`] takes one snapshot of the database and the mapped [`Segments`], collects
//! candidates from both and from the [`Tails`] that no segment covers yet, and lets
//! `isolith-search` rank them. Ids, texts and final scores come from the database, so a damaged
//! segment can lose hits but never invent one.
//!
//! This crate runs in workers only. It decides nothing about them, and writes nothing.

mod best;
mod code;
mod drawers;
mod keywords;
mod memory;
mod searcher;
mod segments;
mod tail;
mod texts;
mod vectors;

pub use searcher::Searcher;
pub use segments::{Segments, damage_kind};
pub use tail::Tails;
pub use texts::{EachText, analyzer, for_each_text};
