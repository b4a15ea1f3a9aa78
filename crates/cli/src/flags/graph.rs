//! Flags of the commands that deal with the graph.

use std::collections::BTreeMap;
use std::io::Read;

use clap::{Args, Subcommand, ValueEnum};
use isolith_engine::{CypherQuery, Datum, GraphWalk, HotBy};
use isolith_types::{Code, Failure};

use super::examples;
use super::graph_import::TypedImport;
use super::settings::Context;
use super::typed::TypedOnce;
use crate::graph::{Format, GraphCommand, Question};

/// Default number of symbols, files and cycles to list.
const DEFAULT_ROWS: u32 = 50;

/// Default number of hotspots to list.
const DEFAULT_HOTSPOTS: u32 = 20;

#[derive(Subcommand)]
pub(super) enum TypedGraph {
    /// Run a Cypher query that reads or writes
    ///
    /// Pass values as parameters instead of pasting them into the query. A query that writes
    /// is one transaction. docs/cypher.md describes the supported language.
    #[command(after_long_help = examples::GRAPH_QUERY)]
    Query(TypedCypher),
    /// Import nodes or relationships from a CSV file or from Kuzu
    ///
    /// Much faster than one query per row. A file of up to 16 MB and 524,288 rows is one
    /// transaction. A larger file takes several: the rows before an invalid one are then kept.
    ///
    /// With --from-kuzu, copies a whole Kuzu database.
    #[command(
        arg_required_else_help = true,
        subcommand_negates_reqs = true,
        args_conflicts_with_subcommands = true,
        after_long_help = examples::GRAPH_IMPORT
    )]
    Import(TypedImport),
    /// Show what calls a symbol
    ///
    /// A type or a file includes everything in it.
    #[command(after_long_help = examples::GRAPH_CALLERS)]
    Callers(TypedNeighbours),
    /// Show what a symbol calls
    ///
    /// A type or a file includes everything in it.
    #[command(after_long_help = examples::GRAPH_CALLEES)]
    Callees(TypedNeighbours),
    /// Show a shortest path from one symbol to another
    ///
    /// Follows calls, references, base types, interfaces and imports.
    #[command(after_long_help = examples::GRAPH_PATH)]
    Path(TypedPath),
    /// Show what may break if a symbol or a file changes
    ///
    /// Lists everything that calls, references, extends, implements or imports it, directly or
    /// indirectly, and separately the tests.
    #[command(after_long_help = examples::GRAPH_IMPACT)]
    Impact(TypedImpact),
    /// Show import cycles
    ///
    /// Lists the files of each cycle and a shortest path around it. Type-only imports do not
    /// count.
    #[command(after_long_help = examples::GRAPH_CYCLES)]
    Cycles(TypedAll),
    /// Show functions, methods and types that seem unused
    ///
    /// Leaves out what may be used: what other files can see (unless --exported), what has a
    /// likely use, methods whose name several types share, tests and entry points. Calls by
    /// frameworks, macros, reflection or other programs are not in the graph: check before you
    /// delete.
    #[command(after_long_help = examples::GRAPH_UNUSED)]
    Unused(TypedUnused),
    /// Show the most connected symbols
    #[command(after_long_help = examples::GRAPH_HOTSPOTS)]
    Hotspots(TypedHotspots),
    /// Count nodes by label, and edges by type and certainty
    #[command(after_long_help = examples::GRAPH_STATS)]
    Stats,
}

/// Which edges to follow, and how many results to show.
#[derive(Args)]
pub(super) struct TypedAll {
    /// Also follow edges that are only likely; they are marked
    #[arg(long)]
    candidates: bool,
    /// Maximum number of results [default: limits.rows, or 50]
    #[arg(help_heading = "Output", long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
}

#[derive(Args)]
pub(super) struct TypedNeighbours {
    /// Symbol: open, Store.open, src/a.py#Store.open or src/a.py:12
    symbol: String,
    /// Maximum distance in hops
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
    #[command(flatten)]
    all: TypedAll,
}

#[derive(Args)]
pub(super) struct TypedPath {
    /// Start: a name, Type.name, path#Name or path:line
    from: String,
    /// End, written in the same way
    to: String,
    /// Also follow edges that are only likely; they are marked
    #[arg(long)]
    candidates: bool,
}

#[derive(Args)]
pub(super) struct TypedImpact {
    /// Path of a file, or a symbol: a name, Type.name, path#Name or path:line
    #[arg(value_name = "FILE|SYMBOL")]
    symbol: String,
    /// Maximum distance in hops [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: Option<u32>,
    #[command(flatten)]
    all: TypedAll,
}

#[derive(Args)]
pub(super) struct TypedUnused {
    /// Include what other files can see but do not use
    #[arg(long)]
    exported: bool,
    /// Maximum number of results [default: limits.rows, or 50]
    #[arg(help_heading = "Output", long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
}

#[derive(Args)]
pub(super) struct TypedHotspots {
    /// What to count
    #[arg(long, value_enum, default_value = "callers")]
    by: TypedBy,
    /// Also count edges that are only likely
    #[arg(long)]
    candidates: bool,
    /// Maximum number of results [default: limits.rows, or 20]
    #[arg(help_heading = "Output", long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedBy {
    /// Symbols that call it
    Callers,
    /// Symbols that it calls
    Callees,
    /// Calls, references, inheritance and imports, in both directions
    Links,
}

#[derive(Args)]
pub(super) struct TypedCypher {
    /// The query; - for standard input
    #[arg(value_name = "CYPHER")]
    query: String,
    /// Value of $NAME as JSON; may be repeated
    #[arg(long, value_name = "NAME=JSON")]
    param: Vec<String>,
    /// Value of $NAME as text; may be repeated
    #[arg(long, value_name = "NAME=TEXT")]
    param_str: Vec<String>,
    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    once: TypedOnce,
}

impl TypedGraph {
    pub(super) fn command(self, context: &Context<'_>) -> Result<GraphCommand, Failure> {
        let question = match self {
            Self::Query(typed) => return typed.command(),
            Self::Import(typed) => return typed.command(),
            Self::Callers(TypedNeighbours { symbol, depth, all }) => {
                Question::Callers { symbol, walk: all.walk(Some(depth), context)? }
            }
            Self::Callees(TypedNeighbours { symbol, depth, all }) => {
                Question::Callees { symbol, walk: all.walk(Some(depth), context)? }
            }
            Self::Path(TypedPath { from, to, candidates }) => {
                let walk = GraphWalk { depth: None, candidates, limit: usize::MAX };
                Question::Path { from, to, walk }
            }
            Self::Impact(TypedImpact { symbol, depth, all }) => {
                Question::Impact { symbol, walk: all.walk(depth, context)? }
            }
            Self::Cycles(TypedAll { candidates, limit }) => {
                Question::Cycles { candidates, limit: context.rows(limit, DEFAULT_ROWS)? }
            }
            Self::Unused(TypedUnused { exported, limit }) => {
                Question::Unused { exported, limit: context.rows(limit, DEFAULT_ROWS)? }
            }
            Self::Hotspots(TypedHotspots { by, candidates, limit }) => {
                let by = match by {
                    TypedBy::Callers => HotBy::Callers,
                    TypedBy::Callees => HotBy::Callees,
                    TypedBy::Links => HotBy::Links,
                };
                Question::Hotspots { by, candidates, limit: context.rows(limit, DEFAULT_HOTSPOTS)? }
            }
            Self::Stats => Question::Stats,
        };
        Ok(GraphCommand::Ask(question))
    }
}

impl TypedAll {
    fn walk(&self, depth: Option<u32>, context: &Context<'_>) -> Result<GraphWalk, Failure> {
        let limit = context.rows(self.limit, DEFAULT_ROWS)? as usize;
        Ok(GraphWalk { depth, candidates: self.candidates, limit })
    }
}

impl TypedCypher {
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
                Failure::new(
                    Code::Usage,
                    format!("--param {name}: {json:?} is not valid JSON: {error}"),
                )
                .with_hint(format!("for plain text, use --param-str {name}=…"))
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
        Failure::new(Code::BadInput, format!("cannot read the query from standard input: {error}"))
    };
    std::io::stdin().read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
