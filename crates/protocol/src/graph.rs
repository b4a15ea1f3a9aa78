//! The graph: queries, their answers, tables to import, and what a store knows about it.

use std::collections::BTreeMap;

use isolate_types::Bulk;
use isolith_graph::{Datum, Stats};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Smaller graphs are walked as quickly in the truth.
const LARGE: u64 = 10_000;

/// A file for more edges would have to be built in more memory than a worker may have.
const TOO_LARGE: u64 = 100_000_000;

/// How large the graph is, and its segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphState {
    /// Rises whenever nodes or edges come or go.
    pub change: u64,
    /// How many nodes there are.
    pub nodes: u64,
    /// How many edges there are.
    pub edges: u64,
    /// Its segment, which may be older than the graph.
    pub segment: Option<GraphSegmentEntry>,
}

/// The file with the edges of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphSegmentEntry {
    /// The change of the graph that it says everything of.
    pub change: u64,
    /// How many edges it holds.
    pub edges: u64,
    /// Its name in `segments/`.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// The crc32c of its own table of checksums.
    pub checksum: u32,
    /// Why it must not be opened, if so.
    pub quarantined: Option<String>,
}

impl GraphState {
    /// Whether a segment makes sense.
    pub fn is_large(&self) -> bool {
        (LARGE..=TOO_LARGE).contains(&self.edges) && self.nodes <= TOO_LARGE
    }

    /// The segment that says exactly what the graph says, if it may be opened.
    pub fn current(&self) -> Option<&GraphSegmentEntry> {
        let segment = self.segment.as_ref()?;
        (segment.change == self.change && segment.quarantined.is_none()).then_some(segment)
    }

    /// Whether the segment must not be opened.
    pub fn is_quarantined(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.quarantined.is_some())
    }

    /// Whether so much has changed that a new segment should be made before anybody asks.
    pub fn build_due(&self) -> bool {
        match &self.segment {
            // A small graph does without, even one that was large.
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
pub struct Rows(pub Bulk);

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
    pub fn without_rows(self) -> Self {
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

/// Some rows of a table that become nodes or edges, in one transaction: all of them, or as
/// many as one takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphTable {
    /// What a row is.
    pub holds: TableHolds,
    /// The first line of the table.
    pub header: String,
    /// What is between cells.
    pub delimiter: u8,
    /// Whether a bad row is left out; otherwise nothing is written.
    pub skip_bad: bool,
    /// How many rows were before these.
    pub rows_before: u64,
    /// The rows, possibly the beginning of one more if they are not the last.
    pub rows: Bulk,
    /// Whether the table ends with these.
    pub is_last: bool,
}

/// What the rows of a table are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableHolds {
    /// Nodes; columns are their properties.
    Nodes {
        /// The label that all of them get.
        label: String,
        /// The property that tells nodes with the label apart: one that is there gets the
        /// row's other properties. Without, each row is a new node.
        key: Option<String>,
    },
    /// Edges; the first two columns are where they begin and end, others are properties.
    Edges {
        /// Their type.
        kind: String,
        /// What the first column says of a node.
        from: TableEnd,
        /// What the second column says.
        to: TableEnd,
    },
}

/// How a cell names a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEnd {
    /// A label of the node.
    pub label: String,
    /// The property that the cell is the value of.
    pub key: String,
}

/// How far a write has come with the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableTaken {
    /// How many rows it has seen.
    pub rows: u64,
    /// How many bytes these took.
    pub bytes: u64,
}
