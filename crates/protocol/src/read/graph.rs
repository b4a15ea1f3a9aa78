//! Queries of the graph.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Searched;
use crate::graph::{CypherQuery, GraphAnswer};

/// Runs a query that changes nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunCypher {
    /// The query.
    pub query: CypherQuery,
    /// How long it may take. The job has longer, as stopping takes a moment, too.
    pub time: Duration,
}

/// What a query found, and with what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CypherFound {
    /// The answer; none if the query changes the graph, and is for the writer.
    pub answer: Option<GraphAnswer>,
    /// What it went through.
    pub searched: Searched,
    /// Whether a segment would have helped that is not there, or is older than the graph.
    pub wanted: bool,
}
