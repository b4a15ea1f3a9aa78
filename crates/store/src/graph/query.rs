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

/// So many queries are known at most, and none that is longer.
const MOST_QUERIES: usize = 128;
const LONGEST_KNOWN: usize = 8 << 10;

/// Most answers to small questions fit.
const USUAL_ANSWER: usize = 256;

/// What an answer may hold.
const LARGEST_ANSWER: usize = 64 << 20;

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
    /// The rows.
    pub rows: Rows,
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
        let prepared = self.db.queries.prepare(&query.text)?;
        if prepared.is_write() {
            let message = "the query changes the graph, and this is a place for reading";
            return Err(StoreError::Query(Box::new(Failure::new(Code::BadInput, message))));
        }
        let graph = TruthGraph::reading(self.connection(), self.version, self.db.kept.take());
        let graph = TruthGraph { segment, ..graph };
        let answer = answer(&self.db.deadline, &prepared, |budget, sink| {
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
    let answer = answer(work.deadline, &prepared, |budget, sink| {
        prepared.run_mut(&graph, &query.parameters, budget, sink)
    })?;
    graph.finish()?;
    Ok(Some(answer))
}

type Sink<'a> = &'a mut dyn FnMut(Vec<Datum>) -> isolith_graph::Result<Flow>;

fn answer(
    deadline: &Deadline,
    query: &Query,
    run: impl FnOnce(&Budget<'_>, Sink<'_>) -> isolith_graph::Result<Stats>,
) -> Result<GraphAnswer, StoreError> {
    let passed = || deadline.passed();
    let budget = Budget::unbounded().with_memory(QUERY_MEMORY).with_cancellation(&passed);
    let (mut rows, mut count) = (Vec::with_capacity(USUAL_ANSWER), 0);
    let stats = run(&budget, &mut |row| {
        rows = postcard::to_extend(&row, std::mem::take(&mut rows))
            .map_err(|error| Error::TooLarge(format!("a row cannot be sent: {error}")))?;
        count += 1;
        if rows.len() > LARGEST_ANSWER {
            let limit = LARGEST_ANSWER >> 20;
            return Err(Error::TooLarge(format!("the answer has more than {limit} MB")));
        }
        Ok(Flow::Continue)
    });
    let stats = stats.map_err(|error| match error {
        // Whether it was the time or somebody who stopped it, is known to whoever did.
        Error::Cancelled => refused(Error::Timeout),
        error => refused(error),
    })?;
    let columns = query.columns().to_vec();
    let rows = Rows(rows.into());
    Ok(GraphAnswer { columns, count, rows, forgotten: false, stats, degraded: None })
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
