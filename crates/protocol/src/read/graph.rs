//! Querying the graph.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Searched;
use crate::graph::{CypherQuery, GraphAnswer};

/// Runs a read-only query.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunCypher {
    /// The query.
    pub query: CypherQuery,
    /// The time limit. The job's deadline is later, because stopping takes a moment.
    pub time: Duration,
}

/// The reply to [`RunCypher`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CypherFound {
    /// The answer; `None` if the query changes the graph and must go to the writer.
    pub answer: Option<GraphAnswer>,
    /// Which segment the query used.
    pub searched: Searched,
    /// Whether a graph segment would have helped but is missing or out of date.
    pub wanted: bool,
}
