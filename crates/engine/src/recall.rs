//! Memory search.

use std::time::{Duration, Instant};

use isolith_protocol::{MEMORY_COLLECTION, MemoryFound, SearchMemory};
use isolith_search::{MemoryFit, MemoryWeights, SearchMode};
use isolith_types::{Code, DrawerFilter, DrawerHit, Failure};

use crate::open::Engine;

/// Maximum length of a query, in bytes.
const MAX_QUERY_BYTES: usize = 64 << 10;

/// A memory search.
#[derive(Debug, Clone)]
pub struct MemorySearch {
    /// A question, or words.
    pub text: String,
    /// How hits are ranked.
    pub mode: SearchMode,
    /// Maximum number of hits.
    pub limit: u32,
    /// Which drawers are searched.
    pub filter: DrawerFilter,
    /// Weights of the ranking signals; for evaluations.
    pub weights: MemoryWeights,
}

impl MemorySearch {
    /// A search for `text` with default settings.
    pub fn new(text: &str, limit: u32) -> Self {
        Self {
            text: text.to_owned(),
            mode: SearchMode::Hybrid,
            limit,
            filter: DrawerFilter::default(),
            weights: MemoryWeights::default(),
        }
    }
}

/// The result of a memory search.
#[derive(Debug, Clone)]
pub struct MemoryHits {
    /// Best first.
    pub hits: Vec<DrawerHit>,
    /// How well the best drawers fit; for evaluations.
    pub fit: MemoryFit,
    /// Whether nothing fits the query well.
    pub weak: bool,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// How long it took.
    pub took: Duration,
}

impl MemoryHits {
    /// The answer of a memory without drawers.
    pub fn none() -> Self {
        Self {
            hits: Vec::new(),
            fit: MemoryFit::default(),
            weak: true,
            degraded: None,
            took: Duration::ZERO,
        }
    }
}

impl Engine {
    /// Searches the drawers.
    ///
    /// # Errors
    /// `bad_input` for a blank query; any error of a read.
    pub async fn search_memory(&self, search: &MemorySearch) -> Result<MemoryHits, Failure> {
        let started = Instant::now();
        if search.text.trim().is_empty() {
            return Err(Failure::new(Code::BadInput, "the query is empty")
                .with_hint("pass a question or some words"));
        }
        if search.text.len() > MAX_QUERY_BYTES {
            let message = format!("a query has at most {MAX_QUERY_BYTES} bytes");
            return Err(Failure::new(Code::TooLarge, message).with_hint("shorten the query"));
        }
        self.load_quarantine().await;
        let query = SearchMemory {
            text: search.text.clone(),
            mode: search.mode,
            limit: search.limit,
            filter: search.filter.clone(),
            weights: search.weights.clone(),
        };
        let answered = self.ask_for(query).await?;
        let MemoryFound { hits, fit, weak, degraded, searched } = answered.reply;
        if searched.quarantined {
            self.fold_later(MEMORY_COLLECTION);
        }
        self.quarantine_segments(MEMORY_COLLECTION, &searched, answered.blamed).await;
        Ok(MemoryHits { hits, fit, weak, degraded, took: started.elapsed() })
    }
}
