//! The graph of a store: Cypher, and ready-made queries about code.

mod check;
mod cycles;
mod datum_text;
mod describe;
mod import;
mod known_writes;
mod name;
mod overview;
mod pages;
mod row;
mod spool;
mod symbol;
mod unused;
mod walk;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use isolate::CallOptions;
use isolith_protocol::{ChangeGraph, CypherQuery, GraphAnswer, Key, RunCypher, SegmentsOf};
use isolith_types::{Code, Failure, counted};

pub use check::QueryCheck;
pub use datum_text::datum_text;
pub use describe::Side;
pub use import::{GraphImport, GraphImported};
pub(crate) use known_writes::KnownWrites;
pub use overview::{EdgeCount, FileImport, GraphSize, HotBy, Hotspot, ImportCycle, LabelCount};
use pages::blocking;
pub use pages::{GraphCursor, GraphPage, PageSize};
pub use row::Symbol;
pub use spool::GraphRow;
pub(crate) use spool::Spools;
use spool::{IncomingRows, Rest};
pub use walk::{GraphWalk, Impact, Listed, Neighbours, Reached, SymbolPath};

use crate::open::Engine;
use crate::search::Answered;

/// The outcome of a query.
struct QueryOutcome {
    /// The answer, with its first rows.
    answer: GraphAnswer,
    /// A file with the remaining rows.
    rest: Option<Rest>,
    /// Whether the query is one that changes the graph.
    is_write: bool,
}

impl Engine {
    /// Runs a query. A query that changes the graph is one transaction; with a key, repeating
    /// the call changes nothing and returns the same answer.
    ///
    /// The whole answer is held in memory. If it may be long, use [`Engine::cypher_page`] or
    /// [`Engine::cypher_rows`].
    ///
    /// # Errors
    /// `bad_input` for an invalid query or parameter; `timeout` and `too_large` if it needs
    /// too much time or memory; `already_applied` for a repeated call whose rows were not
    /// stored; any error of the store.
    pub async fn cypher(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphAnswer, Failure> {
        let QueryOutcome { answer, rest, .. } = self.run_cypher(query, key).await?;
        match rest {
            Some(rest) => Ok(answer.with_rest(&blocking(move || rest.read_all()).await?)),
            None => Ok(answer),
        }
    }

    /// Runs a query. Only the parser can tell whether it writes, and the front runs no parser:
    /// a query goes to a reader first, which returns those that write unprocessed, unless it is known
    /// from the last time.
    async fn run_cypher(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<QueryOutcome, Failure> {
        self.check_all_roots().await?;
        let known_writes = &self.inner.known_writes;
        let read = match known_writes.contains(&query.text) {
            true => None,
            false => self.read_cypher(&query).await?,
        };
        match read {
            Some((answer, rest)) => Ok(QueryOutcome { answer, rest, is_write: false }),
            None => {
                known_writes.insert(&query.text);
                let answer = self.write_cypher(query, key).await?;
                Ok(QueryOutcome { answer, rest: None, is_write: true })
            }
        }
    }

    async fn write_cypher(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphAnswer, Failure> {
        let written = self.write(ChangeGraph { query }, key).await?;
        match written.done.reply.graph {
            Some(answer) if answer.forgotten => Err(already_applied(&answer)),
            Some(answer) => Ok(answer),
            None => Err(Failure::new(Code::Failed, "unexpected reply from the writer")),
        }
    }

    /// The first rows of the answer, and a file with the others; `None` if the query changes
    /// the graph.
    async fn read_cypher(
        &self,
        query: &CypherQuery,
    ) -> Result<Option<(GraphAnswer, Option<Rest>)>, Failure> {
        let deadline = self.inner.options.deadline;
        let incoming = Arc::new(IncomingRows::default());
        let on_part = {
            let incoming = Arc::clone(&incoming);
            Arc::new(move |attempt, part: Bytes| incoming.take(attempt, &part))
        };
        let run = RunCypher { query: query.clone(), time: query_time_limit(deadline) };
        let options = CallOptions {
            deadline: Some(kill_deadline(deadline)),
            on_part: Some(on_part),
            ..CallOptions::default()
        };
        let Answered { reply: found, blamed } = self.ask_for_with(run, options).await?;
        if found.wanted {
            self.inner.graph_wanted.store(true, Ordering::Relaxed);
            self.build_later(SegmentsOf::Graph);
        }
        self.quarantine(SegmentsOf::Graph, &found.searched, blamed).await;
        let Some(answer) = found.answer else { return Ok(None) };
        let rest = incoming.finish(answer.rest)?;
        Ok(Some((answer, rest)))
    }
}

/// The time limit that a query enforces itself, so that its answer arrives before the deadline.
pub(crate) fn query_time_limit(deadline: Duration) -> Duration {
    deadline.mul_f32(0.9)
}

/// When a worker that does not stop by itself is killed. Later than the deadline: killing
/// costs a worker, and on a busy machine stopping may take a moment.
pub(crate) fn kill_deadline(deadline: Duration) -> Duration {
    deadline.mul_f32(1.1) + Duration::from_secs(1)
}

fn already_applied(answer: &GraphAnswer) -> Failure {
    let message = format!(
        "the query was applied before; its result ({}) was too long to store",
        counted(answer.count, "row")
    );
    Failure::new(Code::AlreadyApplied, message).with_hint("read its results with another query")
}
