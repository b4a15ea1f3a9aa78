//! Translates [`crate::ast`] to [`crate::ir`]: resolves names, and refuses invalid queries
//! before anything runs.

mod calls;
mod expressions;
mod patterns;
mod procedures;
mod projection;
mod subqueries;
mod types;
mod writes;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use types::Type;

use crate::ast::{Clause, Name, SingleQuery, Span, SubqueryKind, UnionQuery};
use crate::error::{Detail, Error, QueryPosition, Result};
use crate::ir::{Match, Program, QueryStep, Slot, Symbol};
use crate::parse::problem;
use crate::procedures::Procedure;

/// Checks a query and resolves its names.
pub(crate) fn check(
    text: &str,
    query: &UnionQuery,
    procedures: &[Arc<Procedure>],
) -> Result<Program> {
    let mut checker = Checker::new(text, procedures);
    let union = checker.union(query, Place::Top)?;
    Ok(Program {
        union: union.subquery,
        columns: union.columns,
        names: checker.names,
        parameters: checker.parameters,
        slots: checker.variables.len(),
        variables: checker.variables,
        writes: checker.writes,
    })
}

/// Where a query stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Expression(SubqueryKind),
    Call,
}

/// A variable in scope.
#[derive(Debug, Clone)]
struct Variable {
    name: Arc<str>,
    slot: Slot,
    kind: Type,
}

/// The variables in scope, innermost last.
#[derive(Debug, Clone, Default)]
struct Scope {
    variables: Vec<Variable>,
}

impl Scope {
    fn find(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| *variable.name == *name)
    }
}

struct Checker<'a> {
    text: &'a str,
    /// The procedures besides the ones that every graph has.
    procedures: &'a [Arc<Procedure>],
    scope: Scope,
    names: Vec<Arc<str>>,
    symbols: HashMap<Arc<str>, Symbol>,
    parameters: Vec<Arc<str>>,
    /// The names of variables, by slot.
    variables: Vec<Option<Arc<str>>>,
    writes: bool,
    /// What the current expression over groups may refer to.
    grouping: Option<projection::Grouping>,
    /// Whether the current expression is an argument of an aggregate.
    in_aggregate: bool,
    /// Whether aggregates are not allowed here.
    no_aggregates: bool,
    /// The variables around the current subquery of an expression, which stay visible in it.
    around: Scope,
    /// How deeply the current subquery is nested.
    nesting: usize,
}

impl<'a> Checker<'a> {
    fn new(text: &'a str, procedures: &'a [Arc<Procedure>]) -> Self {
        Checker {
            text,
            procedures,
            scope: Scope::default(),
            names: Vec::new(),
            symbols: HashMap::new(),
            parameters: Vec::new(),
            variables: Vec::new(),
            writes: false,
            grouping: None,
            in_aggregate: false,
            no_aggregates: true,
            around: Scope::default(),
            nesting: 0,
        }
    }

    fn error<T>(&self, span: Span, detail: Detail, message: impl Into<String>) -> Result<T> {
        Err(problem(self.text, span.start as usize, detail, message))
    }

    fn unsupported<T>(&self, span: Span, what: impl Into<String>) -> Result<T> {
        let position = Some(QueryPosition::of(self.text, span.start as usize));
        Err(Error::Unsupported { what: what.into(), position })
    }

    fn source(&self, span: Span) -> &'a str {
        self.text[span.start as usize..span.end as usize].trim()
    }

    fn symbol(&mut self, name: &Arc<str>) -> Symbol {
        if let Some(symbol) = self.symbols.get(name) {
            return *symbol;
        }
        let symbol = Symbol(self.names.len() as u32);
        self.names.push(name.clone());
        self.symbols.insert(name.clone(), symbol);
        symbol
    }

    fn symbols(&mut self, names: &[Name]) -> Vec<Symbol> {
        names.iter().map(|name| self.symbol(&name.text)).collect()
    }

    fn slot(&mut self) -> Slot {
        self.variables.push(None);
        self.variables.len() - 1
    }

    fn declare(&mut self, name: &Arc<str>, kind: Type) -> Slot {
        let slot = self.slot();
        self.variables[slot] = Some(name.clone());
        self.scope.variables.push(Variable { name: name.clone(), slot, kind });
        slot
    }

    /// Looks up a variable; fails if it is not defined.
    fn resolve(&self, name: &str, span: Span) -> Result<&Variable> {
        match self.scope.find(name) {
            Some(variable) => Ok(variable),
            None => {
                let message = format!("the variable {name} is not defined");
                self.error(span, Detail::UndefinedVariable, message)
            }
        }
    }

    /// Checks one part of a union: its steps, its columns and their slots.
    fn part(
        &mut self,
        query: &SingleQuery,
        place: Place,
    ) -> Result<(Vec<QueryStep>, Vec<String>, Vec<Slot>)> {
        self.compose(query, place)?;
        let mut steps = Vec::new();
        let mut columns = (Vec::new(), Vec::new());
        if let [Clause::Procedure(call)] = query.clauses.as_slice() {
            let (step, outputs) = self.procedure(call, place == Place::Top)?;
            let names = outputs.iter().map(|(name, _)| name.to_string()).collect();
            return Ok((vec![step], names, outputs.iter().map(|(_, slot)| *slot).collect()));
        }
        for clause in &query.clauses {
            if let Clause::Return(projection) = clause {
                let (project, names) = self.project(projection, true)?;
                columns = (names, project.columns.clone());
                steps.push(QueryStep::Project(project));
            } else {
                self.clause(clause, &mut steps)?;
            }
        }
        Ok((steps, columns.0, columns.1))
    }

    /// Checks the order of clauses.
    fn compose(&self, query: &SingleQuery, place: Place) -> Result<()> {
        let detail = Detail::InvalidClauseComposition;
        let mut wrote = None;
        for (at, clause) in query.clauses.iter().enumerate() {
            let last = at + 1 == query.clauses.len();
            if let Some((name, span)) = clause.write() {
                if let Place::Expression(kind) = place {
                    let message = format!("{name} is not allowed in {}", kind.name());
                    return self.error(span, detail, message);
                }
                wrote = Some(name);
            }
            match clause {
                Clause::Return(projection) if !last => {
                    return self.error(projection.span, detail, "RETURN must come last");
                }
                Clause::Match { optional: false, span, .. } if wrote.is_some() => {
                    let name = wrote.unwrap_or_default();
                    let message = format!("WITH is needed between {name} and MATCH");
                    return self.error(*span, detail, message);
                }
                Clause::Unwind { variable, .. } if wrote.is_some() => {
                    let name = wrote.unwrap_or_default();
                    let message = format!("WITH is needed between {name} and UNWIND");
                    return self.error(variable.span, detail, message);
                }
                Clause::With(_) => wrote = None,
                _ => {}
            }
            let is_call = place == Place::Top && query.clauses.len() == 1;
            let ends = matches!(clause, Clause::Return(_))
                || clause.write().is_some()
                || is_call && matches!(clause, Clause::Procedure(_));
            if last && !ends && !matches!(place, Place::Expression(_)) {
                let message = "the query must end with RETURN or a writing clause";
                let end = Span { start: self.text.len() as u32, end: self.text.len() as u32 };
                return self.error(end, detail, message);
            }
        }
        Ok(())
    }

    fn clause(&mut self, clause: &Clause, steps: &mut Vec<QueryStep>) -> Result<()> {
        match clause {
            Clause::Match { optional, patterns, filter, .. } => {
                let pattern = self.match_pattern(patterns)?;
                let filters = match filter {
                    Some(filter) => self.filters(filter)?,
                    None => Vec::new(),
                };
                steps.push(QueryStep::Match(Match { optional: *optional, pattern, filters }));
            }
            Clause::Unwind { list, variable } => {
                let (list, kind) = self.expression(list)?;
                if self.scope.find(&variable.text).is_some() {
                    return self.already_bound(variable);
                }
                let slot = self.declare(&variable.text, kind.element());
                steps.push(QueryStep::Unwind { list, slot });
            }
            Clause::With(projection) => {
                let (project, _) = self.project(projection, false)?;
                steps.push(QueryStep::Project(project));
                for variable in &self.around.variables {
                    if self.scope.find(&variable.name).is_none() {
                        self.scope.variables.push(variable.clone());
                    }
                }
            }
            Clause::Return(projection) => {
                let (project, _) = self.project(projection, true)?;
                steps.push(QueryStep::Project(project));
            }
            Clause::Foreach { variable, list, body, span } => {
                self.writes = true;
                steps.push(self.foreach(variable, list, body, *span)?);
            }
            Clause::Procedure(call) => steps.push(self.procedure(call, false)?.0),
            Clause::Call { subquery, imports, optional, span } => {
                steps.push(self.call_clause(subquery, imports, *optional, *span)?);
            }
            _ => {
                self.writes = true;
                let step = self.write(clause)?;
                steps.push(step);
            }
        }
        Ok(())
    }

    fn already_bound<T>(&self, name: &Name) -> Result<T> {
        let message = format!("the variable {} is already bound", name.text);
        self.error(name.span, Detail::VariableAlreadyBound, message)
    }
}
