//! Checking all segments again, block by block.

use std::path::Path;

use isolate::{Context, InWorker};
use isolith_segment::{Container, Kind as FileKind, SegmentError};
use isolith_store::{CollectionState, Kind, SegmentEntry, Snapshot, StoreError};

use super::{Damage, DamageKind, Searched};

/// The collections that have damaged segments, by name. What is mapped and was sound
/// once is read again: a file can be damaged at any time.
pub(super) fn verify(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    token: InWorker,
    context: &Context<'_>,
) -> Result<Vec<(String, Searched)>, StoreError> {
    let mut found = Vec::new();
    for state in snapshot.collections()? {
        let damaged: Vec<Damage> = usable(&state)
            .take_while(|_| !context.cancelled())
            .filter_map(|entry| {
                let error = check(entry, folder, token).err()?;
                let kind = DamageKind::of(&error);
                Some(Damage { file: entry.file.clone(), reason: error.to_string(), kind })
            })
            .collect();
        if !damaged.is_empty() {
            let (collection, generation) = (state.id, state.generation_number());
            found.push((
                state.name,
                Searched { collection, generation, damaged, ..Searched::default() },
            ));
        }
    }
    Ok(found)
}

fn usable(state: &CollectionState) -> impl Iterator<Item = &SegmentEntry> {
    let segments = state.generation.iter().flat_map(|generation| &generation.segments);
    segments.filter(|entry| entry.quarantined.is_none())
}

fn check(entry: &SegmentEntry, folder: &Path, token: InWorker) -> Result<(), SegmentError> {
    let kind = match entry.kind {
        Kind::Vector => FileKind::Vector,
        Kind::Text => FileKind::Text,
    };
    Container::open(&folder.join(&entry.file), kind, Some(entry.checksum), token)?.verify()
}
