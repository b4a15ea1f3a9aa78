use isolith_protocol::{
    AddRoot, CODE_COLLECTION, CodeModelSet, CollectionDeleted, CollectionState, Done, FinishIndex,
    RemoveRoot, RootAdded, SetCodeModel, StoreError,
};
use isolith_sql::params;
use isolith_types::{CollectionKind, CollectionSpec, Metric, counted};

use super::super::{Perform, Work, collections};
use crate::graph;
use crate::read::code::root_state;
use crate::read::collections::{by_name, code};
use crate::sqlite::During;

impl Perform for AddRoot {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        add_root(work, self)
    }
}

impl Perform for RemoveRoot {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        remove_root(work, self.root)
    }
}

impl Perform for FinishIndex {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        finish_index(work, self.root)
    }
}

impl Perform for SetCodeModel {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        set_model(work, &self.spec)
    }
}

/// Adds a root if it is new, and the code index with it.
pub(in crate::write) fn add_root(
    work: Work<'_>,
    AddRoot { path, spec, worktree }: &AddRoot,
) -> Result<Done<RootAdded>, StoreError> {
    if path.is_empty() {
        return Err(StoreError::Invalid("the path of the root is empty".to_owned()));
    }
    check(spec)?;
    let state = match code(work.db)? {
        Some(state) => accept(state, spec)?,
        None => make(work, spec)?,
    };
    let add = || {
        let db = work.db;
        let added = db
            .prepare_cached(
                "INSERT INTO root (path, created_at) VALUES (?1, ?2) ON CONFLICT (path) DO NOTHING",
            )?
            .execute(params![path, work.now])?;
        let id: u64 = db
            .prepare_cached("SELECT id FROM root WHERE path = ?1")?
            .query_row([path], |row| row.get(0))?;
        db.prepare_cached("UPDATE root SET worktree = ?2 WHERE id = ?1 AND worktree IS NOT ?2")?
            .execute(params![id, worktree])?;
        Ok((added > 0, id))
    };
    let (created, id) = add().during(work.db, "add a root")?;
    let root = root_state(work.db, id)?.ok_or(StoreError::NoRoot { root: id })?;
    Ok(Done::from(RootAdded { created, root }).with_collection(Some(state)))
}

/// Removes a root, which must have no files.
pub(in crate::write) fn remove_root(work: Work<'_>, root: u64) -> Result<Done<()>, StoreError> {
    let state = root_state(work.db, root)?.ok_or(StoreError::NoRoot { root })?;
    if state.files > 0 {
        let reason = format!("root {:?} still has {}", state.path, counted(state.files, "file"));
        return Err(StoreError::Invalid(reason));
    }
    work.db
        .prepare_cached("DELETE FROM root WHERE id = ?1")
        .and_then(|mut statement| statement.execute([root]))
        .during(work.db, "remove a root")?;
    Ok(().into())
}

/// Records the end of a complete run.
pub(in crate::write) fn finish_index(work: Work<'_>, root: u64) -> Result<Done<()>, StoreError> {
    let updated = work
        .db
        .prepare_cached("UPDATE root SET indexed_at = ?2 WHERE id = ?1")
        .and_then(|mut statement| statement.execute(params![root, work.now]))
        .during(work.db, "note the end of an index run")?;
    if updated == 0 {
        return Err(StoreError::NoRoot { root });
    }
    let graph_due = graph::is_due(work, true)?;
    Ok(Done { graph_due, ..().into() })
}

/// Recreates the code index for another model. The new collection has a new id, so folds and
/// files prepared for the old one are rejected.
pub(in crate::write) fn set_model(
    work: Work<'_>,
    spec: &CollectionSpec,
) -> Result<Done<CodeModelSet>, StoreError> {
    check(spec)?;
    let mut reply = CodeModelSet::default();
    if let Some(state) = code(work.db)? {
        if state.model == spec.model && state.dimension == spec.dimension {
            return Ok(Done::from(reply).with_collection(Some(state)));
        }
        if state.records > 0 {
            let reason = format!("the code index still has {} chunks", state.records);
            return Err(StoreError::Invalid(reason));
        }
        let CollectionDeleted { obsolete_files, more, .. } = collections::retire(work, state)?;
        reply = CodeModelSet { created: true, obsolete_files, more };
    }
    let state = make(work, spec)?;
    reply.created = true;
    Ok(Done::from(reply).with_collection(Some(state)))
}

fn check(spec: &CollectionSpec) -> Result<(), StoreError> {
    let complete = spec.name == CODE_COLLECTION
        && spec.metric == Metric::Cosine
        && spec.dimension.is_some()
        && spec.model.is_some();
    match complete {
        true => Ok(()),
        false => Err(StoreError::Invalid(format!(
            "the code index must be named {CODE_COLLECTION} and have the metric cosine, a dimension and a model"
        ))),
    }
}

fn accept(state: CollectionState, spec: &CollectionSpec) -> Result<CollectionState, StoreError> {
    if state.model != spec.model {
        return Err(StoreError::ModelMismatch {
            name: state.name,
            found: state.model.unwrap_or_default(),
            asked: spec.model.clone().unwrap_or_default(),
        });
    }
    if state.dimension != spec.dimension {
        let number = |dimension: Option<u32>| dimension.unwrap_or_default();
        let (there, asked) = (number(state.dimension), number(spec.dimension));
        let difference = format!("dimension {there}, not {asked}");
        return Err(StoreError::CollectionExists { name: state.name, difference });
    }
    Ok(state)
}

fn make(work: Work<'_>, spec: &CollectionSpec) -> Result<CollectionState, StoreError> {
    collections::insert(work, spec, CollectionKind::Code)?;
    by_name(work.db, CODE_COLLECTION)?.ok_or_else(|| StoreError::NotFound {
        name: CODE_COLLECTION.to_owned(),
        similar: Vec::new(),
    })
}
