//! Runs the statements about constraints.

use super::verify::verify_all;
use super::{COLUMNS, Constraint, Rule};
use crate::ast::ConstraintCommand;
use crate::budget::Budget;
use crate::error::{Class, Detail, Error, Result};
use crate::graph::{Graph, GraphMut};
use crate::run::{Flow, Stats, read_only};
use crate::value::Datum;

impl ConstraintCommand {
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self, ConstraintCommand::Show)
    }

    pub(crate) fn columns(&self) -> Vec<String> {
        match self {
            ConstraintCommand::Show => COLUMNS.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn run(
        &self,
        graph: &dyn Graph,
        writer: Option<&dyn GraphMut>,
        budget: &Budget<'_>,
        sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
    ) -> Result<Stats> {
        let existing = graph.constraints()?;
        let writer = || writer.ok_or_else(read_only);
        let mut stats = Stats::default();
        match self {
            ConstraintCommand::Show => {
                for constraint in existing.iter() {
                    if sink(constraint.row())? == Flow::Stop {
                        break;
                    }
                }
            }
            ConstraintCommand::Create { constraint, if_not_exists } => {
                let is_same =
                    |it: &&Constraint| it.name == constraint.name || it.is_equivalent(constraint);
                match existing.iter().find(is_same) {
                    Some(_) if *if_not_exists => {}
                    Some(same) => return Err(exists_already(constraint, same)),
                    None => {
                        refuse_second_type(constraint, &existing)?;
                        verify_all(writer()?, constraint, budget)?;
                        writer()?.add_constraint(constraint)?;
                        stats.constraints_added += 1;
                    }
                }
            }
            ConstraintCommand::Drop { name, if_exists } => {
                if existing.iter().any(|constraint| constraint.name == *name) {
                    writer()?.drop_constraint(name)?;
                    stats.constraints_removed += 1;
                } else if !if_exists {
                    let message = format!("unknown constraint {name}; SHOW CONSTRAINTS lists them");
                    return Err(refused(message));
                }
            }
        }
        Ok(stats)
    }
}

/// A property with two types could never be set.
fn refuse_second_type(new: &Constraint, existing: &[Constraint]) -> Result<()> {
    let Rule::Typed(key, _) = &new.rule else { return Ok(()) };
    let types_it = |it: &&Constraint| {
        it.target == new.target && matches!(&it.rule, Rule::Typed(other, _) if other == key)
    };
    match existing.iter().find(types_it) {
        None => Ok(()),
        Some(Constraint { name, .. }) => Err(refused(format!(
            "the constraint {name} already gives {key} a type; drop it first, or name several \
             types in one constraint: INTEGER | FLOAT"
        ))),
    }
}

fn exists_already(new: &Constraint, existing: &Constraint) -> Error {
    let Constraint { name, .. } = existing;
    refused(match new.is_equivalent(existing) {
        true => format!("the constraint {name} already requires this"),
        false => format!("the constraint {name} already exists: {existing}"),
    })
}

fn refused(message: String) -> Error {
    Error::run(Class::ConstraintVerificationFailed, Detail::InvalidArgumentValue, message)
}
