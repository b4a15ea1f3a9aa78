//! Importing rows into the graph.

use isolith_engine::{Engine, GraphTable, TableEnd, TableHolds};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::tool::Call;

/// Maximum size of the body of an import: a block of rows is one transaction.
pub(crate) const MAX_IMPORT_BYTES: usize = 16 << 20;

/// Whether a request with this path is an import.
pub(crate) fn is_import(path: &str) -> bool {
    path == "/v1/graph/import"
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Post, "/graph/import"),
            "graph_import",
            "Import rows of a CSV table as nodes or relationships, in one transaction",
            import,
        )
        .keyed(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GraphRows {
    /// The rows become nodes.
    nodes: Option<NodeRows>,
    /// The rows become relationships; the first two columns are the keys of their nodes.
    relationships: Option<RelationshipRows>,
    /// The names of the columns, each with a type: `id:int`. Types are string (the default), int,
    /// int8 to int32, uint8 to uint64, float, bool and json.
    columns: Vec<String>,
    /// The rows in CSV, without the names of the columns. An empty cell is null.
    rows: String,
    /// The character between cells, by default a comma.
    delimiter: Option<char>,
    /// Whether more rows follow in another request; then an incomplete row at the end is left out.
    more: Option<bool>,
    /// Number of rows in earlier requests, for the row numbers of errors.
    rows_before: Option<u64>,
    /// Skip invalid rows instead of failing.
    skip_bad: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeRows {
    label: String,
    /// The property that identifies a node with this label. Without one, each row is a new node.
    key: Option<String>,
    /// What to do with a row whose node exists, by default update.
    existing: Option<Existing>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Existing {
    /// Set the properties of the node.
    Update,
    /// The row is invalid.
    Refuse,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RelationshipRows {
    #[serde(rename = "type")]
    kind: String,
    /// How the first column identifies the start node.
    from: NodeKey,
    /// How the second column identifies the end node.
    to: NodeKey,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodeKey {
    label: String,
    key: String,
}

impl From<NodeKey> for TableEnd {
    fn from(NodeKey { label, key }: NodeKey) -> Self {
        Self { label, key }
    }
}

async fn import(call: Call, rows: GraphRows) -> Result<RowsImported, Failure> {
    let table = rows.into_table()?;
    let engine: Engine = call.server.stores().code_to_index()?;
    let done = engine.import_rows(table, call.key).await?;
    let reply = done.reply;
    let rejected = reply.rejected.into_iter();
    Ok(RowsImported {
        rows: reply.table.rows,
        bytes: reply.table.bytes,
        nodes_created: reply.stats.nodes_created,
        relationships_created: reply.stats.relationships_created,
        properties_set: reply.stats.properties_set,
        rejected: rejected.map(|(row, reason)| RejectedRow { row, reason }).collect(),
        rejected_rows: reply.rejected_count,
        repeated: done.repeated,
    })
}

impl GraphRows {
    fn into_table(self) -> Result<GraphTable, Failure> {
        let holds = match (self.nodes, self.relationships) {
            (Some(nodes), None) => nodes.into_holds()?,
            (None, Some(RelationshipRows { kind, from, to })) => {
                TableHolds::Edges { kind, from: from.into(), to: to.into() }
            }
            _ => return Err(bad("pass either nodes or relationships")),
        };
        let delimiter = self.delimiter.unwrap_or(',');
        let delimiter = u8::try_from(delimiter).ok().filter(|it| is_delimiter(*it));
        let delimiter = delimiter
            .ok_or_else(|| bad("delimiter: must be an ASCII character that is not a quote"))?;
        Ok(GraphTable {
            holds,
            header: header(&self.columns, delimiter),
            delimiter,
            skip_bad: self.skip_bad.unwrap_or(false),
            rows_before: self.rows_before.unwrap_or(0),
            rows: self.rows.into_bytes().into(),
            is_last: !self.more.unwrap_or(false),
        })
    }
}

impl NodeRows {
    fn into_holds(self) -> Result<TableHolds, Failure> {
        let Self { label, key, existing } = self;
        match (key, existing) {
            (Some(key), Some(Existing::Refuse)) => Ok(TableHolds::NewNodes { label, key }),
            (None, Some(_)) => Err(bad("nodes.existing needs nodes.key")),
            (key, None | Some(Existing::Update)) => Ok(TableHolds::Nodes { label, key }),
        }
    }
}

fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n')
}

/// The line with the names of the columns.
fn header(columns: &[String], delimiter: u8) -> String {
    let quoted = columns.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(&char::from(delimiter).to_string())
}

fn bad(message: &str) -> Failure {
    Failure::new(Code::BadInput, message)
}

#[derive(Serialize, JsonSchema)]
struct RowsImported {
    /// Number of rows processed.
    rows: u64,
    /// Number of bytes that they take. With `more`, the next request begins after them.
    bytes: u64,
    nodes_created: u64,
    relationships_created: u64,
    properties_set: u64,
    /// Rows that were skipped.
    rejected: Vec<RejectedRow>,
    rejected_rows: u64,
    /// Whether an earlier request with the same key did it.
    repeated: bool,
}

#[derive(Serialize, JsonSchema)]
struct RejectedRow {
    row: u64,
    reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn table(arguments: Value) -> Result<GraphTable, String> {
        let rows: GraphRows = serde_json::from_value(arguments).map_err(|it| it.to_string())?;
        rows.into_table().map_err(|failure| failure.message)
    }

    #[test]
    fn arguments_become_a_table() {
        let nodes = json!({ "label": "P", "key": "id", "existing": "refuse" });
        let columns = ["id:int", "a \"b\";c"];
        let made = table(json!({
            "nodes": nodes, "columns": columns, "rows": "1;x", "delimiter": ";", "more": true,
            "rows_before": 7
        }));
        let expected = GraphTable {
            holds: TableHolds::NewNodes { label: "P".to_owned(), key: "id".to_owned() },
            header: "\"id:int\";\"a \"\"b\"\";c\"".to_owned(),
            delimiter: b';',
            skip_bad: false,
            rows_before: 7,
            rows: b"1;x".to_vec().into(),
            is_last: false,
        };
        assert_eq!(made, Ok(expected));
    }

    #[test]
    fn contradictory_arguments_are_refused() {
        let (nodes, end) = (json!({ "label": "P" }), json!({ "label": "P", "key": "id" }));
        let edges = json!({ "type": "T", "from": end, "to": end });
        for (arguments, expected) in [
            (json!({ "columns": [], "rows": "" }), "pass either nodes or relationships"),
            (
                json!({ "nodes": nodes, "relationships": edges, "columns": [], "rows": "" }),
                "pass either nodes or relationships",
            ),
            (
                json!({ "nodes": { "label": "P", "existing": "update" }, "columns": [], "rows": "" }),
                "nodes.existing needs nodes.key",
            ),
            (
                json!({ "nodes": nodes, "columns": [], "rows": "", "delimiter": "\"" }),
                "delimiter: must be an ASCII character that is not a quote",
            ),
        ] {
            assert_eq!(table(arguments), Err(expected.to_owned()));
        }
    }
}
