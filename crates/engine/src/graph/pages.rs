//! Answers in pages: one job computes all of it, and what is more than a page waits in the
//! front.

use std::sync::Arc;
use std::time::Instant;

use isolith_graph::Stats;
use isolith_store::{CypherQuery, Key};
use isolith_types::{Code, Failure};

use super::spool::{Place, Row, Spool, Spools, cut};
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
    pub rows: Vec<Row>,
    /// What was changed; only the first page has it.
    pub stats: Stats,
    /// What to ask for the next page with, if there is one.
    pub next: Option<String>,
}

/// An answer, row by row. It holds a page at a time.
#[derive(Debug)]
pub struct GraphCursor {
    engine: Engine,
    size: PageSize,
    columns: Vec<String>,
    stats: Stats,
    rows: std::vec::IntoIter<Row>,
    next: Option<String>,
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
        let answer = self.cypher(query, key).await?;
        let (rows, taken) = cut(answer.row_bytes(), size);
        let (columns, stats) = (answer.columns.clone(), answer.stats);
        if taken == answer.row_bytes().len() {
            return Ok(GraphPage { columns, rows, stats, next: None });
        }
        let written =
            blocking(move || Spool::write(answer.columns.clone(), &answer.row_bytes()[taken..]));
        let spool = self.inner.spools.keep(written.await?, Instant::now());
        forget_in_time(&self.inner.spools, spool);
        let next = Some(self.inner.spools.token(Place { spool, at: 0 })?);
        Ok(GraphPage { columns, rows, stats, next })
    }

    /// The page that `token` names. Asked again, it is the same.
    ///
    /// # Errors
    /// `cursor_expired` for a token that was not used for five minutes, that another
    /// engine gave, or nobody.
    pub async fn next_page(&self, token: &str, size: PageSize) -> Result<GraphPage, Failure> {
        let spools = &self.inner.spools;
        let Some(Place { spool: number, at }) = spools.place(token)? else { return Err(expired()) };
        let spool = spools.find(number, Instant::now()).ok_or_else(expired)?;
        let columns = spool.columns.clone();
        let (rows, next) = blocking(move || spool.read(at, size)).await?;
        let next = next.map(|at| spools.token(Place { spool: number, at })).transpose()?;
        Ok(GraphPage { columns, rows, stats: Stats::default(), next })
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
        let size = CURSOR_PAGES;
        let GraphPage { columns, rows, stats, next } = self.cypher_page(query, key, size).await?;
        let (engine, rows) = (self.clone(), rows.into_iter());
        Ok(GraphCursor { engine, size, columns, stats, rows, next })
    }
}

impl GraphCursor {
    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What was changed.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether there is another row.
    pub fn has_next(&self) -> bool {
        self.rows.len() > 0 || self.next.is_some()
    }

    /// The next row; none after the last.
    ///
    /// # Errors
    /// `cursor_expired` if nobody asked for five minutes.
    pub async fn get_next(&mut self) -> Result<Option<Row>, Failure> {
        if let Some(row) = self.rows.next() {
            return Ok(Some(row));
        }
        let Some(token) = &self.next else { return Ok(None) };
        let page = self.engine.next_page(token, self.size).await?;
        (self.rows, self.next) = (page.rows.into_iter(), page.next);
        Ok(self.rows.next())
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
async fn blocking<T: Send + 'static>(
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
