use isolith_protocol::{
    CollectionCreated, CollectionDeleted, CollectionState, CreateCollection, DeleteCollection,
    Done, RenameCollection, StoreError,
};
use isolith_sql::params;
use isolith_types::{CollectionKind, CollectionSpec};

use super::{Perform, Work, validate};
use crate::read::collections::{by_name, require, require_records};
use crate::schema::NEW_UUID;
use crate::sqlite::During;

impl Perform for CreateCollection {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        create(work, &self.spec, self.if_missing)
    }
}

impl Perform for DeleteCollection {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        delete(work, &self.name)
    }
}

impl Perform for RenameCollection {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        rename(work, &self.from, &self.to)
    }
}

/// Creates a collection, or returns an existing one if it matches the specification.
pub(super) fn create(
    work: Work<'_>,
    spec: &CollectionSpec,
    if_missing: bool,
) -> Result<Done<CollectionCreated>, StoreError> {
    validate::name(&spec.name)?;
    check_dimension(spec)?;
    if let Some(found) = by_name(work.db, &spec.name)? {
        return match if_missing {
            true => accept(work, spec, &found),
            false => Err(StoreError::CollectionExists {
                name: spec.name.clone(),
                difference: String::new(),
            }),
        };
    }
    insert(work, spec, CollectionKind::Records)?;
    answer(work, &spec.name, CollectionCreated { created: true })
}

/// Creates a collection; its name must be free.
pub(super) fn insert(
    work: Work<'_>,
    spec: &CollectionSpec,
    kind: CollectionKind,
) -> Result<(), StoreError> {
    check_dimension(spec)?;
    work.db
        .prepare_cached(&format!(
            "INSERT INTO collection \
                 (name, dimension, metric, model, created_at, updated_at, kind, uuid) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, {NEW_UUID})"
        ))
        .and_then(|mut statement| {
            statement.execute(params![
                spec.name,
                spec.dimension,
                spec.metric.name(),
                spec.model,
                work.now,
                kind.name()
            ])
        })
        .during(work.db, "make a collection")?;
    Ok(())
}

/// Frees the name at once; the rows are purged later.
pub(super) fn delete(work: Work<'_>, name: &str) -> Result<Done<CollectionDeleted>, StoreError> {
    let state = require_records(work.db, name)?;
    Ok(retire(work, state)?.into())
}

/// Frees the name of a collection of any kind.
pub(super) fn retire(
    work: Work<'_>,
    state: CollectionState,
) -> Result<CollectionDeleted, StoreError> {
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
    let obsolete_files = segments.into_iter().map(|segment| segment.file).collect();
    Ok(CollectionDeleted { deleted: state.records, obsolete_files, more: true })
}

/// Renames a collection.
pub(super) fn rename(work: Work<'_>, from: &str, to: &str) -> Result<Done<()>, StoreError> {
    validate::name(to)?;
    let state = require_records(work.db, from)?;
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
    answer(work, to, ())
}

fn check_dimension(spec: &CollectionSpec) -> Result<(), StoreError> {
    match spec.dimension {
        Some(dimension) if dimension == 0 || dimension > validate::MAX_DIMENSION => {
            let highest = validate::MAX_DIMENSION;
            let reason = format!("a collection's dimension is 1 to {highest}, not {dimension}");
            Err(StoreError::Invalid(reason))
        }
        _ => Ok(()),
    }
}

/// Checks that an existing collection matches the specification, as far as that is given.
fn accept(
    work: Work<'_>,
    spec: &CollectionSpec,
    found: &CollectionState,
) -> Result<Done<CollectionCreated>, StoreError> {
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
    answer(work, &spec.name, CollectionCreated { created: false })
}

fn answer<R>(work: Work<'_>, name: &str, reply: R) -> Result<Done<R>, StoreError> {
    Ok(Done::from(reply).with_collection(Some(require(work.db, name)?)))
}
