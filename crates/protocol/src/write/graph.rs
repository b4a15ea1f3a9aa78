//! Changing the graph.

use isolith_graph::Stats;
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};
use crate::graph::{CypherQuery, GraphAnswer, GraphTable, TableTaken};

/// Runs a query that changes the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeGraph {
    /// The query.
    pub query: CypherQuery,
}

/// The reply to [`ChangeGraph`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphChanged {
    /// The answer; `None` if the query is read-only, and was not run.
    pub graph: Option<GraphAnswer>,
}

/// Imports rows of a table into the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportGraph {
    /// The rows.
    pub table: GraphTable,
}

/// The reply to [`ImportGraph`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GraphImported {
    /// How much of the batch was imported.
    pub table: TableTaken,
    /// What was changed.
    pub stats: Stats,
    /// Rejected rows, with the reason.
    pub rejected: Vec<(u64, String)>,
    /// The number of rejected rows.
    pub rejected_count: u64,
}

impl Handled for ChangeGraph {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}

impl Handled for ImportGraph {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}
