use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::check::check;
use crate::error::Result;
use crate::graph::{Graph, GraphMut};
use crate::ir::Program;
use crate::parse::parse;
use crate::run::{self, Flow, Stats};
use crate::value::Datum;

/// A parsed and checked query. It is independent of any graph and can run many times.
#[derive(Debug)]
pub struct Query {
    program: Program,
}

/// Parses and checks a query.
pub fn prepare(text: &str) -> Result<Query> {
    let statement = parse(text)?;
    Ok(Query { program: check(text, &statement)? })
}

impl Query {
    /// Whether the query changes the graph.
    pub fn is_write(&self) -> bool {
        self.program.writes
    }

    /// The names of the columns; empty if the query returns nothing.
    pub fn columns(&self) -> &[String] {
        &self.program.columns
    }

    /// The names of the parameters that the query needs.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.program.parameters.iter().map(|name| &**name)
    }

    /// Runs a query that reads. Rows go to `sink` one by one, until it returns [`Flow::Stop`].
    pub fn run(
        &self,
        graph: &dyn Graph,
        parameters: &BTreeMap<String, Datum>,
        budget: &Budget<'_>,
        sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
    ) -> Result<Stats> {
        run::run(&self.program, graph, None, parameters, budget, sink)
    }

    /// Runs a query that may write. All its changes are made when this returns, even if `sink`
    /// stopped early. After an error, some of them may have been made.
    pub fn run_mut(
        &self,
        graph: &dyn GraphMut,
        parameters: &BTreeMap<String, Datum>,
        budget: &Budget<'_>,
        sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
    ) -> Result<Stats> {
        run::run(&self.program, graph, Some(graph), parameters, budget, sink)
    }
}
