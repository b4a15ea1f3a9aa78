//! Memory: drawers, and their passages as records of one collection.

mod add;
mod check;
mod identity;
mod passages;
mod remove;
mod update;

use isolith_protocol::{
    CollectionState, DrawerVectors, MEMORY_COLLECTION, StoreError, memory_spec,
};
use isolith_sql::params;
use isolith_types::CollectionKind;

pub(super) use add::{add as add_drawers, again as complete_drawers};

use super::{Work, collections, validate};
use crate::read::collections::{memory, require};
use crate::sqlite::During;

/// The collection for these vectors, created with the first drawer.
fn memory_for(work: Work<'_>, vectors: &DrawerVectors) -> Result<CollectionState, StoreError> {
    let Some(state) = memory(work.db)? else {
        let spec = memory_spec(vectors.dimension, vectors.model.as_str());
        collections::insert(work, &spec, CollectionKind::Memory)?;
        return require(work.db, MEMORY_COLLECTION);
    };
    validate::check_dimension(vectors.dimension, &state)?;
    match &state.model {
        Some(model) if *model == vectors.model => {}
        // Unknown after a salvage that lost the model's name.
        None => work
            .db
            .prepare_cached("UPDATE collection SET model = ?2 WHERE id = ?1")
            .and_then(|mut statement| statement.execute(params![state.id, vectors.model]))
            .map(|_| ())
            .during(work.db, "set the model")?,
        Some(model) => {
            return Err(StoreError::ModelMismatch {
                name: state.name,
                found: model.clone(),
                asked: vectors.model.clone(),
            });
        }
    }
    Ok(state)
}
