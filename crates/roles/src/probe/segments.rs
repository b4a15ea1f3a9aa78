//! Verifies every segment that the database refers to.

use std::io;
use std::time::Duration;

use isolate::InWorker;
use isolith_folder::Folder;
use isolith_protocol::{
    CollectionState, Damage, IndexKind, SegmentDamageKind, SegmentEntry, StoreError,
};
use isolith_segment::text::TextSegment;
use isolith_segment::{GraphSegment, SegmentError, SourceSegment, VectorSegment};
use isolith_store::names::is_segment;
use isolith_store::{Reader, StoreFolder};

use isolith_types::counted;

use super::finding::{CollectionRebuild, Finding, Health, Repair};
use super::machine::megabytes;
use isolith_retrieve::damage_kind;

/// How often to check a collection again that is folded during the check.
const TRIES: usize = 4;

/// Minimum age of unreferenced segments. Younger ones may belong to a running build.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

pub(super) fn check(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
) -> Result<Finding, StoreError> {
    let mut summary = SegmentSummary::default();
    let states = reader.snapshot()?.collections()?;
    for state in states {
        check_collection(folder, reader, token, state, &mut summary)?;
    }
    check_graph(folder, reader, token, &mut summary)?;
    let unreferenced = unreferenced(folder, reader)?;
    if !unreferenced.is_empty() {
        let files = counted(unreferenced.len(), "unreferenced file");
        summary.notes.push(format!("{files} in segments/"));
        summary.repairs.push(Repair::Leftovers);
    }
    let status = match &summary {
        SegmentSummary { damaged: true, .. } => Health::Corrupt,
        SegmentSummary { failed: true, .. } => Health::Failed,
        SegmentSummary { notes, .. } if !notes.is_empty() => Health::Warn,
        _ => Health::Ok,
    };
    let intact = counted(summary.intact, "intact segment");
    summary.notes.push(format!("{intact} ({})", megabytes(summary.bytes)));
    Ok(Finding { repairs: summary.repairs, ..Finding::of_problems(status, &summary.notes) })
}

/// Removes unreferenced segments. Returns a description of what was done.
pub(super) fn remove_unreferenced(
    folder: &StoreFolder,
    reader: &mut Reader,
) -> Result<Vec<String>, StoreError> {
    let mut removed = 0;
    for name in unreferenced(folder, reader)? {
        match Folder::open(folder.segments()).and_then(|segments| segments.remove(&name)) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = folder.segments().join(name);
                let (operation, reason) = ("remove".to_owned(), error.to_string());
                return Err(StoreError::Io { path, operation, reason });
            }
        }
    }
    Ok(match removed {
        0 => Vec::new(),
        removed => vec![format!("removed {}", counted(removed, "unreferenced segment"))],
    })
}

/// The results for all segments.
#[derive(Default)]
struct SegmentSummary {
    notes: Vec<String>,
    repairs: Vec<Repair>,
    damaged: bool,
    failed: bool,
    intact: u64,
    bytes: u64,
}

fn check_collection(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
    mut state: CollectionState,
    summary: &mut SegmentSummary,
) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        let Some(segments) = GenerationSegments::verify(folder, &state, token) else {
            return Ok(());
        };
        if !segments.has_failures() {
            segments.add_to(summary, &state);
            return Ok(());
        }
        // A file may be missing because a fold has just replaced it.
        let now = reader.snapshot()?.collection_by_id(state.id)?;
        match now {
            None => return Ok(()),
            Some(now) if now.generation_number() == state.generation_number() => {
                segments.add_to(summary, &state);
                return Ok(());
            }
            Some(now) => state = now,
        }
    }
    summary.notes.push(format!("{}: not checked, because it is folded too often", state.name));
    Ok(())
}

/// An outdated graph segment is not a problem.
fn check_graph(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
    summary: &mut SegmentSummary,
) -> Result<(), StoreError> {
    let Some(entry) = reader.snapshot()?.graph_state()?.segment else { return Ok(()) };
    if let Some(reason) = &entry.quarantined {
        summary.notes.push(format!("{} is quarantined: {reason}", entry.file));
        summary.repairs.push(Repair::RebuildGraph(Vec::new()));
        return Ok(());
    }
    let path = folder.segments().join(&entry.file);
    let error = match GraphSegment::open(&path, Some(entry.checksum), token) {
        Ok(_) => {
            summary.intact += 1;
            summary.bytes += entry.bytes;
            return Ok(());
        }
        Err(error) => error,
    };
    // It may have been replaced in the meantime.
    let now = reader.snapshot()?.graph_state()?.segment;
    if now.is_none_or(|now| now.file != entry.file) {
        return Ok(());
    }
    let kind = damage_kind(&error);
    let damage = Damage { file: entry.file, reason: error.to_string(), kind };
    summary.notes.push(damage.reason.clone());
    if kind == SegmentDamageKind::Unreadable {
        summary.failed = true;
    } else {
        summary.damaged = true;
        summary.repairs.push(Repair::RebuildGraph(vec![damage]));
    }
    Ok(())
}

/// The results for the segments of one generation.
#[derive(Default)]
struct GenerationSegments {
    damaged: Vec<Damage>,
    quarantined: Vec<String>,
    unreadable: Vec<String>,
    intact: u64,
    bytes: u64,
}

impl GenerationSegments {
    /// `None` if the collection has no generation.
    fn verify(folder: &StoreFolder, state: &CollectionState, token: InWorker) -> Option<Self> {
        let mut segments = Self::default();
        for entry in &state.generation.as_ref()?.segments {
            if let Some(reason) = &entry.quarantined {
                segments.quarantined.push(format!("{} is quarantined: {reason}", entry.file));
                continue;
            }
            match verify(folder, state, entry, token) {
                Ok(()) => {
                    segments.intact += 1;
                    segments.bytes += entry.bytes;
                }
                Err(damage) if damage.kind == SegmentDamageKind::Unreadable => {
                    segments.unreadable.push(damage.reason);
                }
                Err(damage) => segments.damaged.push(damage),
            }
        }
        Some(segments)
    }

    fn has_failures(&self) -> bool {
        !(self.damaged.is_empty() && self.unreadable.is_empty())
    }

    fn add_to(self, summary: &mut SegmentSummary, state: &CollectionState) {
        summary.intact += self.intact;
        summary.bytes += self.bytes;
        summary.damaged |= !self.damaged.is_empty();
        summary.failed |= !self.unreadable.is_empty();
        summary.notes.extend(self.damaged.iter().map(|it| it.reason.clone()));
        let needs_rebuild = !(self.damaged.is_empty() && self.quarantined.is_empty());
        summary.notes.extend(self.quarantined);
        summary.notes.extend(self.unreadable);
        if needs_rebuild {
            summary.repairs.push(Repair::RebuildCollection(CollectionRebuild {
                collection: state.name.clone(),
                id: state.id,
                generation: state.generation_number(),
                damaged: self.damaged,
            }));
        }
    }
}

fn verify(
    folder: &StoreFolder,
    state: &CollectionState,
    entry: &SegmentEntry,
    token: InWorker,
) -> Result<(), Damage> {
    let damaged = |reason: String| Damage {
        file: entry.file.clone(),
        reason,
        kind: SegmentDamageKind::Damaged,
    };
    let rows = verified_rows(folder, state, entry, token)
        .map_err(|error| Damage { kind: damage_kind(&error), ..damaged(error.to_string()) })?
        .ok_or_else(|| {
            let file = &entry.file;
            damaged(format!("{file} does not have the dimension and metric of its collection"))
        })?;
    if rows as u64 != entry.rows {
        let rows = counted(rows, "row");
        return Err(damaged(format!("{} has {rows}, expected {}", entry.file, entry.rows)));
    }
    Ok(())
}

/// Verifies a segment and returns its number of rows; `None` if its dimension or metric is not
/// that of the collection.
fn verified_rows(
    folder: &StoreFolder,
    state: &CollectionState,
    entry: &SegmentEntry,
    token: InWorker,
) -> Result<Option<usize>, SegmentError> {
    let path = folder.segments().join(&entry.file);
    match entry.kind {
        IndexKind::Vector => {
            let segment = VectorSegment::open(&path, Some(entry.checksum), token)?;
            segment.verify()?;
            let dimension = state.dimension.unwrap_or(0) as usize;
            let fits = segment.dimension() == dimension && segment.metric() == state.metric;
            Ok(fits.then(|| segment.len()))
        }
        IndexKind::Text => {
            let segment = TextSegment::open(&path, Some(entry.checksum), token)?;
            segment.verify()?;
            Ok(Some(segment.len()))
        }
        IndexKind::Source => {
            let segment = SourceSegment::open(&path, Some(entry.checksum), token)?;
            segment.verify()?;
            Ok(Some(segment.len()))
        }
    }
}

/// Old files in `segments/` that no generation refers to.
fn unreferenced(folder: &StoreFolder, reader: &mut Reader) -> Result<Vec<String>, StoreError> {
    let entries = Folder::open(folder.segments()).and_then(|segments| segments.entries());
    let old = entries.unwrap_or_default().into_iter().filter(|entry| {
        is_segment(&entry.name) && entry.modified.elapsed().is_ok_and(|age| age > LEFTOVER_AGE)
    });
    let mut old: Vec<String> = old.map(|entry| entry.name).collect();
    // Read after listing the files, to include segments recorded in the meantime.
    let referenced = reader.snapshot()?.segment_files()?;
    old.retain(|name| !referenced.contains(name));
    Ok(old)
}
