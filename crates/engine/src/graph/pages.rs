//! Answers in pages. One job computes the whole answer; its first rows come with the reply, the
//! others go into a file as they arrive and are never in memory as a whole.

use std::sync::Arc;
use std::time::Instant;

use isolith_graph::Stats;
use isolith_protocol::{CypherQuery, GraphAnswer, Key};
use isolith_types::{Code, Failure};

use super::QueryOutcome;
use super::spool::{GraphRow, Spool, SpoolPosition, Spools, first_page};
use crate::open::Engine;

/// The maximum size of a page, which has at least one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Maximum number of rows.
    pub rows: usize,
    /// Maximum number of bytes, of rows as the store encodes them.
    pub bytes: usize,
}

/// A page of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPage {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<GraphRow>,
    /// What was changed; on the first page only.
    pub stats: Stats,
    /// Why the query was slower than it should be; on the first page only.
    pub degraded: Option<String>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

/// An answer, row by row. Holds one page at a time.
#[derive(Debug)]
pub struct GraphCursor {
    engine: Engine,
    columns: Vec<String>,
    is_write: bool,
    stats: Stats,
    degraded: Option<String>,
    rows: std::vec::IntoIter<GraphRow>,
    source: Source,
}

/// Where a cursor's rows come from.
#[derive(Debug)]
enum Source {
    /// The reply, and the position in it.
    Reply(GraphAnswer, usize),
    /// A file: the tokens of its first page and of the next page.
    File { start: String, next: Option<String> },
}

/// The size of a cursor's pages.
const CURSOR_PAGES: PageSize = PageSize { rows: 1_000, bytes: 1 << 20 };

impl Engine {
    /// Runs a query like [`Engine::cypher`] and returns the first page of its answer.
    ///
    /// # Errors
    /// As [`Engine::cypher`], or if the other pages cannot be stored.
    pub async fn cypher_page(
        &self,
        query: CypherQuery,
        key: Option<Key>,
        size: PageSize,
    ) -> Result<GraphPage, Failure> {
        let QueryOutcome { answer, rest, .. } = self.run_cypher(query, key).await?;
        let (rows, taken) = first_page(answer.row_bytes(), size);
        let (columns, stats) = (answer.columns.clone(), answer.stats);
        let degraded = answer.degraded.clone();
        if taken == answer.row_bytes().len() && rest.is_none() {
            return Ok(GraphPage { columns, rows, stats, degraded, next: None });
        }
        let names = columns.clone();
        let written = blocking(move || Spool::write(names, &answer.row_bytes()[taken..], rest));
        let spool = self.inner.spools.keep(written.await?, Instant::now());
        close_when_expired(&self.inner.spools, spool);
        let next = Some(self.inner.spools.token(SpoolPosition { spool, at: 0 })?);
        Ok(GraphPage { columns, rows, stats, degraded, next })
    }

    /// The page that `token` identifies. Asking again returns the same page.
    ///
    /// # Errors
    /// `cursor_expired` for a token that was not used for five minutes, or that this engine
    /// did not issue.
    pub async fn next_page(&self, token: &str, size: PageSize) -> Result<GraphPage, Failure> {
        let spools = &self.inner.spools;
        let Some(SpoolPosition { spool: number, at }) = spools.position(token)? else {
            return Err(expired());
        };
        let spool = spools.find(number, Instant::now()).ok_or_else(expired)?;
        let columns = spool.columns.clone();
        let (rows, next) = blocking(move || spool.read(at, size)).await?;
        let next = next.map(|at| spools.token(SpoolPosition { spool: number, at })).transpose()?;
        Ok(GraphPage { columns, rows, stats: Stats::default(), degraded: None, next })
    }

    /// Runs a query like [`Engine::cypher`] and returns its answer row by row.
    ///
    /// # Errors
    /// As [`Engine::cypher`], or if the rows cannot be stored.
    pub async fn cypher_rows(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphCursor, Failure> {
        let QueryOutcome { mut answer, rest, is_write } = self.run_cypher(query, key).await?;
        let (columns, stats) = (std::mem::take(&mut answer.columns), answer.stats);
        let degraded = answer.degraded.take();
        let source = match rest {
            None => Source::Reply(answer, 0),
            Some(rest) => {
                let names = columns.clone();
                let write = move || Spool::write(names, answer.row_bytes(), Some(rest));
                let spool = self.inner.spools.keep(blocking(write).await?, Instant::now());
                close_when_expired(&self.inner.spools, spool);
                let start = self.inner.spools.token(SpoolPosition { spool, at: 0 })?;
                Source::File { next: Some(start.clone()), start }
            }
        };
        let rows = Vec::new().into_iter();
        Ok(GraphCursor { engine: self.clone(), columns, is_write, stats, degraded, rows, source })
    }
}

impl GraphCursor {
    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Whether the query is a write, even if it changed nothing.
    pub fn is_write(&self) -> bool {
        self.is_write
    }

    /// What was changed.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Why the query was slower than it should be.
    pub fn degraded(&self) -> Option<&str> {
        self.degraded.as_deref()
    }

    /// Whether there is another row.
    pub fn has_next(&self) -> bool {
        self.rows.len() > 0
            || match &self.source {
                Source::Reply(answer, at) => *at < answer.row_bytes().len(),
                Source::File { next, .. } => next.is_some(),
            }
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    /// `cursor_expired` if no row was asked for during five minutes.
    pub async fn get_next(&mut self) -> Result<Option<GraphRow>, Failure> {
        if let Some(row) = self.rows.next() {
            return Ok(Some(row));
        }
        let rows = match &mut self.source {
            Source::Reply(answer, at) => {
                let (rows, taken) = first_page(&answer.row_bytes()[*at..], CURSOR_PAGES);
                *at += taken;
                rows
            }
            Source::File { next: None, .. } => return Ok(None),
            Source::File { next, .. } => {
                let token = next.take().unwrap_or_default();
                let page = self.engine.next_page(&token, CURSOR_PAGES).await?;
                *next = page.next;
                page.rows
            }
        };
        self.rows = rows.into_iter();
        Ok(self.rows.next())
    }

    /// Goes back to the first row.
    pub fn rewind(&mut self) {
        self.rows = Vec::new().into_iter();
        match &mut self.source {
            Source::Reply(_, at) => *at = 0,
            Source::File { start, next } => *next = Some(start.clone()),
        }
    }
}

/// Closes the file once it has expired.
fn close_when_expired(spools: &Arc<Spools>, number: u64) {
    let spools = Arc::downgrade(spools);
    tokio::spawn(async move {
        let remaining = || spools.upgrade()?.remaining(number, Instant::now());
        while let Some(left) = remaining() {
            tokio::time::sleep(left).await;
        }
    });
}

/// Runs disk access on another thread, so that the runtime keeps answering.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Failure::new(Code::Failed, format!("the rest of the answer was lost: {error}")))
    })
}

fn expired() -> Failure {
    Failure::new(Code::CursorExpired, "the rest of this answer has expired")
        .with_hint("run the query again, with SKIP for the rows you have")
}
