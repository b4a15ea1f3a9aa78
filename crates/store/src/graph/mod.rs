//! The graph: nodes and edges in plain tables, as Cypher sees them.
//!
//! Ids of nodes and edges are never reused; names of labels, types and properties have ids, too.
//! Properties are stored encoded in the node's row; indexed ones are also in a lookup table.
//! Nodes and edges with an owner are derived from a file, an entity or a fact, and read-only for
//! queries.

mod batch;
mod bytes;
mod cache;
mod change;
mod constraints;
mod derived;
mod ends;
mod facts;
mod import;
mod names;
mod owned;
mod pending;
mod query;
mod reading;
mod row;
mod segment;

use std::cell::RefCell;

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, ToSql};
use isolith_sql::{ToSqlOutput, ValueRef};

use isolith_graph::Value;
use isolith_types::Failure;

pub(crate) use cache::GraphCache;
use change::GraphCounts;
pub(crate) use constraints::malformed_constraints;
pub(crate) use derived::{
    KnownNames, NodeParts, edge_names, from_lookup, has_label, has_value, put, recount,
};
pub(crate) use ends::{REBUILD_ENDS, has_ends};
pub(crate) use facts::{sync_facts, sync_first_facts};
#[cfg(feature = "fuzzing")]
pub use import::read_cells;
use names::NameTable;
use owned::Property;
pub(crate) use owned::{OwnedKeys, SHARED};
use query::QUERY_MEMORY;
pub(crate) use query::QueryCache;
use row::LastRow;
pub(crate) use segment::is_due;
pub use segment::{AdjacencySource, GraphLists};

use crate::sqlite::During;

/// The graph within one transaction.
pub(crate) struct TruthGraph<'a> {
    db: &'a dyn Connection,
    names: NameTable,
    /// Present while the graph is written to.
    counts: Option<GraphCounts>,
    segment: Option<&'a dyn AdjacencySource>,
    /// The cache, present while the graph is only read.
    cache: Option<GraphCache>,
    last_row: RefCell<LastRow>,
}

impl<'a> TruthGraph<'a> {
    /// Opens the graph for reading, without a cache.
    pub(crate) fn new(db: &'a dyn Connection) -> Self {
        let last_row = RefCell::default();
        Self { db, names: NameTable::default(), counts: None, segment: None, cache: None, last_row }
    }
}

/// Texts are looked up by a prefix of this many bytes.
const MAX_LOOKUP_LEN: usize = 200;

/// The lookup form of a value: equal for equal values, and occasionally for different ones.
/// That of a temporal value is [`temporal_form`].
fn lookup(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Float(number) if number.is_nan() => ValueRef::Blob(b"n"),
        Value::Float(number) => ValueRef::Real(*number),
        Value::Text(text) => ValueRef::Text(lookup_prefix(text).as_bytes()),
        Value::Boolean(false) => ValueRef::Blob(b"f"),
        Value::Boolean(true) => ValueRef::Blob(b"t"),
        _ => ValueRef::Blob(b"l"),
    }
}

/// The lookup form of a temporal value, from which it can be restored; `None` for other types.
fn temporal_form(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Temporal(it) => Some([b"d".as_slice(), &bytes::write_temporal(it)].concat()),
        _ => None,
    }
}

fn lookup_prefix(text: &str) -> &str {
    let mut ends = (0..=text.len().min(MAX_LOOKUP_LEN)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// A small value with the same lookup form.
fn shortest_alike(value: &Value) -> Value {
    match value {
        Value::Text(text) if text.len() > MAX_LOOKUP_LEN => Value::text(lookup_prefix(text)),
        Value::List(_) => Value::list(Vec::new()),
        value => value.clone(),
    }
}

/// Binds a value in its lookup form.
struct Lookup<'a>(&'a Value);

impl ToSql for Lookup<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match temporal_form(self.0) {
            Some(bytes) => ToSqlOutput::Owned(rusqlite::types::Value::Blob(bytes)),
            None => ToSqlOutput::Borrowed(lookup(self.0)),
        })
    }
}

/// Converts a failure of the graph to a store error.
pub(crate) fn query_failed(failure: Failure) -> StoreError {
    StoreError::Query(Box::new(failure))
}

fn failure(error: StoreError) -> Failure {
    error.to_failure()
}

/// A single column of the first row, if there is one.
fn one<T: isolith_sql::FromSql>(
    db: &dyn Connection,
    sql: &str,
    parameters: impl isolith_sql::Params,
) -> Result<Option<T>, Failure> {
    db.prepare_cached(sql)
        .and_then(|mut statement| statement.query_row(parameters, |row| row.get(0)).optional())
        .during(db, "read the graph")
        .map_err(failure)
}
