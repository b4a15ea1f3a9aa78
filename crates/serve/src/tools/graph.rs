//! `graph_query`.

use std::fmt::Write as _;

use isolith_engine::{CypherQuery, Datum, Engine, GraphPage, GraphStats, PageSize, datum_text};
use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::stores::Stores;
use crate::text::one_line;
use crate::tool::{Call, Effect, Limits, Surface, Tool, ToolAnswer};

/// Numbers of rows per page.
const LIMITS: Limits = Limits { default: 100, agent: 1_000, program: 10_000 };

/// Maximum size of a page, unless a single row is larger.
const PAGE_BYTES: usize = 256 << 10;

/// The same, for programs.
const PROGRAM_PAGE_BYTES: usize = 4 << 20;

/// Maximum length of a value in the text, in characters.
const VALUE_CHARS: usize = 300;

pub(super) fn tool() -> Tool {
    Tool::new(
        "graph_query",
        Effect::Any,
        "Run Cypher on the code graph and your own nodes. Use it to count or combine conditions. Labels: File, Function, Method, Class; types: CONTAINS, CALLS, REFERENCES, IMPORTS, TESTS. For callers use graph_neighbours. Example: {\"query\":\"MATCH (f:File) RETURN count(f)\"}",
        graph_query,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphQuery {
    /// Cypher
    query: Option<String>,
    /// For $names
    params: Option<JsonObject>,
    /// Default 100
    limit: Option<u32>,
    /// Instead of query
    next: Option<String>,
}

pub(crate) async fn graph_query(call: Call, arguments: GraphQuery) -> Result<QueryPage, Failure> {
    let rows = call.limit(arguments.limit, LIMITS)? as usize;
    let bytes = match call.surface {
        Surface::Agent => PAGE_BYTES,
        Surface::Program => PROGRAM_PAGE_BYTES,
    };
    let size = PageSize { rows, bytes };
    let page = match (arguments.query, arguments.next) {
        (None, Some(token)) => call.server.stores().graph()?.next_page(&token, size).await?,
        (Some(text), None) => {
            let engine = store_for(call.server.stores(), &text).await?;
            call.server.wait_for_watchers().await;
            let parameters = arguments.params.unwrap_or_default();
            let parameters = parameters.into_iter().map(parameter).collect::<Result<_, _>>()?;
            engine.cypher_page(CypherQuery { text, parameters }, call.key, size).await?
        }
        _ => return Err(Failure::new(Code::BadInput, "pass either query or next")),
    };
    Ok(QueryPage::of(&page))
}

/// The store of the graph. If there is none and the query writes, creates it.
async fn store_for(stores: &Stores, query: &str) -> Result<Engine, Failure> {
    match stores.graph() {
        Err(missing) if missing.code == Code::NoStore => {
            match stores.query_check()?.changes_graph(query).await? {
                true => stores.code_to_index(),
                false => Err(missing),
            }
        }
        found => found,
    }
}

fn parameter((name, value): (String, Value)) -> Result<(String, Datum), Failure> {
    match Datum::from_json(&value) {
        Ok(value) => Ok((name, value)),
        Err(failure) => {
            let message = format!("params.{name}: {}", failure.message);
            Err(Failure { message, ..failure })
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct QueryPage {
    columns: Vec<String>,
    #[schemars(with = "Vec<Vec<Value>>")]
    rows: Vec<Vec<Value>>,
    stats: JsonObject,
    degraded: Option<String>,
    next: Option<String>,
    #[serde(skip)]
    text: String,
}

impl QueryPage {
    fn of(page: &GraphPage) -> Self {
        let values = |row: &Vec<Datum>| row.iter().map(Datum::to_json).collect();
        Self {
            columns: page.columns.clone(),
            rows: page.rows.iter().map(values).collect(),
            stats: changes(&page.stats),
            degraded: page.degraded.clone(),
            next: page.next.clone(),
            text: page_text(page),
        }
    }
}

impl ToolAnswer for QueryPage {
    fn text(&self) -> String {
        self.text.clone()
    }
}

fn changes(stats: &GraphStats) -> JsonObject {
    match json!(stats) {
        Value::Object(stats) => stats,
        _ => JsonObject::new(),
    }
}

/// One line for the columns and one per row, then changes, the `degraded` reason and the token of
/// the next page.
fn page_text(page: &GraphPage) -> String {
    let mut text = String::new();
    if !page.columns.is_empty() {
        let _ = writeln!(text, "{}", page.columns.join(" | "));
    }
    for row in &page.rows {
        let cells = row.iter().map(|cell| one_line(&datum_text(cell), VALUE_CHARS));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join(" | "));
    }
    let changed = changes(&page.stats).into_iter().filter(|(_, count)| *count != 0);
    for (what, count) in changed {
        let _ = writeln!(text, "{count} {}", what.replace('_', " "));
    }
    if let Some(degraded) = &page.degraded {
        let _ = writeln!(text, "degraded: {degraded}");
    }
    match &page.next {
        Some(next) => _ = writeln!(text, "more: next {next}"),
        None if page.rows.is_empty() => text += "no rows\n",
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shown_as_lines() {
        let text = |text: &str| Datum::Text(text.to_owned());
        let page = GraphPage {
            columns: vec!["name".to_owned(), "n".to_owned()],
            rows: vec![
                vec![text("two\nlines"), Datum::Integer(1)],
                vec![Datum::Null, Datum::List(vec![text("a")])],
            ],
            stats: GraphStats { nodes_created: 2, ..GraphStats::default() },
            degraded: Some("no segment".to_owned()),
            next: Some("1-0-ab".to_owned()),
        };
        insta::assert_snapshot!(QueryPage::of(&page).text(), @r"
        name | n
        two lines | 1
        null | [a]
        2 nodes created
        degraded: no segment
        more: next 1-0-ab
        ");
        let nothing = GraphPage {
            rows: vec![],
            columns: vec![],
            stats: GraphStats::default(),
            degraded: None,
            next: None,
        };
        assert_eq!(QueryPage::of(&nothing).text(), "no rows\n");
    }
}
