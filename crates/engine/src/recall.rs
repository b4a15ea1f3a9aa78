//! Searching memory.

use std::time::{Duration, Instant};

use isolith_protocol::{MEMORY_COLLECTION, MemoryFound, SearchMemory};
use isolith_search::{MemoryWeights, Mode};
use isolith_types::{Code, DrawerFilter, DrawerHit, Failure};

use crate::open::Engine;

/// The longest question, in bytes.
const LONGEST_QUESTION: usize = 64 << 10;

/// What is looked for in memory.
#[derive(Debug, Clone)]
pub struct MemorySearch {
    /// A question, or words.
    pub text: String,
    /// What ranks hits.
    pub mode: Mode,
    /// How many hits.
    pub limit: u32,
    /// Where.
    pub filter: DrawerFilter,
    /// What signals are worth; for evaluations.
    pub weights: MemoryWeights,
}

impl MemorySearch {
    /// The usual way to look for `text`.
    pub fn new(text: &str, limit: u32) -> Self {
        Self {
            text: text.to_owned(),
            mode: Mode::Hybrid,
            limit,
            filter: DrawerFilter::default(),
            weights: MemoryWeights::default(),
        }
    }
}

/// The answer to a search.
#[derive(Debug, Clone)]
pub struct MemoryHits {
    /// The best first.
    pub hits: Vec<DrawerHit>,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// How long it took.
    pub took: Duration,
}

impl Engine {
    /// The drawers that answer a question.
    ///
    /// # Errors
    /// `bad_input` for a blank question, or what keeps the store from being read.
    pub async fn search_memory(&self, search: &MemorySearch) -> Result<MemoryHits, Failure> {
        let started = Instant::now();
        if search.text.trim().is_empty() {
            return Err(Failure::new(Code::BadInput, "the query is empty")
                .with_hint("pass a question or some words"));
        }
        if search.text.len() > LONGEST_QUESTION {
            let message = format!("a query has at most {LONGEST_QUESTION} bytes");
            return Err(Failure::new(Code::TooLarge, message).with_hint("shorten the query"));
        }
        self.know_poisons().await;
        let query = SearchMemory {
            text: search.text.clone(),
            mode: search.mode,
            limit: search.limit,
            filter: search.filter.clone(),
            weights: search.weights.clone(),
        };
        let answered = self.ask_for(query).await?;
        let MemoryFound { hits, degraded, searched } = answered.reply;
        if searched.quarantined {
            self.fold_later(MEMORY_COLLECTION);
        }
        self.quarantine_segments(MEMORY_COLLECTION, &searched, answered.blamed).await;
        Ok(MemoryHits { hits, degraded, took: started.elapsed() })
    }
}
