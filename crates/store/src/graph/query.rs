//! Running Cypher against the truth.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use isolith_graph::{Budget, Datum, Error, Flow, Query, Stats, prepare};
use isolith_protocol::{
    ChangeGraph, CypherQuery, Done, GraphAnswer, GraphChanged, Rows, StoreError,
};
use isolith_types::{Code, Failure};

use super::{AdjacencySource, TruthGraph, is_due};
use crate::deadline::Deadline;
use crate::read::Snapshot;
use crate::write::{Perform, Work};

/// Memory limit of a running query.
pub(super) const QUERY_MEMORY: usize = 256 << 20;

/// After a query that used this much, memory is returned to the system.
const TRIM_THRESHOLD: usize = 16 << 20;

/// Limits of the cache of parsed queries: how many, and how long each may be.
const MAX_CACHED_QUERIES: usize = 128;
const MAX_CACHED_QUERY_LEN: usize = 8 << 10;

/// Initial capacity; most small answers fit.
const TYPICAL_ANSWER_SIZE: usize = 256;

/// Maximum size of an answer.
const MAX_ANSWER_SIZE: usize = 64 << 20;

/// Maximum size of a writing query's answer: it is stored with the receipt.
const MAX_WRITE_ANSWER_SIZE: usize = 8 << 20;

/// Maximum size of one row in the reader's memory.
const MAX_ROW_SIZE: usize = 16 << 20;

/// Size of the rows returned with the answer itself; the rest is streamed, if the caller accepts
/// that.
const FIRST_ROWS_SIZE: usize = 1 << 20;

/// Approximate size of a streamed piece.
const PIECE_SIZE: usize = 256 << 10;

/// Receives the rows after the first ones of an answer, in postcard.
pub(super) type RowSink<'a> = &'a mut dyn FnMut(&[u8]);

/// Cache of parsed and checked queries: programs repeat the same ones.
#[derive(Debug, Default)]
pub(crate) struct QueryCache(RefCell<HashMap<Box<str>, Arc<Query>>>);

impl QueryCache {
    fn prepare(&self, text: &str) -> Result<Arc<Query>, StoreError> {
        if let Some(query) = self.0.borrow().get(text) {
            return Ok(Arc::clone(query));
        }
        let query = Arc::new(prepare(text).map_err(refused)?);
        if text.len() <= MAX_CACHED_QUERY_LEN {
            let mut known = self.0.borrow_mut();
            if known.len() >= MAX_CACHED_QUERIES {
                known.clear();
            }
            known.insert(text.into(), Arc::clone(&query));
        }
        Ok(query)
    }
}

impl Snapshot<'_> {
    /// Runs a read-only query, using the graph's segment if it is current.
    ///
    /// # Errors
    /// If the query is invalid or would change the graph, if it exceeds its time or memory, or
    /// if the truth cannot be read.
    pub fn cypher(
        &self,
        query: &CypherQuery,
        segment: Option<&dyn AdjacencySource>,
    ) -> Result<GraphAnswer, StoreError> {
        self.cypher_to(query, segment, None)?.ok_or_else(|| {
            let message = "the query changes the graph, but only reading is allowed here";
            StoreError::Query(Box::new(Failure::new(Code::BadInput, message)))
        })
    }

    /// Like [`Snapshot::cypher`], but returns only the first rows of a long answer and streams
    /// the others to `rest` as they are found. Discard them if an error is returned. Returns
    /// `None` for a query that changes the graph: it must go to the writer.
    ///
    /// # Errors
    /// As [`Snapshot::cypher`].
    pub fn cypher_to(
        &self,
        query: &CypherQuery,
        segment: Option<&dyn AdjacencySource>,
        rest: Option<RowSink<'_>>,
    ) -> Result<Option<GraphAnswer>, StoreError> {
        let prepared = self.db.queries.prepare(&query.text)?;
        if prepared.is_write() {
            return Ok(None);
        }
        let graph =
            TruthGraph::reading(self.connection(), self.version, self.db.graph_cache.take());
        let graph = TruthGraph { segment, ..graph };
        let rows = AnswerBuilder::new(MAX_ANSWER_SIZE, rest);
        let answer = answer(&self.db.deadline, &prepared, rows, |budget, sink| {
            prepared.run(&graph, &query.parameters, budget, sink)
        });
        self.db.graph_cache.replace(graph.into_cache());
        answer.map(Some)
    }
}

impl Perform for ChangeGraph {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let graph = change(work, &self.query)?;
        let graph_due = graph.is_some() && is_due(work, false)?;
        Ok(Done { graph_due, ..GraphChanged { graph }.into() })
    }

    fn shorten(reply: &mut GraphChanged) -> bool {
        let full = reply.graph.take_if(|answer| !answer.forgotten && answer.count > 0);
        let is_full = full.is_some();
        if let Some(answer) = full {
            reply.graph = Some(answer.without_rows());
        }
        is_full
    }
}

/// Runs a query that changes the graph, in the open transaction. Does nothing and returns `None`
/// if the query is read-only: it must go to a reader.
fn change(work: Work<'_>, query: &CypherQuery) -> Result<Option<GraphAnswer>, StoreError> {
    let prepared = prepare(&query.text).map_err(refused)?;
    if !prepared.is_write() {
        return Ok(None);
    }
    let graph = TruthGraph::begin(work.db)?;
    let rows = AnswerBuilder::new(MAX_WRITE_ANSWER_SIZE, None);
    let answer = answer(work.deadline, &prepared, rows, |budget, sink| {
        prepared.run_mut(&graph, &query.parameters, budget, sink)
    })?;
    graph.finish()?;
    Ok(Some(answer))
}

type Sink<'a> = &'a mut dyn FnMut(Vec<Datum>) -> isolith_graph::Result<Flow>;

/// Collects the rows of an answer.
struct AnswerBuilder<'a> {
    first: Vec<u8>,
    /// Encoded rows not yet streamed.
    piece: Vec<u8>,
    handed: usize,
    count: u64,
    largest: usize,
    rest: Option<RowSink<'a>>,
}

impl<'a> AnswerBuilder<'a> {
    fn new(largest: usize, rest: Option<RowSink<'a>>) -> Self {
        let first = Vec::with_capacity(TYPICAL_ANSWER_SIZE);
        Self { first, piece: Vec::new(), handed: 0, count: 0, largest, rest }
    }

    fn take(&mut self, row: &[Datum]) -> isolith_graph::Result<Flow> {
        let is_first =
            self.rest.is_none() || self.handed == 0 && self.first.len() < FIRST_ROWS_SIZE;
        let bytes = if is_first { &mut self.first } else { &mut self.piece };
        *bytes = postcard::to_extend(row, std::mem::take(bytes))
            .map_err(|error| Error::TooLarge(format!("cannot encode a row: {error}")))?;
        self.count += 1;
        if self.first.len() + self.handed + self.piece.len() > self.largest {
            let limit = self.largest >> 20;
            return Err(Error::TooLarge(format!("the answer is larger than {limit} MiB")));
        }
        if self.piece.len() >= PIECE_SIZE {
            self.send_piece();
        }
        Ok(Flow::Continue)
    }

    fn send_piece(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest(&self.piece);
            self.handed += self.piece.len();
            self.piece.clear();
        }
    }
}

fn answer(
    deadline: &Deadline,
    query: &Query,
    mut rows: AnswerBuilder<'_>,
    run: impl FnOnce(&Budget<'_>, Sink<'_>) -> isolith_graph::Result<Stats>,
) -> Result<GraphAnswer, StoreError> {
    let passed = || deadline.passed();
    let budget = Budget::unbounded()
        .with_memory(QUERY_MEMORY)
        .with_row_bytes(MAX_ROW_SIZE)
        .with_cancellation(&passed);
    let stats = run(&budget, &mut |row| rows.take(&row));
    let most = budget.peak();
    if most > TRIM_THRESHOLD {
        isolate::give_back_memory();
    }
    let stats = stats.map_err(|error| match error {
        // The caller knows whether it was the deadline or a cancellation.
        Error::Cancelled => refused(Error::Timeout),
        error => refused(error),
    })?;
    rows.send_piece();
    let (columns, count) = (query.columns().to_vec(), rows.count);
    let rest = rows.handed as u64;
    let rows = Rows(rows.first.into());
    Ok(GraphAnswer { columns, count, rows, rest, forgotten: false, stats, degraded: None })
}

fn refused(error: Error) -> StoreError {
    StoreError::Query(Box::new(error.into()))
}
