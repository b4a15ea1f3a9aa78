//! What a store holds besides the index of code, which can be made again.

use isolith_graph::Datum;
use isolith_protocol::{CypherQuery, GetOverview, ListRooms};
use isolith_types::{CollectionKind, Failure};

use crate::open::Engine;

/// Labels of nodes that come from code.
const CODE_LABELS: [&str; 10] = [
    "Project",
    "Directory",
    "File",
    "Module",
    "Class",
    "Function",
    "Method",
    "Variable",
    "DocSection",
    "Person",
];

impl Engine {
    /// Counts what cannot be made again from code: each with its noun in the singular. Empty if
    /// there is nothing else.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn other_than_code(&self) -> Result<Vec<(u64, &'static str)>, Failure> {
        let collections = self.ask(GetOverview).await?.collections;
        let is_own = |kind: CollectionKind| matches!(kind, CollectionKind::Records);
        let collections = collections.iter().filter(|it| is_own(it.kind)).count() as u64;
        let drawers = self.ask(ListRooms).await?.iter().map(|it| it.drawers).sum();
        let facts = self.fact_stats(None).await?.facts;
        let labels = CODE_LABELS.map(|label| format!("n:{label}")).join(" OR ");
        let text = format!("MATCH (n) WHERE NOT ({labels}) RETURN count(n)");
        let query = CypherQuery { text, ..CypherQuery::default() };
        let nodes = match self.cypher(query, None).await?.rows().next().transpose()?.as_deref() {
            Some([Datum::Integer(count)]) => u64::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let all = [
            (collections, "collection"),
            (drawers, "memory drawer"),
            (facts, "fact"),
            (nodes, "other graph node"),
        ];
        Ok(all.into_iter().filter(|(count, _)| *count > 0).collect())
    }
}
