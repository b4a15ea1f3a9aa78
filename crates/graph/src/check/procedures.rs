//! Calls of procedures.

use std::sync::Arc;

use isolith_types::counted;

use crate::ast::{Expr, ExprKind, Name, ProcedureClause, Span, Yields};
use crate::error::{Class, Detail, Error, Result};
use crate::ir::{ProcedureCall, QueryStep, Slot};
use crate::procedures::Procedure;

use super::{Checker, Type};

/// The outputs of a call, under their names, and their slots.
pub(super) type Columns = Vec<(Arc<str>, Slot)>;

impl Checker<'_> {
    /// Checks a call. Returns its outputs with their slots, if it is all there is of a query.
    pub(super) fn procedure(
        &mut self,
        clause: &ProcedureClause,
        standalone: bool,
    ) -> Result<(QueryStep, Columns)> {
        let ProcedureClause { name, arguments, yields, filter, span } = clause;
        let procedure = self.find_procedure(name)?;
        let lowered = match arguments {
            Some(arguments) => arguments.clone(),
            None if standalone && yields.is_none() => implicit(&procedure, *span),
            None => {
                let message = format!("the arguments of {} are missing", name.text);
                return self.error(name.span, Detail::InvalidArgumentPassingMode, message);
            }
        };
        let (wanted, given) = (procedure.inputs().len(), lowered.len());
        if wanted != given {
            let wanted = counted(wanted, "argument");
            let message = format!("{} takes {wanted}, not {given}", name.text);
            return self.error(name.span, Detail::InvalidNumberOfArguments, message);
        }
        let mut values = Vec::new();
        for (argument, (input, wanted)) in lowered.iter().zip(procedure.inputs()) {
            let (ex, kind) = self.expression(argument)?;
            let is_number = *wanted == Type::Float && kind.is_number();
            if !kind.may_be(wanted) && !is_number {
                let message = format!("{input} must be {}, not {}", wanted.name(), kind.name());
                return self.error(argument.span, Detail::InvalidArgumentType, message);
            }
            values.push(ex);
        }
        let chosen = self.chosen(&procedure, yields, standalone, *span)?;
        let (mut outputs, mut columns) = (Vec::new(), Vec::new());
        for (at, name) in chosen {
            if self.scope.find(&name.text).is_some() {
                return self.already_bound(&name);
            }
            let slot = self.declare(&name.text, procedure.outputs()[at].1.clone());
            outputs.push((at, slot));
            columns.push((name.text, slot));
        }
        let filters = match filter {
            Some(filter) => self.filters(filter)?,
            None => Vec::new(),
        };
        let call = ProcedureCall { procedure, arguments: values, outputs, filters };
        Ok((QueryStep::Procedure(Box::new(call)), columns))
    }

    fn find_procedure(&self, name: &Name) -> Result<Arc<Procedure>> {
        let known = self.procedures.iter().find(|procedure| procedure.is_named(&name.text));
        if let Some(procedure) = known {
            return Ok(procedure.clone());
        }
        if let Some(procedure) = Procedure::built_in(&name.text) {
            return Ok(Arc::new(procedure));
        }
        let library = name.text.split('.').next().unwrap_or_default().to_ascii_lowercase();
        if ["apoc", "gds", "db", "dbms"].contains(&library.as_str()) {
            return self.unsupported(name.span, format!("the procedure {}", name.text));
        }
        let message = format!("unknown procedure {}", name.text);
        let start = name.span.start as usize;
        let detail = Detail::ProcedureNotFound;
        let mut error = crate::parse::problem(self.text, start, detail, message);
        if let Error::Query(problem) = &mut error {
            problem.class = Class::ProcedureError;
        }
        Err(error)
    }

    /// The outputs that become variables.
    fn chosen(
        &self,
        procedure: &Procedure,
        yields: &Option<Yields>,
        standalone: bool,
        span: Span,
    ) -> Result<Vec<(usize, Name)>> {
        let outputs = procedure.outputs();
        let all = || {
            let names = outputs.iter().map(|(name, _)| Name { text: name.clone(), span });
            names.enumerate().collect()
        };
        match yields {
            None if standalone => Ok(all()),
            None => Ok(Vec::new()),
            Some(Yields::Star) if standalone => Ok(all()),
            Some(Yields::Star) => {
                let message = "YIELD * is only allowed if the call is the whole query";
                self.error(span, Detail::UnexpectedSyntax, message)
            }
            Some(Yields::Items(items)) => {
                let mut chosen = Vec::new();
                for (output, alias) in items {
                    let at = outputs.iter().position(|(name, _)| *name == output.text);
                    let Some(at) = at else {
                        let message = format!("the procedure does not return {}", output.text);
                        return self.error(output.span, Detail::UndefinedVariable, message);
                    };
                    chosen.push((at, alias.as_ref().unwrap_or(output).clone()));
                }
                Ok(chosen)
            }
        }
    }
}

/// Without arguments, parameters of the same names are passed.
fn implicit(procedure: &Procedure, span: Span) -> Vec<Expr> {
    let parameter = |(name, _): &(Arc<str>, Type)| {
        let kind = Box::new(ExprKind::Parameter(name.clone()));
        Expr { kind, span, height: 1 }
    };
    procedure.inputs().iter().map(parameter).collect()
}
