//! The graph: queries and answers, imported tables, and the graph's stored state.

use std::collections::BTreeMap;

use isolate_types::Bulk;
use isolith_graph::{Datum, Stats};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Below this, traversing the database is as fast as traversing a segment.
const MIN_SEGMENT_EDGES: u64 = 10_000;

/// Above this, building a segment needs more memory than a worker may use. Limits nodes, too.
const MAX_SEGMENT_SIZE: u64 = 100_000_000;

/// The size of the graph, and its segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphState {
    /// Increases whenever nodes or edges are added or removed.
    pub change: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The number of edges.
    pub edges: u64,
    /// Its segment, which may be out of date.
    pub segment: Option<GraphSegmentEntry>,
}

/// The segment file that holds all edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSegmentEntry {
    /// The graph's change number when it was built.
    pub change: u64,
    /// The number of edges in it.
    pub edges: u64,
    /// The file name in `segments/`.
    pub file: String,
    /// The file size.
    pub bytes: u64,
    /// The CRC-32C of the file's checksum table.
    pub checksum: u32,
    /// If it must not be opened: why.
    pub quarantined: Option<String>,
}

impl GraphState {
    /// Whether the graph is of a size for which a segment is built.
    pub fn is_large(&self) -> bool {
        (MIN_SEGMENT_EDGES..=MAX_SEGMENT_SIZE).contains(&self.edges)
            && self.nodes <= MAX_SEGMENT_SIZE
    }

    /// The segment, if it is up to date and not in quarantine.
    pub fn current(&self) -> Option<&GraphSegmentEntry> {
        let segment = self.segment.as_ref()?;
        (segment.change == self.change && segment.quarantined.is_none()).then_some(segment)
    }

    /// Whether the segment is in quarantine.
    pub fn is_quarantined(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.quarantined.is_some())
    }

    /// Whether enough has changed to build (or drop) the segment now, not at the next query.
    pub fn build_due(&self) -> bool {
        match &self.segment {
            // The graph has become too small (or too large): the segment is dropped.
            Some(_) if !self.is_large() => true,
            Some(segment) if segment.quarantined.is_none() => {
                self.edges.abs_diff(segment.edges) * 4 > self.edges
            }
            _ => self.is_large(),
        }
    }
}

/// A query with the values of its parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CypherQuery {
    /// The Cypher text.
    pub text: String,
    /// The values of its `$name` parameters.
    pub parameters: BTreeMap<String, Datum>,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GraphAnswer {
    /// The column names.
    pub columns: Vec<String>,
    /// The total number of rows.
    pub count: u64,
    /// The rows, or the first of them if `rest` is not 0.
    pub rows: Rows,
    /// The number of bytes of further rows, sent separately before the answer.
    #[serde(default)]
    pub rest: u64,
    /// Whether rows are missing because this answer comes from a receipt.
    pub forgotten: bool,
    /// What was changed.
    pub stats: Stats,
    /// Why the query ran more slowly than it should.
    pub degraded: Option<String>,
}

/// Concatenated rows, each a `Vec<Datum>` in postcard. Human-readable formats get hexadecimal text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows(pub Bulk);

impl GraphAnswer {
    /// Decodes the rows.
    ///
    /// # Errors
    /// An item is an error if its bytes cannot be decoded.
    pub fn rows(&self) -> impl Iterator<Item = Result<Vec<Datum>, Failure>> + '_ {
        let mut rest = &self.rows.0[..];
        (0..self.count).map(move |_| {
            let (row, after) = first_row(rest)?;
            rest = after;
            Ok(row)
        })
    }

    /// Appends the rows that were sent separately.
    #[must_use]
    pub fn with_rest(mut self, rest: &[u8]) -> Self {
        if !rest.is_empty() {
            self.rows = Rows([self.row_bytes(), rest].concat().into());
        }
        self.rest = 0;
        self
    }

    /// The encoded rows, for [`first_row`].
    #[must_use]
    pub fn row_bytes(&self) -> &[u8] {
        &self.rows.0
    }

    /// The answer as a receipt keeps it: without its rows.
    #[must_use]
    pub fn without_rows(self) -> Self {
        Self { rows: Rows::default(), forgotten: self.count > 0, ..self }
    }
}

/// Decodes the first row; returns it with the remaining bytes.
///
/// # Errors
/// If the bytes are truncated or cannot be decoded.
pub fn first_row(bytes: &[u8]) -> Result<(Vec<Datum>, &[u8]), Failure> {
    postcard::take_from_bytes(bytes).map_err(|error| {
        Failure::new(Code::Failed, format!("cannot decode a row of the answer: {error}"))
    })
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
        bytes
            .map(|bytes| Self(bytes.into()))
            .ok_or_else(|| serde::de::Error::custom("rows are not hexadecimal"))
    }
}

/// A batch of table rows to import as nodes or edges. One transaction imports as many of them as
/// it can; the reply says how many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphTable {
    /// What the rows become.
    pub holds: TableHolds,
    /// The header line of the table.
    pub header: String,
    /// The cell delimiter.
    pub delimiter: u8,
    /// Whether to skip bad rows; otherwise one bad row fails the batch.
    pub skip_bad: bool,
    /// The number of rows before this batch.
    pub rows_before: u64,
    /// The rows. Unless this is the last batch, the final row may be incomplete.
    pub rows: Bulk,
    /// Whether this is the last batch.
    pub is_last: bool,
}

/// What the rows of a table become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableHolds {
    /// Nodes; columns are their properties.
    Nodes {
        /// The label of all of them.
        label: String,
        /// The property that identifies a node of this label. A row whose node exists
        /// updates its other properties. Without a key, each row is a new node.
        key: Option<String>,
    },
    /// Edges; the first two columns name start and end node, the others are properties.
    Edges {
        /// The edge type.
        kind: String,
        /// How the first column names the start node.
        from: TableEnd,
        /// How the second column names the end node.
        to: TableEnd,
    },
    /// Nodes that do not exist yet; columns are their properties. A row whose key is empty, in an
    /// earlier row, or that of a node with the label, is a bad row.
    NewNodes {
        /// The label of all of them.
        label: String,
        /// The property that identifies a node of this label.
        key: String,
    },
}

/// How a cell names a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEnd {
    /// A label of the node.
    pub label: String,
    /// The property whose value is in the cell.
    pub key: String,
}

/// How much of a batch of rows was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableTaken {
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes of these rows.
    pub bytes: u64,
}
