//! Answers in pages: one job computes all of it. The first rows come with its reply; the rest
//! goes into a file as it arrives, and is never in memory as a whole.

use std::sync::Arc;
use std::time::Instant;

use isolith_graph::Stats;
use isolith_protocol::{CypherQuery, GraphAnswer, Key};
use isolith_types::{Code, Failure};

use super::Ran;
use super::spool::{GraphRow, Spool, SpoolPosition, Spools, cut};
use crate::open::Engine;

/// How much a page takes. It has one row at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// The most rows.
    pub rows: usize,
    /// The most bytes, of rows as the store sends them.
    pub bytes: usize,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphPage {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// Some rows.
    pub rows: Vec<GraphRow>,
    /// What was changed; only the first page has it.
    pub stats: Stats,
    /// Why it took longer than it should; only the first page has it.
    pub degraded: Option<String>,
    /// What to ask for the next page with, if there is one.
    pub next: Option<String>,
}

/// An answer, row by row. It holds a page at a time.
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

/// Where a cursor has its rows from.
#[derive(Debug)]
enum Source {
    /// The reply itself, and how far it was read.
    Reply(GraphAnswer, usize),
    /// A file: what to ask for its beginning with, and for what was not read yet.
    File { start: String, next: Option<String> },
}

/// The pages of a cursor.
const CURSOR_PAGES: PageSize = PageSize { rows: 1_000, bytes: 1 << 20 };

impl Engine {
    /// Runs a query, as [`Engine::cypher`] does: the first page of its answer.
    ///
    /// # Errors
    /// As there; or that the rest cannot be kept.
    pub async fn cypher_page(
        &self,
        query: CypherQuery,
        key: Option<Key>,
        size: PageSize,
    ) -> Result<GraphPage, Failure> {
        let Ran { answer, rest, .. } = self.cypher_apart(query, key).await?;
        let (rows, taken) = cut(answer.row_bytes(), size);
        let (columns, stats) = (answer.columns.clone(), answer.stats);
        let degraded = answer.degraded.clone();
        if taken == answer.row_bytes().len() && rest.is_none() {
            return Ok(GraphPage { columns, rows, stats, degraded, next: None });
        }
        let names = columns.clone();
        let written = blocking(move || Spool::write(names, &answer.row_bytes()[taken..], rest));
        let spool = self.inner.spools.keep(written.await?, Instant::now());
        forget_in_time(&self.inner.spools, spool);
        let next = Some(self.inner.spools.token(SpoolPosition { spool, at: 0 })?);
        Ok(GraphPage { columns, rows, stats, degraded, next })
    }

    /// The page that `token` names. Asked again, it is the same.
    ///
    /// # Errors
    /// `cursor_expired` for a token that was not used for five minutes, that another
    /// engine gave, or nobody.
    pub async fn next_page(&self, token: &str, size: PageSize) -> Result<GraphPage, Failure> {
        let spools = &self.inner.spools;
        let Some(SpoolPosition { spool: number, at }) = spools.place(token)? else {
            return Err(expired());
        };
        let spool = spools.find(number, Instant::now()).ok_or_else(expired)?;
        let columns = spool.columns.clone();
        let (rows, next) = blocking(move || spool.read(at, size)).await?;
        let next = next.map(|at| spools.token(SpoolPosition { spool: number, at })).transpose()?;
        Ok(GraphPage { columns, rows, stats: Stats::default(), degraded: None, next })
    }

    /// Runs a query, as [`Engine::cypher`] does, for a caller who wants row after row.
    ///
    /// # Errors
    /// As there; or that the rest cannot be kept.
    pub async fn cypher_rows(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphCursor, Failure> {
        let Ran { mut answer, rest, is_write } = self.cypher_apart(query, key).await?;
        let (columns, stats) = (std::mem::take(&mut answer.columns), answer.stats);
        let degraded = answer.degraded.take();
        let source = match rest {
            None => Source::Reply(answer, 0),
            Some(rest) => {
                let names = columns.clone();
                let write = move || Spool::write(names, answer.row_bytes(), Some(rest));
                let spool = self.inner.spools.keep(blocking(write).await?, Instant::now());
                forget_in_time(&self.inner.spools, spool);
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

    /// Whether the query is one that changes the graph, even if it found nothing to change.
    pub fn is_write(&self) -> bool {
        self.is_write
    }

    /// What was changed.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Why it took longer than it should.
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

    /// The next row; none after the last.
    ///
    /// # Errors
    /// `cursor_expired` if nobody asked for five minutes.
    pub async fn get_next(&mut self) -> Result<Option<GraphRow>, Failure> {
        if let Some(row) = self.rows.next() {
            return Ok(Some(row));
        }
        let rows = match &mut self.source {
            Source::Reply(answer, at) => {
                let (rows, taken) = cut(&answer.row_bytes()[*at..], CURSOR_PAGES);
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

/// Closes a file when nobody has asked for it for long enough.
fn forget_in_time(spools: &Arc<Spools>, number: u64) {
    let spools = Arc::downgrade(spools);
    tokio::spawn(async move {
        let left = || spools.upgrade()?.left(number, Instant::now());
        while let Some(left) = left() {
            tokio::time::sleep(left).await;
        }
    });
}

/// Disks take their time, and others are to be answered meanwhile.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Failure::new(Code::Failed, format!("the rest of the answer was lost: {error}")))
    })
}

fn expired() -> Failure {
    Failure::new(Code::CursorExpired, "the rest of this answer is not kept any more")
        .with_hint("run the query again, with SKIP for what is known already")
}
