//! Constraints: each is stored as the statement that creates it.

use std::sync::Arc;

use isolith_graph::Constraint;
use isolith_sql::{Connection, params};
use isolith_types::{Code, Failure};

use super::{TruthGraph, failure};
use crate::sqlite::During;

impl TruthGraph<'_> {
    pub(super) fn read_constraints(&self) -> Result<Arc<[Constraint]>, Failure> {
        let rows = rows(self.db).during(self.db, "read constraints").map_err(failure)?;
        rows.iter().map(|(name, statement)| parsed(name, statement)).collect()
    }

    pub(super) fn write_constraint(&self, constraint: &Constraint) -> Result<(), Failure> {
        let sql = "INSERT INTO graph_constraint (name, statement) VALUES (?1, ?2)";
        self.execute(sql, params![&*constraint.name, constraint.to_string()]).map(|_| ())
    }

    pub(super) fn delete_constraint(&self, name: &str) -> Result<(), Failure> {
        self.execute("DELETE FROM graph_constraint WHERE name = ?1", [name]).map(|_| ())
    }
}

/// Stored constraints that cannot be parsed: their names, and what is wrong.
pub(crate) fn malformed_constraints(
    db: &dyn Connection,
) -> isolith_sql::Result<Vec<(String, String)>> {
    let broken = |(name, statement): (String, String)| {
        let error = parsed(&name, &statement).err()?;
        Some((name, error.message))
    };
    Ok(rows(db)?.into_iter().filter_map(broken).collect())
}

/// Names and statements, in the order of creation.
fn rows(db: &dyn Connection) -> isolith_sql::Result<Vec<(String, String)>> {
    db.prepare_cached("SELECT name, statement FROM graph_constraint ORDER BY id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// Parses a stored constraint.
fn parsed(name: &str, statement: &str) -> Result<Constraint, Failure> {
    match Constraint::parse(statement) {
        Ok(constraint) if *constraint.name == *name => Ok(constraint),
        _ => {
            let message = format!("the constraint {name} is malformed: {statement}");
            Err(Failure::new(Code::Corrupt, message))
        }
    }
}
