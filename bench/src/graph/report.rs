//! What a phase reports, on either side: one document of JSON.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Spent {
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
}

/// What is asked of a graph that is warm. The rival knows them by the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Point,
    TwoHops,
    FourHops,
    Shortest,
    Top,
}

/// Answers to all questions of a kind.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    pub p50_seconds: f64,
    /// Of one question.
    pub cpu_seconds: f64,
    /// Of all answers, each once.
    pub rows: u64,
    /// All numbers in them, and the lengths of all texts.
    pub sum: i64,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Point, Self::TwoHops, Self::FourHops, Self::Shortest, Self::Top];

    /// What a row of the table calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Point => "point look-up",
            Self::TwoHops => "2 hops",
            Self::FourHops => "1..4 hops, distinct",
            Self::Shortest => "shortest path",
            Self::Top => "top 20 by degree",
        }
    }

    /// The question as we are asked.
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
