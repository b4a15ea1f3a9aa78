//! Checks that facts and their names can be decoded and looked up.

use isolith_protocol::StoreError;
use isolith_sql::{Connection, Row};

use super::ProblemList;
use crate::deadline::Deadline;
use crate::facts::names::{fold, fold_predicate};
use crate::read::facts::makes_sense;
use crate::sqlite::During;

pub(super) fn facts(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        each(db, deadline, found, "SELECT id, name, folded FROM entity", |row| {
            let (name, folded) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            let is_wrong = folded.is_empty() || fold(name) != folded;
            Ok(is_wrong.then(|| format!("entity {name:?} is looked up as {folded:?}")))
        })?;
        each(db, deadline, found, "SELECT id, name, folded FROM alias", |row| {
            let (name, folded) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            let is_wrong = folded.is_empty() || fold(name) != folded;
            Ok(is_wrong.then(|| format!("alias {name:?} is looked up as {folded:?}")))
        })?;
        each(db, deadline, found, "SELECT id, name, folded FROM predicate", |row| {
            let (name, folded) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
            let is_wrong = folded.is_empty() || fold_predicate(name) != folded;
            Ok(is_wrong.then(|| format!("predicate {name:?} is looked up as {folded:?}")))
        })?;
        let shared = "SELECT a.id, a.name FROM alias a JOIN entity e ON e.folded = a.folded";
        each(db, deadline, found, shared, |row| {
            let name = row.get_ref(1)?.as_str()?;
            Ok(Some(format!("{name:?} is the name of one entity and an alias of another")))
        })?;
        let facts =
            "SELECT id, valid_from, from_day, valid_to, to_day, until, confidence FROM fact";
        each(db, deadline, found, facts, |row| {
            let id: i64 = row.get(0)?;
            Ok((!makes_sense(row)?).then(|| format!("fact f{id} is malformed")))
        })?;
        let predicates = "SELECT id, name FROM predicate WHERE single_valued NOT IN (0, 1)";
        each(db, deadline, found, predicates, |row| {
            let name: String = row.get(1)?;
            Ok(Some(format!("predicate {name:?} is malformed")))
        })?;
        let sources = "SELECT id, fact FROM fact_source WHERE NOT confidence BETWEEN 0 AND 1";
        each(db, deadline, found, sources, |row| {
            let fact: i64 = row.get(1)?;
            Ok(Some(format!("a source of fact f{fact} is malformed")))
        })
    };
    read().during(db, "check facts")?;
    deadline.check("check facts")
}

/// Adds the problem, if any, that `look` returns for each row.
fn each(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
    sql: &str,
    mut look: impl FnMut(&Row<'_>) -> isolith_sql::Result<Option<String>>,
) -> isolith_sql::Result<()> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut at = 0_u64;
    while let Some(row) = rows.next()? {
        at += 1;
        if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
            break;
        }
        if let Some(problem) = look(&row)? {
            found.add(problem);
        }
    }
    Ok(())
}
