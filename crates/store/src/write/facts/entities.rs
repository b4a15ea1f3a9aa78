use isolith_protocol::{EntityDescribed, StoreError};
use isolith_sql::params;
use isolith_types::EntityPatch;

use super::super::Work;
use crate::facts::names::{self, FactName};
use crate::read::facts::{entity_number, predicate_number, require_entity};
use crate::sqlite::During;

/// Maximum number of aliases of an entity.
const MAX_ALIASES: i64 = 100;

/// The id of an entity, and whether it was created. Sets the type if it was unknown.
pub(super) fn find_or_make(
    work: Work<'_>,
    name: &FactName,
    of_type: Option<&str>,
) -> Result<(i64, bool), StoreError> {
    if let Some(number) = entity_number(work.db, &name.folded)? {
        if let Some(of_type) = of_type {
            work.db
                .prepare_cached("UPDATE entity SET type = ?2 WHERE id = ?1 AND type IS NULL")
                .and_then(|mut statement| statement.execute(params![number, of_type]))
                .during(work.db, "note an entity's type")?;
        }
        return Ok((number, false));
    }
    let number = work
        .db
        .prepare_cached(
            "INSERT INTO entity (name, folded, type, created_at) VALUES (?1, ?2, ?3, ?4) \
             RETURNING id",
        )
        .and_then(|mut statement| {
            let values = params![name.written, name.folded, of_type, work.now];
            statement.query_row(values, |row| row.get(0))
        })
        .during(work.db, "add an entity")?;
    Ok((number, true))
}

/// The id of a predicate, created if necessary.
pub(super) fn predicate(work: Work<'_>, name: &FactName) -> Result<i64, StoreError> {
    if let Some(number) = predicate_number(work.db, &name.folded)? {
        return Ok(number);
    }
    work.db
        .prepare_cached("INSERT INTO predicate (name, folded) VALUES (?1, ?2) RETURNING id")
        .and_then(|mut statement| {
            statement.query_row([&name.written, &name.folded], |row| row.get(0))
        })
        .during(work.db, "add a predicate")
}

/// Sets the type and changes the aliases of an entity.
pub(super) fn describe(
    work: Work<'_>,
    patch: &EntityPatch,
) -> Result<(i64, EntityDescribed), StoreError> {
    let name = FactName::of_entity("name", &patch.name)?;
    let of_type = names::type_of(patch.r#type.as_deref())?;
    let (entity, created) = find_or_make(work, &name, None)?;
    let mut reply = EntityDescribed { created, ..EntityDescribed::default() };
    if patch.r#type.is_some() {
        reply.updated += set_type(work, entity, of_type)?;
    }
    for alias in &patch.remove_aliases {
        match remove_alias(work, entity, &FactName::of_entity("alias", alias)?)? {
            0 => reply.missing += 1,
            gone => reply.updated += gone,
        }
    }
    for alias in &patch.add_aliases {
        reply.updated += add_alias(work, entity, &FactName::of_entity("alias", alias)?)?;
    }
    reply.entity = Some(require_entity(work.db, entity)?);
    Ok((entity, reply))
}

fn set_type(work: Work<'_>, entity: i64, of_type: Option<&str>) -> Result<u64, StoreError> {
    let set = || {
        work.db
            .prepare_cached("UPDATE entity SET type = ?2 WHERE id = ?1 AND type IS NOT ?2")?
            .execute(params![entity, of_type])
    };
    set().during(work.db, "note an entity's type").map(|changed| changed as u64)
}

fn remove_alias(work: Work<'_>, entity: i64, alias: &FactName) -> Result<u64, StoreError> {
    let remove = || {
        work.db
            .prepare_cached("DELETE FROM alias WHERE entity = ?1 AND folded = ?2")?
            .execute(params![entity, alias.folded])
    };
    remove().during(work.db, "remove an alias").map(|gone| gone as u64)
}

fn add_alias(work: Work<'_>, entity: i64, alias: &FactName) -> Result<u64, StoreError> {
    match entity_number(work.db, &alias.folded)? {
        Some(number) if number == entity => return Ok(0),
        Some(number) => {
            let owner = require_entity(work.db, number)?.name;
            return Err(StoreError::NameTaken { name: alias.written.clone(), owner });
        }
        None => {}
    }
    let add = || {
        let db = work.db;
        let count: i64 = db
            .prepare_cached("SELECT count(*) FROM alias WHERE entity = ?1")?
            .query_row([entity], |row| row.get(0))?;
        if count >= MAX_ALIASES {
            return Ok(0);
        }
        db.prepare_cached("INSERT INTO alias (entity, name, folded) VALUES (?1, ?2, ?3)")?
            .execute(params![entity, alias.written, alias.folded])
    };
    match add().during(work.db, "add an alias")? {
        0 => {
            let reason = format!("an entity has at most {MAX_ALIASES} other names");
            Err(StoreError::Invalid(reason))
        }
        added => Ok(added as u64),
    }
}
