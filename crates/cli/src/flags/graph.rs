//! Flags of the commands that deal with the graph.

use std::collections::BTreeMap;
use std::io::Read;

use clap::{Args, Subcommand};
use isolith_engine::{CypherQuery, Datum};
use isolith_types::{Code, Failure};

use super::typed::TypedOnce;
use crate::graph::{Format, GraphCommand};

#[derive(Subcommand)]
pub(super) enum TypedGraph {
    /// Run a Cypher query, one that reads or one that writes
    ///
    /// Values are given apart and never pasted into the query: `isolith graph query
    /// 'MATCH (n:Person {name: $name}) RETURN n' --param-str name=Ann`. A query that writes
    /// is one transaction. docs/cypher.md says what of the language there is.
    Query(TypedQuery),
}

#[derive(Args)]
pub(super) struct TypedQuery {
    /// The query; - reads it from standard input
    #[arg(value_name = "CYPHER")]
    query: String,
    /// The value of $NAME as JSON; may be repeated
    #[arg(long, value_name = "NAME=JSON")]
    param: Vec<String>,
    /// The value of $NAME as text, taken as it is; may be repeated
    #[arg(long, value_name = "NAME=TEXT")]
    param_str: Vec<String>,
    /// How rows are shown
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    once: TypedOnce,
}

impl TypedGraph {
    pub(super) fn command(self) -> Result<GraphCommand, Failure> {
        let TypedGraph::Query(typed) = self;
        let key = typed.once.key();
        let text = match typed.query.as_str() {
            "-" => from_input()?,
            _ => typed.query,
        };
        let mut parameters = BTreeMap::new();
        for given in &typed.param {
            let (name, json) = named("--param", given)?;
            let value: serde_json::Value = serde_json::from_str(json).map_err(|error| {
                Failure::new(Code::Usage, format!("--param {name}: {json:?} is no JSON: {error}"))
                    .with_hint(format!("for text as it is: --param-str {name}=…"))
            })?;
            parameters.insert(name.to_owned(), Datum::from_json(&value));
        }
        for given in &typed.param_str {
            let (name, text) = named("--param-str", given)?;
            parameters.insert(name.to_owned(), Datum::Text(text.to_owned()));
        }
        let query = CypherQuery { text, parameters };
        Ok(GraphCommand::Query { query, format: typed.format, key })
    }
}

fn named<'a>(flag: &str, given: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let split = given.split_once('=').map(|(name, value)| (name.trim_start_matches('$'), value));
    split
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| Failure::new(Code::Usage, format!("{flag} takes NAME=VALUE, not {given:?}")))
}

fn from_input() -> Result<String, Failure> {
    let mut text = String::new();
    let failed = |error: std::io::Error| {
        Failure::new(
            Code::BadInput,
            format!("the query cannot be read from standard input: {error}"),
        )
    };
    std::io::stdin().read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
