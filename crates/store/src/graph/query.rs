//! Cypher as the truth answers it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use isolate::Bulk;
use isolith_graph::{Budget, Datum, Error, Flow, Query, Stats, prepare};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AdjacencySource, TruthGraph};
use crate::deadline::Deadline;
use crate::error::StoreError;
use crate::read::Snapshot;
use crate::write::Work;

/// What a query may keep while it runs.
const QUERY_MEMORY: usize = 256 << 20;

/// After a query that kept as much, memory is given back to the system.
const MUCH_MEMORY: usize = 16 << 20;

/// So many queries are known at most, and none that is longer.
const MOST_QUERIES: usize = 128;
const LONGEST_KNOWN: usize = 8 << 10;

/// Most answers to small questions fit.
const USUAL_ANSWER: usize = 256;

/// What an answer may hold.
const LARGEST_ANSWER: usize = 64 << 20;

/// What the answer of a query that changes something may hold: it is kept with the receipt of
/// the change until it has arrived.
const LARGEST_CHANGE: usize = 8 << 20;

/// What a row may take in the memory of whoever reads it.
const LARGEST_ROW: usize = 16 << 20;

/// Rows that come with the answer itself; those behind them are sent ahead, if somebody takes
/// them.
const FIRST_ROWS: usize = 1 << 20;

/// Rows are handed over in pieces of about this size.
const PIECE: usize = 256 << 10;

/// A query with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CypherQuery {
    /// The query.
    pub text: String,
    /// The values that it names as `$name`.
    pub parameters: BTreeMap<String, Datum>,
}

/// What a query answered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GraphAnswer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// How many rows there are.
    pub count: u64,
    /// The rows, or the first of them.
    pub rows: Rows,
    /// How many bytes of rows were handed over before the answer.
    #[serde(default)]
    pub rest: u64,
    /// Whether the rows are not known any more: this is a repeated answer.
    pub forgotten: bool,
    /// What was changed.
    pub stats: Stats,
    /// How it was found less quickly than it should be.
    pub degraded: Option<String>,
}

/// Rows, one `Vec<Datum>` after the other, in postcard; as text where bytes would be long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows(Bulk);

impl GraphAnswer {
    /// The rows, one after the other.
    ///
    /// # Errors
    /// That the bytes make no sense.
    pub fn rows(&self) -> impl Iterator<Item = Result<Vec<Datum>, Failure>> + '_ {
        let mut rest = &self.rows.0[..];
        (0..self.count).map(move |_| {
            let (row, after) = first_row(rest)?;
            rest = after;
            Ok(row)
        })
    }

    /// The answer with the rows that were handed over before it.
    #[must_use]
    pub fn with_rest(mut self, rest: &[u8]) -> Self {
        if !rest.is_empty() {
            self.rows = Rows([self.row_bytes(), rest].concat().into());
        }
        self.rest = 0;
        self
    }

    /// The rows as they are sent, for [`first_row`].
    #[must_use]
    pub fn row_bytes(&self) -> &[u8] {
        &self.rows.0
    }

    /// The answer without its rows.
    #[must_use]
    pub(crate) fn without_rows(self) -> Self {
        Self { rows: Rows::default(), forgotten: self.count > 0, ..self }
    }
}

/// The first row of some, and what comes after it.
///
/// # Errors
/// That the bytes make no sense, or are cut off.
pub fn first_row(bytes: &[u8]) -> Result<(Vec<Datum>, &[u8]), Failure> {
    postcard::take_from_bytes(bytes).map_err(|error| {
        Failure::new(Code::Failed, format!("a row of the answer cannot be read: {error}"))
    })
}

/// Takes rows behind the first ones of an answer, in postcard.
pub(super) type Rest<'a> = &'a mut dyn FnMut(&[u8]);

/// Queries that were read and checked before: programs ask the same ones again and again.
#[derive(Debug, Default)]
pub(crate) struct KnownQueries(RefCell<HashMap<Box<str>, Arc<Query>>>);

impl KnownQueries {
    fn prepare(&self, text: &str) -> Result<Arc<Query>, StoreError> {
        if let Some(query) = self.0.borrow().get(text) {
            return Ok(Arc::clone(query));
        }
        let query = Arc::new(prepare(text).map_err(refused)?);
        if text.len() <= LONGEST_KNOWN {
            let mut known = self.0.borrow_mut();
            if known.len() >= MOST_QUERIES {
                known.clear();
            }
            known.insert(text.into(), Arc::clone(&query));
        }
        Ok(query)
    }
}

impl Snapshot<'_> {
    /// Answers a query that changes nothing, with the help of the graph's segment where that
    /// says what the graph says.
    ///
    /// # Errors
    /// What is wrong with the query, that it would change something, that it takes too long
    /// or too much memory, or that the truth cannot be read.
    pub fn cypher(
        &self,
        query: &CypherQuery,
        segment: Option<&dyn AdjacencySource>,
    ) -> Result<GraphAnswer, StoreError> {
        self.cypher_to(query, segment, None)
    }

    /// The same; of a long answer only the first rows come with it. Those behind them go to
    /// `rest` as they are found, so that nobody has to hold all of them. They mean nothing
    /// if there is an error in the end.
    ///
    /// # Errors
    /// As [`Snapshot::cypher`].
    pub fn cypher_to(
        &self,
        query: &CypherQuery,
        segment: Option<&dyn AdjacencySource>,
        rest: Option<Rest<'_>>,
    ) -> Result<GraphAnswer, StoreError> {
        let prepared = self.db.queries.prepare(&query.text)?;
        if prepared.is_write() {
            let message = "the query changes the graph, and this is a place for reading";
            return Err(StoreError::Query(Box::new(Failure::new(Code::BadInput, message))));
        }
        let graph = TruthGraph::reading(self.connection(), self.version, self.db.kept.take());
        let graph = TruthGraph { segment, ..graph };
        let rows = Answering::new(LARGEST_ANSWER, rest);
        let answer = answer(&self.db.deadline, &prepared, rows, |budget, sink| {
            prepared.run(&graph, &query.parameters, budget, sink)
        });
        self.db.kept.replace(graph.into_kept());
        answer
    }
}

/// Runs a query that changes the graph, in the transaction that is open. Nothing is done,
/// and there is no answer, if it changes nothing: it is for a reader.
pub(crate) fn change(
    work: Work<'_>,
    query: &CypherQuery,
) -> Result<Option<GraphAnswer>, StoreError> {
    let prepared = prepare(&query.text).map_err(refused)?;
    if !prepared.is_write() {
        return Ok(None);
    }
    let graph = TruthGraph::begin(work.db)?;
    let rows = Answering::new(LARGEST_CHANGE, None);
    let answer = answer(work.deadline, &prepared, rows, |budget, sink| {
        prepared.run_mut(&graph, &query.parameters, budget, sink)
    })?;
    graph.finish()?;
    Ok(Some(answer))
}

type Sink<'a> = &'a mut dyn FnMut(Vec<Datum>) -> isolith_graph::Result<Flow>;

/// The rows of an answer that is being made.
struct Answering<'a> {
    first: Vec<u8>,
    /// What was not handed over yet.
    piece: Vec<u8>,
    handed: usize,
    count: u64,
    largest: usize,
    rest: Option<Rest<'a>>,
}

impl<'a> Answering<'a> {
    fn new(largest: usize, rest: Option<Rest<'a>>) -> Self {
        let first = Vec::with_capacity(USUAL_ANSWER);
        Self { first, piece: Vec::new(), handed: 0, count: 0, largest, rest }
    }

    fn take(&mut self, row: &[Datum]) -> isolith_graph::Result<Flow> {
        let is_first = self.rest.is_none() || self.handed == 0 && self.first.len() < FIRST_ROWS;
        let bytes = if is_first { &mut self.first } else { &mut self.piece };
        *bytes = postcard::to_extend(row, std::mem::take(bytes))
            .map_err(|error| Error::TooLarge(format!("a row cannot be sent: {error}")))?;
        self.count += 1;
        if self.first.len() + self.handed + self.piece.len() > self.largest {
            let limit = self.largest >> 20;
            return Err(Error::TooLarge(format!("the answer has more than {limit} MiB")));
        }
        if self.piece.len() >= PIECE {
            self.hand_over();
        }
        Ok(Flow::Continue)
    }

    fn hand_over(&mut self) {
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
    mut rows: Answering<'_>,
    run: impl FnOnce(&Budget<'_>, Sink<'_>) -> isolith_graph::Result<Stats>,
) -> Result<GraphAnswer, StoreError> {
    let passed = || deadline.passed();
    let budget = Budget::unbounded()
        .with_memory(QUERY_MEMORY)
        .with_row(LARGEST_ROW)
        .with_cancellation(&passed);
    let stats = run(&budget, &mut |row| rows.take(&row));
    let most = budget.most();
    if most > MUCH_MEMORY {
        isolate::give_back_memory();
    }
    let stats = stats.map_err(|error| match error {
        // Whether it was the time or somebody who stopped it, is known to whoever did.
        Error::Cancelled => refused(Error::Timeout),
        error => refused(error),
    })?;
    rows.hand_over();
    let (columns, count) = (query.columns().to_vec(), rows.count);
    let rest = rows.handed as u64;
    let rows = Rows(rows.first.into());
    Ok(GraphAnswer { columns, count, rows, rest, forgotten: false, stats, degraded: None })
}

fn refused(error: Error) -> StoreError {
    StoreError::Query(Box::new(error.into()))
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Bulk::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        let bytes = text.as_bytes().chunks(2).map(|pair| {
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.map(|bytes| Self(bytes.into())).ok_or_else(|| serde::de::Error::custom("no rows"))
    }
}
