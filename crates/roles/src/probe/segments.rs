//! Every byte of every segment that the truth names.

use std::io;
use std::time::Duration;

use isolate::InWorker;
use isolith_folder::Folder;
use isolith_protocol::{CollectionState, Damage, DamageKind, Kind, SegmentEntry, StoreError};
use isolith_segment::text::TextSegment;
use isolith_segment::{GraphSegment, SegmentError, VectorSegment};
use isolith_store::names::is_segment;
use isolith_store::{Reader, StoreFolder};

use super::finding::{Cure, Finding, Health, Rebuild};
use super::machine::megabytes;
use isolith_retrieve::damage_kind;

/// A collection that is folded while it is looked at is looked at again, so often.
const TRIES: usize = 4;

/// Files that no generation names may be about to be recorded; after so long they are
/// not.
const LEFT_FOR: Duration = Duration::from_secs(3600);

pub(super) fn check(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
) -> Result<Finding, StoreError> {
    let mut seen = Seen::default();
    let states = reader.snapshot()?.collections()?;
    for state in states {
        look_at(folder, reader, token, state, &mut seen)?;
    }
    look_at_graph(folder, reader, token, &mut seen)?;
    let unnamed = unnamed(folder, reader)?;
    if !unnamed.is_empty() {
        seen.notes.push(format!("{} files belong to no generation", unnamed.len()));
        seen.cures.push(Cure::Leftovers);
    }
    let status = match &seen {
        Seen { damaged: true, .. } => Health::Corrupt,
        Seen { failed: true, .. } => Health::Failed,
        Seen { notes, .. } if !notes.is_empty() => Health::Warn,
        _ => Health::Ok,
    };
    seen.notes.push(format!("{} segments are whole ({})", seen.whole, megabytes(seen.bytes)));
    Ok(Finding { cures: seen.cures, ..Finding::of_problems(status, &seen.notes) })
}

/// Removes files that no generation names. Returns what was done.
pub(super) fn remove_unnamed(
    folder: &StoreFolder,
    reader: &mut Reader,
) -> Result<Vec<String>, StoreError> {
    let mut removed = 0;
    for name in unnamed(folder, reader)? {
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
        removed => vec![format!("removed {removed} segments that belonged to no generation")],
    })
}

#[derive(Default)]
struct Seen {
    notes: Vec<String>,
    cures: Vec<Cure>,
    damaged: bool,
    failed: bool,
    whole: u64,
    bytes: u64,
}

fn look_at(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
    state: CollectionState,
    seen: &mut Seen,
) -> Result<(), StoreError> {
    let mut state = state;
    for _ in 0..TRIES {
        let Some(found) = Found::of(folder, &state, token) else { return Ok(()) };
        if !found.troubles() {
            found.tell(&state, seen);
            return Ok(());
        }
        // A file may be missing because a fold has just replaced it.
        let now = reader.snapshot()?.collection_by_id(state.id)?;
        match now {
            None => return Ok(()),
            Some(now) if now.generation_number() == state.generation_number() => {
                found.tell(&state, seen);
                return Ok(());
            }
            Some(now) => state = now,
        }
    }
    seen.notes.push(format!("{} was folded too often to be looked at", state.name));
    Ok(())
}

/// The graph's segment. One that is older than the graph is no trouble.
fn look_at_graph(
    folder: &StoreFolder,
    reader: &mut Reader,
    token: InWorker,
    seen: &mut Seen,
) -> Result<(), StoreError> {
    let Some(entry) = reader.snapshot()?.graph_state()?.segment else { return Ok(()) };
    if let Some(reason) = &entry.quarantined {
        seen.notes.push(format!("{} is in quarantine: {reason}", entry.file));
        seen.cures.push(Cure::RebuildGraph(Vec::new()));
        return Ok(());
    }
    let path = folder.segments().join(&entry.file);
    let error = match GraphSegment::open(&path, Some(entry.checksum), token) {
        Ok(_) => {
            seen.whole += 1;
            seen.bytes += entry.bytes;
            return Ok(());
        }
        Err(error) => error,
    };
    // It may have been replaced meanwhile.
    let now = reader.snapshot()?.graph_state()?.segment;
    if now.is_none_or(|now| now.file != entry.file) {
        return Ok(());
    }
    let kind = damage_kind(&error);
    let damage = Damage { file: entry.file, reason: error.to_string(), kind };
    seen.notes.push(damage.reason.clone());
    if kind == DamageKind::Unreadable {
        seen.failed = true;
    } else {
        seen.damaged = true;
        seen.cures.push(Cure::RebuildGraph(vec![damage]));
    }
    Ok(())
}

/// What was seen of the segments of one generation.
struct Found {
    damaged: Vec<Damage>,
    quarantined: Vec<String>,
    unreadable: Vec<String>,
    whole: u64,
    bytes: u64,
}

impl Found {
    fn of(folder: &StoreFolder, state: &CollectionState, token: InWorker) -> Option<Self> {
        let mut found = Self {
            damaged: Vec::new(),
            quarantined: Vec::new(),
            unreadable: Vec::new(),
            whole: 0,
            bytes: 0,
        };
        for entry in &state.generation.as_ref()?.segments {
            if let Some(reason) = &entry.quarantined {
                found.quarantined.push(format!("{} is in quarantine: {reason}", entry.file));
                continue;
            }
            match verify(folder, state, entry, token) {
                Ok(()) => {
                    found.whole += 1;
                    found.bytes += entry.bytes;
                }
                Err(damage) if damage.kind == DamageKind::Unreadable => {
                    found.unreadable.push(damage.reason);
                }
                Err(damage) => found.damaged.push(damage),
            }
        }
        Some(found)
    }

    fn troubles(&self) -> bool {
        !(self.damaged.is_empty() && self.unreadable.is_empty())
    }

    fn tell(self, state: &CollectionState, seen: &mut Seen) {
        seen.whole += self.whole;
        seen.bytes += self.bytes;
        seen.damaged |= !self.damaged.is_empty();
        seen.failed |= !self.unreadable.is_empty();
        seen.notes.extend(self.damaged.iter().map(|it| it.reason.clone()));
        let useless = !(self.damaged.is_empty() && self.quarantined.is_empty());
        seen.notes.extend(self.quarantined);
        seen.notes.extend(self.unreadable);
        if useless {
            seen.cures.push(Cure::Rebuild(Rebuild {
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
    let damaged =
        |reason: String| Damage { file: entry.file.clone(), reason, kind: DamageKind::Damaged };
    let rows = open_whole(folder, state, entry, token)
        .map_err(|error| Damage { kind: damage_kind(&error), ..damaged(error.to_string()) })?
        .ok_or_else(|| {
            let file = &entry.file;
            damaged(format!("{file} has another dimension or metric than its collection"))
        })?;
    if rows as u64 != entry.rows {
        return Err(damaged(format!("{} has {rows} rows, not {}", entry.file, entry.rows)));
    }
    Ok(())
}

/// How many rows a segment has whose every byte is sound; none if its vectors are not
/// those of the collection.
fn open_whole(
    folder: &StoreFolder,
    state: &CollectionState,
    entry: &SegmentEntry,
    token: InWorker,
) -> Result<Option<usize>, SegmentError> {
    let path = folder.segments().join(&entry.file);
    match entry.kind {
        Kind::Vector => {
            let segment = VectorSegment::open(&path, Some(entry.checksum), token)?;
            segment.verify()?;
            let dimension = state.dimension.unwrap_or(0) as usize;
            let fits = segment.dimension() == dimension && segment.metric() == state.metric;
            Ok(fits.then(|| segment.len()))
        }
        Kind::Text => {
            let segment = TextSegment::open(&path, Some(entry.checksum), token)?;
            segment.verify()?;
            Ok(Some(segment.len()))
        }
    }
}

/// Old files in `segments/` that no generation names.
fn unnamed(folder: &StoreFolder, reader: &mut Reader) -> Result<Vec<String>, StoreError> {
    let entries = Folder::open(folder.segments()).and_then(|segments| segments.entries());
    let old = entries.unwrap_or_default().into_iter().filter(|entry| {
        is_segment(&entry.name) && entry.modified.elapsed().is_ok_and(|age| age > LEFT_FOR)
    });
    let mut old: Vec<String> = old.map(|entry| entry.name).collect();
    // Read after the files: what a fold has recorded by now is named.
    let named = reader.snapshot()?.segment_files()?;
    old.retain(|name| !named.contains(name));
    Ok(old)
}
