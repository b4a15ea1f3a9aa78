use std::collections::HashSet;

use isolith_protocol::{CollectionState, Done, Patch, RecordsUpdated, StoreError, UpdateRecords};
use isolith_types::Metadata;

use super::change::Changes;
use super::fields::Fields;
use super::put::{NewVersion, StoredVersion, fix_dimension};
use super::validate;
use super::{Perform, Work};
use crate::read::collections;

impl Perform for UpdateRecords {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        update(work, &self.collection, &self.patches)
    }
}

/// Changes parts of existing records.
pub(super) fn update(
    work: Work<'_>,
    collection: &str,
    patches: &[Patch],
) -> Result<Done<RecordsUpdated>, StoreError> {
    let state = collections::require_records(work.db, collection)?;
    let vectors = encode(patches, &state)?;
    if let (None, Some(vector)) = (state.dimension, vectors.iter().flatten().next()) {
        fix_dimension(work, &state, (vector.len() / 4) as u32)?;
    }
    let mut changes = Changes::begin(work, &state)?;
    let mut fields = Fields::of(work, state.id)?;
    let mut reply = RecordsUpdated::default();
    for (patch, vector) in patches.iter().zip(&vectors) {
        let Some(old) = StoredVersion::find(work, state.id, &patch.id)? else {
            reply.missing += 1;
            continue;
        };
        let vector = match vector {
            Some(vector) if !old.has_vector(work, vector)? => Some(&vector[..]),
            _ => None,
        };
        let document = match &patch.document {
            Some(document) => document.as_deref(),
            None => old.document.as_deref(),
        };
        let metadata = match &patch.metadata {
            Some(over) => old.metadata.merged_with(over),
            None => Metadata::clone(&old.metadata),
        };
        if vector.is_none() && document == old.document.as_deref() && metadata == old.metadata {
            reply.unchanged += 1;
            continue;
        }
        let new = NewVersion { document, metadata: &metadata, vector };
        old.replace(work, &mut changes, &mut fields, new)?;
        reply.updated += 1;
    }
    changes.finish(reply)
}

/// Validates all patches and encodes their vectors.
fn encode(patches: &[Patch], state: &CollectionState) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let mut seen = HashSet::with_capacity(patches.len());
    let mut dimension = state.dimension;
    let mut encoded = Vec::with_capacity(patches.len());
    for (row, patch) in patches.iter().enumerate() {
        let bad = |reason| validate::bad(row, &patch.id, reason);
        validate::check_id(&patch.id, &mut seen).map_err(bad)?;
        let Some(vector) = &patch.vector else {
            encoded.push(None);
            continue;
        };
        let found = u32::try_from(vector.len()).unwrap_or(u32::MAX);
        if found == 0 || found > validate::MAX_DIMENSION {
            return Err(bad(format!("the vector has dimension {found}")));
        }
        let expected = *dimension.get_or_insert(found);
        if found != expected {
            return Err(bad(format!("the vector has dimension {found}, not {expected}")));
        }
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        validate::any_vector(&bytes).map_err(bad)?;
        encoded.push(Some(bytes));
    }
    Ok(encoded)
}
