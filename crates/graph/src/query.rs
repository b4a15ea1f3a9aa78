use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{ConstraintCommand, Statement};
use crate::budget::Budget;
use crate::check::check;
use crate::error::Result;
use crate::graph::{Graph, GraphMut};
use crate::ir::Program;
use crate::parse::parse;
use crate::procedures::Procedure;
use crate::run::{self, Flow, Stats};
use crate::value::Datum;

/// A parsed and checked query. It is independent of any graph and can run many times.
#[derive(Debug)]
pub struct Query {
    kind: QueryKind,
    columns: Vec<String>,
}

#[derive(Debug)]
enum QueryKind {
    Program(Program),
    Explain(Program),
    Constraint(ConstraintCommand),
}

/// Parses and checks a query.
pub fn prepare(text: &str) -> Result<Query> {
    prepare_with(text, &[])
}

/// Like [`prepare`], with more procedures that the query may call.
pub fn prepare_with(text: &str, procedures: &[Arc<Procedure>]) -> Result<Query> {
    Ok(match parse(text)? {
        Statement::Query(query) => {
            let mut program = check(text, &query, procedures)?;
            let columns = std::mem::take(&mut program.columns);
            Query { kind: QueryKind::Program(program), columns }
        }
        Statement::Explain(query) => {
            let program = check(text, &query, procedures)?;
            let columns = run::PLAN_COLUMNS.map(str::to_owned).to_vec();
            Query { kind: QueryKind::Explain(program), columns }
        }
        Statement::Constraint(command) => {
            Query { columns: command.columns(), kind: QueryKind::Constraint(command) }
        }
    })
}

impl Query {
    /// Whether the query changes the graph.
    pub fn is_write(&self) -> bool {
        match &self.kind {
            QueryKind::Program(program) => program.writes,
            QueryKind::Explain(_) => false,
            QueryKind::Constraint(command) => command.is_write(),
        }
    }

    /// The names of the columns; empty if the query returns nothing.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The names of the parameters that the query needs.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        let program = match &self.kind {
            QueryKind::Program(program) => Some(program),
            QueryKind::Explain(_) | QueryKind::Constraint(_) => None,
        };
        program.into_iter().flat_map(|program| program.parameters.iter().map(|name| &**name))
    }

    /// Runs a query that reads. Rows go to `sink` one by one, until it returns [`Flow::Stop`].
    pub fn run(
        &self,
        graph: &dyn Graph,
        parameters: &BTreeMap<String, Datum>,
        budget: &Budget<'_>,
        sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
    ) -> Result<Stats> {
        self.run_with(graph, None, parameters, budget, sink)
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
        self.run_with(graph, Some(graph), parameters, budget, sink)
    }

    fn run_with(
        &self,
        graph: &dyn Graph,
        writer: Option<&dyn GraphMut>,
        parameters: &BTreeMap<String, Datum>,
        budget: &Budget<'_>,
        sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
    ) -> Result<Stats> {
        match &self.kind {
            QueryKind::Program(program) => {
                run::run(program, graph, writer, parameters, budget, sink)
            }
            QueryKind::Explain(program) => {
                run::explain(program, graph, budget, sink)?;
                Ok(Stats::default())
            }
            QueryKind::Constraint(command) => command.run(graph, writer, budget, sink),
        }
    }
}
