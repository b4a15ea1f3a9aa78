//! Memory search.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isolith_protocol::{MEMORY_COLLECTION, MemoryFound, SearchMemory};
use isolith_search::{MemoryFit, MemoryWeights, SearchMode};
use isolith_types::{Code, DrawerFilter, DrawerHit, Failure, Moment, Period};

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
    /// The day on which the question is asked, from which "last week" counts. Dates in it are
    /// ignored if not given, or if the filter has dates.
    pub asked: Option<Moment>,
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
            asked: now(),
            weights: MemoryWeights::default(),
        }
    }
}

fn now() -> Option<Moment> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(now.as_millis()).ok().map(Moment::instant)
}

impl MemorySearch {
    /// The period that the question names, unless dates are given.
    fn named_period(&self) -> Option<Period> {
        let has_dates = self.filter.since.is_some() || self.filter.until.is_some();
        let asked = self.asked.filter(|_| !has_dates)?;
        Period::in_text(&self.text, asked)
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
    /// The period that the question names, if only drawers of that time were searched.
    pub period: Option<Period>,
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
            period: None,
            degraded: None,
            took: Duration::ZERO,
        }
    }
}

impl Engine {
    /// Searches the drawers. If the question names a period, only drawers of that time are hits,
    /// unless there are none, or only others fit well.
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
        if let Some(period) = search.named_period() {
            let Period { since, until } = period;
            let filter = DrawerFilter { since, until, ..search.filter.clone() };
            let narrowed = self.find_drawers(search, filter, started).await?;
            let narrowed = MemoryHits { period: Some(period), ..narrowed };
            if !narrowed.weak {
                return Ok(narrowed);
            }
            let all = self.find_drawers(search, search.filter.clone(), started).await?;
            let is_worse = narrowed.hits.is_empty() || !all.weak;
            return Ok(if is_worse { all } else { narrowed });
        }
        self.find_drawers(search, search.filter.clone(), started).await
    }

    async fn find_drawers(
        &self,
        search: &MemorySearch,
        filter: DrawerFilter,
        started: Instant,
    ) -> Result<MemoryHits, Failure> {
        let query = SearchMemory {
            text: search.text.clone(),
            mode: search.mode,
            limit: search.limit,
            filter,
            weights: search.weights.clone(),
        };
        let answered = self.ask_for(query).await?;
        let MemoryFound { hits, fit, weak, degraded, searched } = answered.reply;
        if searched.quarantined {
            self.fold_later(MEMORY_COLLECTION);
        }
        self.quarantine_segments(MEMORY_COLLECTION, &searched, answered.blamed).await;
        Ok(MemoryHits { hits, fit, weak, period: None, degraded, took: started.elapsed() })
    }
}
