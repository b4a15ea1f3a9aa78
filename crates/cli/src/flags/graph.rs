//! Flags of the commands that deal with the graph.

use std::collections::BTreeMap;
use std::io::Read;

use clap::{Args, Subcommand, ValueEnum};
use isolith_engine::{CypherQuery, Datum, HotBy, Walk};
use isolith_types::{Code, Failure};

use super::graph_import::TypedImport;
use super::typed::TypedOnce;
use crate::graph::{Format, GraphCommand, Question};

#[derive(Subcommand)]
pub(super) enum TypedGraph {
    /// Run a Cypher query, one that reads or one that writes
    ///
    /// Values are given apart and never pasted into the query: `isolith graph query
    /// 'MATCH (n:Person {name: $name}) RETURN n' --param-str name=Ann`. A query that writes
    /// is one transaction. docs/cypher.md says what of the language there is.
    Query(TypedQuery),
    /// Import nodes or relationships from a table in CSV
    ///
    /// Much quicker than a query for every row. A file of up to 16 MB and 524,288 rows is one
    /// transaction, a longer one is several: what comes before a bad row stays then.
    #[command(subcommand)]
    Import(TypedImport),
    /// Show what calls a symbol
    ///
    /// A type or a file stands for all that is in it.
    Callers(TypedNeighbours),
    /// Show what a symbol calls
    ///
    /// A type or a file stands for all that is in it.
    Callees(TypedNeighbours),
    /// Show a shortest way from one symbol to another
    ///
    /// Along calls, references, base types, interfaces and imports.
    Path(TypedPath),
    /// Show what may break if a symbol or a file changes, tests apart
    ///
    /// That is all that calls, names, extends, implements, imports or tests it, and all that
    /// needs those in turn.
    Impact(TypedImpact),
    /// Show files that import each other in circles
    ///
    /// Each circle with all files that lead to each other, and a shortest way round. Imports
    /// that only types need count as well.
    Cycles(TypedAll),
    /// Show functions, methods and types that nothing seems to use
    ///
    /// Takes care not to say so of what may be used: nothing that other files can see (but
    /// see --exported), that is only likely to be used, or that several types have by the
    /// same name; no tests and no entry points. Still, what frameworks, macros, reflection or
    /// other programs call has no edge in the graph: look before you delete.
    Unused(TypedUnused),
    /// Show what has most to do with the rest of the code
    Hotspots(TypedHotspots),
    /// Count nodes by label, and edges by type and how sure they are
    Stats,
}

/// Which edges are followed, and how many answers are shown.
#[derive(Args)]
pub(super) struct TypedAll {
    /// Follow edges that are only likely, too; they are marked
    #[arg(long)]
    candidates: bool,
    /// Show at most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

#[derive(Args)]
pub(super) struct TypedNeighbours {
    /// A name (open), one with those around it (Store.open), an id (src/a.py#Store.open) or a
    /// place (src/a.py:12)
    symbol: String,
    /// So many steps away
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
    #[command(flatten)]
    all: TypedAll,
}

#[derive(Args)]
pub(super) struct TypedPath {
    /// Where it begins: a name, Type.name, path#Name or path:line
    from: String,
    /// Where it ends
    to: String,
    /// Follow edges that are only likely, too; they are marked
    #[arg(long)]
    candidates: bool,
}

#[derive(Args)]
pub(super) struct TypedImpact {
    /// A path, or a symbol: a name, Type.name, path#Name or path:line
    #[arg(value_name = "FILE|SYMBOL")]
    symbol: String,
    /// No more than so many steps away [default: however many]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: Option<u32>,
    #[command(flatten)]
    all: TypedAll,
}

#[derive(Args)]
pub(super) struct TypedUnused {
    /// Also what other files can see, and do not use
    #[arg(long)]
    exported: bool,
    /// Show at most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

#[derive(Args)]
pub(super) struct TypedHotspots {
    /// What is counted
    #[arg(long, value_enum, default_value = "callers")]
    by: TypedBy,
    /// Count edges that are only likely, too
    #[arg(long)]
    candidates: bool,
    /// Show at most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedBy {
    /// How many call it
    Callers,
    /// How many it calls
    Callees,
    /// All that it calls, names, extends or imports, and all that does so with it
    Links,
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
        let question = match self {
            Self::Query(typed) => return typed.command(),
            Self::Import(typed) => return Ok(GraphCommand::Import(typed.import())),
            Self::Callers(TypedNeighbours { symbol, depth, all }) => {
                Question::Callers { symbol, walk: all.walk(Some(depth)) }
            }
            Self::Callees(TypedNeighbours { symbol, depth, all }) => {
                Question::Callees { symbol, walk: all.walk(Some(depth)) }
            }
            Self::Path(TypedPath { from, to, candidates }) => {
                let all = TypedAll { candidates, limit: u32::MAX };
                Question::Path { from, to, walk: all.walk(None) }
            }
            Self::Impact(TypedImpact { symbol, depth, all }) => {
                Question::Impact { symbol, walk: all.walk(depth) }
            }
            Self::Cycles(TypedAll { candidates, limit }) => Question::Cycles { candidates, limit },
            Self::Unused(TypedUnused { exported, limit }) => Question::Unused { exported, limit },
            Self::Hotspots(TypedHotspots { by, candidates, limit }) => {
                let by = match by {
                    TypedBy::Callers => HotBy::Callers,
                    TypedBy::Callees => HotBy::Callees,
                    TypedBy::Links => HotBy::Links,
                };
                Question::Hotspots { by, candidates, limit }
            }
            Self::Stats => Question::Stats,
        };
        Ok(GraphCommand::Ask(question))
    }
}

impl TypedAll {
    fn walk(&self, depth: Option<u32>) -> Walk {
        Walk { depth, candidates: self.candidates, limit: self.limit as usize }
    }
}

impl TypedQuery {
    fn command(self) -> Result<GraphCommand, Failure> {
        let key = self.once.key();
        let text = match self.query.as_str() {
            "-" => from_input()?,
            _ => self.query,
        };
        let mut parameters = BTreeMap::new();
        for given in &self.param {
            let (name, json) = named("--param", given)?;
            let value: serde_json::Value = serde_json::from_str(json).map_err(|error| {
                Failure::new(Code::Usage, format!("--param {name}: {json:?} is no JSON: {error}"))
                    .with_hint(format!("for text as it is: --param-str {name}=…"))
            })?;
            let value = Datum::from_json(&value).map_err(|failure| Failure {
                message: format!("--param {name}: {}", failure.message),
                ..failure
            })?;
            parameters.insert(name.to_owned(), value);
        }
        for given in &self.param_str {
            let (name, text) = named("--param-str", given)?;
            parameters.insert(name.to_owned(), Datum::Text(text.to_owned()));
        }
        let query = CypherQuery { text, parameters };
        Ok(GraphCommand::Query { query, format: self.format, key })
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
