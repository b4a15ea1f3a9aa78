//! Verifies the checksums of all segments.

use std::path::Path;

use isolate::{Context, InWorker};
use isolith_protocol::{
    CollectionState, Damage, IndexKind, Searched, SegmentEntry, SegmentsOf, StoreError,
};
use isolith_segment::{Container, SegmentError, SegmentKind};
use isolith_store::Snapshot;

use isolith_retrieve::damage_kind;

/// Finds damaged segments. Files are mapped and read again, because damage can occur after they
/// were first verified.
pub(super) fn verify(
    snapshot: &Snapshot<'_>,
    folder: &Path,
    token: InWorker,
    context: &Context<'_>,
) -> Result<Vec<(SegmentsOf, Searched)>, StoreError> {
    let check = |file: &str, kind: SegmentKind, checksum: u32| {
        let container = Container::open(&folder.join(file), kind, Some(checksum), token);
        let error = container.and_then(|container| container.verify()).err()?;
        Some(damage(file, &error))
    };
    let mut found = Vec::new();
    for state in snapshot.collections()? {
        let damaged: Vec<Damage> = usable(&state)
            .take_while(|_| !context.cancelled())
            .filter_map(|entry| check(&entry.file, kind(entry), entry.checksum))
            .collect();
        if !damaged.is_empty() {
            let (collection, generation) = (state.id, state.generation_number());
            let searched = Searched { collection, generation, damaged, ..Searched::default() };
            found.push((SegmentsOf::Collection(state.name), searched));
        }
    }
    let graph = snapshot.graph_state()?;
    if let Some(entry) = graph.segment.filter(|entry| entry.quarantined.is_none())
        && let Some(damage) = check(&entry.file, SegmentKind::Graph, entry.checksum)
    {
        let searched = Searched { damaged: vec![damage], ..Searched::default() };
        found.push((SegmentsOf::Graph, searched));
    }
    Ok(found)
}

fn damage(file: &str, error: &SegmentError) -> Damage {
    Damage { file: file.to_owned(), reason: error.to_string(), kind: damage_kind(error) }
}

fn usable(state: &CollectionState) -> impl Iterator<Item = &SegmentEntry> {
    let segments = state.generation.iter().flat_map(|generation| &generation.segments);
    segments.filter(|entry| entry.quarantined.is_none())
}

fn kind(entry: &SegmentEntry) -> SegmentKind {
    match entry.kind {
        IndexKind::Vector => SegmentKind::Vector,
        IndexKind::Text => SegmentKind::Text,
        IndexKind::Source => SegmentKind::Source,
    }
}
