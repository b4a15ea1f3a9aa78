//! `graph_schema`: what can be asked of the graph.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isolith_engine::{CypherQuery, Datum, Engine, GraphSize, PageSize, datum_text};
use isolith_types::Failure;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::NoArguments;
use crate::text::one_line;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

/// How many nodes of a label, or relationships of a type, are looked at for properties.
const SAMPLE: usize = 200;

/// Maximum number of labels and of types that are described.
const MAX_KINDS: usize = 50;

/// Maximum length of an example, in characters.
const EXAMPLE_CHARS: usize = 60;

pub(super) fn tool() -> Tool {
    Tool::new(
        "graph_schema",
        Effect::Read,
        "List the labels, relationship types and properties in the graph, with counts and examples. Use it before writing a query for graph_query. Not for code itself: use search_code. Example: {}",
        graph_schema,
    )
}

pub(crate) async fn graph_schema(call: Call, _: NoArguments) -> Result<SchemaAnswer, Failure> {
    let engine = call.server.stores().graph()?;
    call.server.wait_for_watchers().await;
    let GraphSize { labels, types, .. } = engine.graph_size().await?;
    let mut answer = SchemaAnswer { labels: Vec::new(), relationships: Vec::new() };
    for it in labels.into_iter().take(MAX_KINDS) {
        let Some(label) = it.label else { continue };
        let query = format!("MATCH (n:{}) RETURN properties(n) LIMIT {SAMPLE}", quoted(&label));
        let properties = Properties::of(rows(&engine, query).await?.iter().map(|row| &row[0]));
        answer.labels.push(LabelSchema { label, count: it.count, properties });
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for it in types {
        *counts.entry(it.kind).or_default() += it.count;
    }
    for (kind, count) in counts.into_iter().take(MAX_KINDS) {
        let query = format!(
            "MATCH (a)-[r:{}]->(b) RETURN labels(a), labels(b), properties(r) LIMIT {SAMPLE}",
            quoted(&kind)
        );
        let rows = rows(&engine, query).await?;
        let (from, to) =
            (names(rows.iter().map(|row| &row[0])), names(rows.iter().map(|row| &row[1])));
        let properties = Properties::of(rows.iter().map(|row| &row[2]));
        answer.relationships.push(TypeSchema { kind, count, from, to, properties });
    }
    Ok(answer)
}

async fn rows(engine: &Engine, text: String) -> Result<Vec<Vec<Datum>>, Failure> {
    let query = CypherQuery { text, parameters: BTreeMap::new() };
    let size = PageSize { rows: SAMPLE, bytes: 8 << 20 };
    Ok(engine.cypher_page(query, None, size).await?.rows)
}

/// A label or type as Cypher takes it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The labels in these lists, each once.
fn names<'d>(lists: impl Iterator<Item = &'d Datum>) -> Vec<String> {
    let mut names = Vec::new();
    for list in lists {
        let Datum::List(items) = list else { continue };
        for name in items.iter().map(datum_text) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The answer of `graph_schema`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SchemaAnswer {
    labels: Vec<LabelSchema>,
    relationships: Vec<TypeSchema>,
}

#[derive(Serialize, JsonSchema)]
struct LabelSchema {
    label: String,
    count: u64,
    /// Keys, each with an example.
    properties: Properties,
}

#[derive(Serialize, JsonSchema)]
struct TypeSchema {
    #[serde(rename = "type")]
    kind: String,
    count: u64,
    /// Labels of the nodes where such relationships start.
    from: Vec<String>,
    /// Labels of the nodes where they end.
    to: Vec<String>,
    properties: Properties,
}

#[derive(Serialize, JsonSchema)]
struct Properties(BTreeMap<String, String>);

impl Properties {
    /// The keys of these maps, each with its first value.
    fn of<'d>(maps: impl Iterator<Item = &'d Datum>) -> Self {
        let mut found = BTreeMap::new();
        for map in maps {
            let serde_json::Value::Object(members) = map.to_json() else { continue };
            for (key, value) in members {
                found.entry(key).or_insert_with(|| one_line(&value.to_string(), EXAMPLE_CHARS));
            }
        }
        Self(found)
    }

    fn text(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|(key, example)| format!("{key}: {example}")).collect();
        pairs.join(", ")
    }
}

impl ToolAnswer for SchemaAnswer {
    fn text(&self) -> String {
        let mut text = String::new();
        for LabelSchema { label, count, properties } in &self.labels {
            let _ = writeln!(text, "(:{label}) {count} {{{}}}", properties.text());
        }
        for TypeSchema { kind, count, from, to, properties } in &self.relationships {
            let (from, to) = (from.join("|"), to.join("|"));
            let properties = properties.text();
            let _ = writeln!(text, "(:{from})-[:{kind}]->(:{to}) {count} {{{properties}}}");
        }
        if text.is_empty() { "the graph is empty\n".to_owned() } else { text }
    }
}
