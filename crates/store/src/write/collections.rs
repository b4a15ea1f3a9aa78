use isolith_types::CollectionSpec;
use rusqlite::params;

use super::request::Outcome;
use super::{Work, validate};
use crate::error::StoreError;
use crate::read::collections::{by_name, require};
use crate::sqlite::During;
use crate::state::CollectionState;

/// Makes a collection, or finds it as it is wanted.
pub(super) fn create(
    work: Work<'_>,
    spec: &CollectionSpec,
    if_missing: bool,
) -> Result<Outcome, StoreError> {
    validate::name(&spec.name)?;
    if let Some(dimension) = spec.dimension
        && (dimension == 0 || dimension > validate::HIGHEST_DIMENSION)
    {
        let reason = format!(
            "a collection's dimension is 1 to {}, not {dimension}",
            validate::HIGHEST_DIMENSION
        );
        return Err(StoreError::Invalid(reason));
    }
    if let Some(found) = by_name(work.db, &spec.name)? {
        return match if_missing {
            true => accept(work, spec, &found),
            false => Err(StoreError::CollectionExists {
                name: spec.name.clone(),
                difference: String::new(),
            }),
        };
    }
    work.db
        .prepare_cached(
            "INSERT INTO collection (name, dimension, metric, model, created_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
        )
        .and_then(|mut statement| {
            let metric = spec.metric.name();
            statement.execute(params![spec.name, spec.dimension, metric, spec.model, work.now])
        })
        .during(work.db, "make a collection")?;
    answer(work, &spec.name, true)
}

/// Takes the name away at once; the rows are purged later.
pub(super) fn delete(work: Work<'_>, name: &str) -> Result<Outcome, StoreError> {
    let state = require(work.db, name)?;
    let clear = || {
        let db = work.db;
        db.prepare_cached("UPDATE collection SET name = NULL, updated_at = ?2 WHERE id = ?1")?
            .execute(params![state.id, work.now])?;
        db.prepare_cached("DELETE FROM segment WHERE collection = ?1")?.execute([state.id])?;
        db.prepare_cached("DELETE FROM generation WHERE collection = ?1")?.execute([state.id])?;
        db.prepare_cached("DELETE FROM load WHERE collection = ?1")?.execute([state.id])?;
        Ok(())
    };
    clear().during(work.db, "delete a collection")?;
    let segments = state.generation.map(|generation| generation.segments).unwrap_or_default();
    Ok(Outcome {
        deleted: state.records,
        count_before: state.records,
        obsolete_files: segments.into_iter().map(|segment| segment.file).collect(),
        more: true,
        ..Outcome::default()
    })
}

/// Gives a collection another name.
pub(super) fn rename(work: Work<'_>, from: &str, to: &str) -> Result<Outcome, StoreError> {
    validate::name(to)?;
    let state = require(work.db, from)?;
    if from != to && by_name(work.db, to)?.is_some() {
        return Err(StoreError::CollectionExists {
            name: to.to_owned(),
            difference: String::new(),
        });
    }
    work.db
        .prepare_cached("UPDATE collection SET name = ?2, updated_at = ?3 WHERE id = ?1")
        .and_then(|mut statement| statement.execute(params![state.id, to, work.now]))
        .during(work.db, "rename a collection")?;
    answer(work, to, false)
}

/// One that is there already must be as it is wanted, as far as that was said.
fn accept(
    work: Work<'_>,
    spec: &CollectionSpec,
    found: &CollectionState,
) -> Result<Outcome, StoreError> {
    let differs = |difference: String| {
        Err(StoreError::CollectionExists { name: spec.name.clone(), difference })
    };
    if found.metric != spec.metric {
        return differs(format!("metric {}, not {}", found.metric, spec.metric));
    }
    match (found.dimension, spec.dimension) {
        (Some(there), Some(asked)) if there != asked => {
            return differs(format!("dimension {there}, not {asked}"));
        }
        (None, Some(asked)) => super::put::fix_dimension(work, found, asked)?,
        _ => {}
    }
    match (&found.model, &spec.model) {
        (Some(there), Some(asked)) if there != asked => {
            return Err(StoreError::ModelMismatch {
                name: spec.name.clone(),
                found: there.clone(),
                asked: asked.clone(),
            });
        }
        _ => {}
    }
    answer(work, &spec.name, false)
}

fn answer(work: Work<'_>, name: &str, created: bool) -> Result<Outcome, StoreError> {
    let state = require(work.db, name)?;
    Ok(Outcome {
        created,
        count_before: state.records,
        count_after: state.records,
        collection: Some(state),
        ..Outcome::default()
    })
}
