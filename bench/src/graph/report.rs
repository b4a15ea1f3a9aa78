//! The reports of phases, in JSON, on either side.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct TimeSpent {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
}

/// The queries to a warm graph. The rival's script uses the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueryKind {
    Point,
    TwoHops,
    FourHops,
    Shortest,
    Top,
}

/// The figures of all queries of a kind.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct QueryStats {
    pub p50_seconds: f64,
    /// Per query.
    pub cpu_seconds: f64,
    /// Total number of rows.
    pub rows: u64,
    /// Sum of all numbers and of the lengths of all strings, to compare the answers.
    pub sum: i64,
}

impl QueryKind {
    pub(super) const ALL: [Self; 5] =
        [Self::Point, Self::TwoHops, Self::FourHops, Self::Shortest, Self::Top];

    /// The name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Point => "point look-up",
            Self::TwoHops => "2 hops",
            Self::FourHops => "1..4 hops, distinct",
            Self::Shortest => "shortest path",
            Self::Top => "top 20 by degree",
        }
    }

    /// The query for our side.
    pub(super) fn cypher(self) -> &'static str {
        match self {
            Self::Point => "MATCH (a:P {k: $k}) RETURN a.name",
            Self::TwoHops => "MATCH (a:P {k: $k})-[:E]->()-[:E]->(c:P) RETURN c.k",
            Self::FourHops => "MATCH (a:P {k: $k})-[:E*1..4]->(c:P) RETURN DISTINCT c.k",
            Self::Shortest => {
                "MATCH (a:P {k: $k}), (b:P {k: $l}), p = shortestPath((a)-[:E*..30]->(b)) \
                 RETURN length(p)"
            }
            Self::Top => {
                "MATCH (a:P)-[r:E]->() RETURN a.k, count(r) AS d ORDER BY d DESC, a.k LIMIT 20"
            }
        }
    }
}
