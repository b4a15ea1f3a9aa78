//! The graph of a store: Cypher, and what people ask of their code.

mod check;
mod describe;
mod import;
mod name;
mod overview;
mod pages;
mod rings;
mod row;
mod shown;
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
pub use describe::Side;
pub use import::{GraphImport, GraphImported};
pub use overview::{FileImport, GraphSize, HotBy, Hotspot, ImportCycle, Kinds, Ties};
use pages::blocking;
pub use pages::{GraphCursor, GraphPage, PageSize};
pub use row::Symbol;
pub use shown::datum_text;
pub use spool::GraphRow;
pub(crate) use spool::Spools;
use spool::{Arriving, Rest};
pub use walk::{GraphWalk, Impact, Listed, Neighbours, Reached, SymbolPath};

use crate::open::Engine;
use crate::search::Answered;

/// What became of a query.
struct Ran {
    /// The answer, with its first rows.
    answer: GraphAnswer,
    /// A file with the rows behind those.
    rest: Option<Rest>,
    /// Whether the query was one that changes the graph.
    is_write: bool,
}

impl Engine {
    /// Runs a query. One that changes the graph is one transaction; with a key, a repeat of
    /// the same call changes nothing and answers the same.
    ///
    /// # Errors
    /// `bad_input` for what is wrong with the query or its parameters; `timeout` and
    /// `too_large` for one that takes too long or keeps too much; `already_applied` for a
    /// repeat whose rows are no longer known; or what keeps the store from answering.
    ///
    /// All of the answer is held in memory: where it may be long, ask for pages or rows.
    pub async fn cypher(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphAnswer, Failure> {
        let Ran { answer, rest, .. } = self.cypher_apart(query, key).await?;
        match rest {
            Some(rest) => Ok(answer.with_rest(&blocking(move || rest.read_all()).await?)),
            None => Ok(answer),
        }
    }

    /// Runs a query. Only the parser knows whether it changes something, and no parser runs in
    /// the front: every query goes to a reader, which leaves those that write to the writer.
    async fn cypher_apart(&self, query: CypherQuery, key: Option<Key>) -> Result<Ran, Failure> {
        self.check_all_roots().await?;
        match self.read_cypher(&query).await? {
            Some((answer, rest)) => Ok(Ran { answer, rest, is_write: false }),
            None => {
                let answer = self.write_cypher(query, key).await?;
                Ok(Ran { answer, rest: None, is_write: true })
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
            Some(answer) if answer.forgotten => Err(applied(&answer)),
            Some(answer) => Ok(answer),
            None => Err(Failure::new(Code::Failed, "unexpected reply from the writer")),
        }
    }

    /// The first rows of an answer, and a file with those behind them; nothing if the query
    /// changes the graph.
    async fn read_cypher(
        &self,
        query: &CypherQuery,
    ) -> Result<Option<(GraphAnswer, Option<Rest>)>, Failure> {
        let deadline = self.inner.options.deadline;
        let arriving = Arc::new(Arriving::default());
        let on_part = {
            let arriving = Arc::clone(&arriving);
            Arc::new(move |attempt, part: Bytes| arriving.take(attempt, &part))
        };
        let run = RunCypher { query: query.clone(), time: time_of(deadline) };
        let options = CallOptions {
            deadline: Some(patience_of(deadline)),
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
        let rest = arriving.finish(answer.rest)?;
        Ok(Some((answer, rest)))
    }
}

/// How long a query may take, for it to be stopped, and the answer to be here, in time.
pub(crate) fn time_of(deadline: Duration) -> Duration {
    deadline.mul_f32(0.9)
}

/// When a worker that does not stop is killed. It is meant to stop by itself long before: a
/// death costs a worker, and on a busy machine it may take a moment.
pub(crate) fn patience_of(deadline: Duration) -> Duration {
    deadline.mul_f32(1.1) + Duration::from_secs(1)
}

fn applied(answer: &GraphAnswer) -> Failure {
    let message = format!(
        "the query was applied before; its result ({}) was too long to store",
        counted(answer.count, "row")
    );
    Failure::new(Code::AlreadyApplied, message).with_hint("read what it made with another query")
}
