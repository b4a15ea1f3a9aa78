//! Opens segments and keeps them open between jobs.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolate::{Context, InWorker};
use isolith_protocol::{
    CollectionState, Damage, GraphSegmentEntry, IndexKind, Searched, SegmentDamageKind,
    SegmentEntry, StoreError,
};
use isolith_segment::text::TextSegment;
use isolith_segment::{Bits, GraphSegment, SegmentError, SourceSegment, VectorSegment};
use isolith_store::{Snapshot, StoreFolder};

/// The open segments, by file name. A segment file never changes.
pub struct Segments {
    folder: PathBuf,
    token: InWorker,
    open: HashMap<String, OpenSegment>,
    /// Deleted rows of open segments, as of a change number of their collection.
    deleted: HashMap<String, (u64, Arc<Bits>)>,
}

#[derive(Clone)]
enum OpenSegment {
    Vector(Arc<VectorSegment>),
    Text(Arc<TextSegment>),
    Graph(Arc<GraphSegment>),
    Source(Arc<SourceSegment>),
}

/// All segments are closed when this many are open, so that replaced generations release their
/// disk space.
const MAX_OPEN: usize = 64;

/// An open segment and the positions of its deleted rows.
pub(crate) struct LiveSegment<S> {
    pub(crate) file: String,
    pub(crate) segment: Arc<S>,
    pub(crate) deleted: Arc<Bits>,
}

/// Classifies the error of a segment that cannot be used.
pub fn damage_kind(error: &SegmentError) -> SegmentDamageKind {
    match error {
        SegmentError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            SegmentDamageKind::Missing
        }
        error if error.is_damage() => SegmentDamageKind::Damaged,
        _ => SegmentDamageKind::Unreadable,
    }
}

impl Segments {
    /// For the segments of a store; opens none yet.
    pub fn in_folder(store: &Path, token: InWorker) -> Self {
        let folder = StoreFolder::new(store).segments();
        Self { folder, token, open: HashMap::new(), deleted: HashMap::new() }
    }

    /// Closes all segments. Required after the store in the folder was replaced.
    pub fn clear(&mut self) {
        self.open.clear();
        self.deleted.clear();
    }

    /// The vector segments of a collection; `None` if one of them cannot be used.
    pub(crate) fn vectors(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Option<Vec<LiveSegment<VectorSegment>>>, StoreError> {
        self.live(snapshot, state, IndexKind::Vector, context, searched, |opened| match opened {
            OpenSegment::Vector(segment) => Some(segment),
            _ => None,
        })
    }

    /// The text segments of a collection; `None` if one of them cannot be used.
    pub(crate) fn texts(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Option<Vec<LiveSegment<TextSegment>>>, StoreError> {
        self.live(snapshot, state, IndexKind::Text, context, searched, |opened| match opened {
            OpenSegment::Text(segment) => Some(segment),
            _ => None,
        })
    }

    /// The source segments of a collection, with the positions of replaced and deleted files;
    /// `None` if one of them cannot be used.
    pub(crate) fn sources(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Option<Vec<LiveSegment<SourceSegment>>>, StoreError> {
        self.live(snapshot, state, IndexKind::Source, context, searched, |opened| match opened {
            OpenSegment::Source(segment) => Some(segment),
            _ => None,
        })
    }

    fn live<S>(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        kind: IndexKind,
        context: &Context<'_>,
        searched: &mut Searched,
        of_kind: impl Fn(OpenSegment) -> Option<Arc<S>>,
    ) -> Result<Option<Vec<LiveSegment<S>>>, StoreError> {
        let Some(entries) = usable(state, kind, context, searched) else { return Ok(None) };
        let mut live = Vec::new();
        for entry in entries {
            let opened = self.opened(&entry.file, searched, |path, token| open(entry, path, token));
            let Some(opened) = opened else { return Ok(None) };
            let deleted = match self.deleted(snapshot, state, entry, &opened)? {
                Ok(deleted) => deleted,
                Err(error) => {
                    self.fail(&entry.file, &error, searched);
                    return Ok(None);
                }
            };
            let Some(segment) = of_kind(opened) else { return Ok(None) };
            live.push(LiveSegment { file: entry.file.clone(), segment, deleted });
        }
        Ok(Some(live))
    }

    /// Closes a segment that failed, and reports it as damaged.
    pub(crate) fn fail(&mut self, file: &str, error: &SegmentError, searched: &mut Searched) {
        self.open.remove(file);
        self.deleted.remove(file);
        searched.damaged.push(Damage {
            file: file.to_owned(),
            reason: error.to_string(),
            kind: damage_kind(error),
        });
    }

    /// The graph segment; `None` if it cannot be used.
    pub fn graph(
        &mut self,
        entry: &GraphSegmentEntry,
        searched: &mut Searched,
    ) -> Option<Arc<GraphSegment>> {
        let opened = self.opened(&entry.file, searched, |path, token| {
            let segment = GraphSegment::open(path, Some(entry.checksum), token)?;
            Ok(OpenSegment::Graph(Arc::new(segment)))
        });
        match opened? {
            OpenSegment::Graph(segment) => Some(segment),
            _ => None,
        }
    }

    fn opened(
        &mut self,
        file: &str,
        searched: &mut Searched,
        open: impl FnOnce(&Path, InWorker) -> Result<OpenSegment, SegmentError>,
    ) -> Option<OpenSegment> {
        if let Some(opened) = self.open.get(file) {
            return Some(opened.clone());
        }
        if self.open.len() >= MAX_OPEN {
            self.clear();
        }
        match open(&self.folder.join(file), self.token) {
            Ok(opened) => {
                self.open.insert(file.to_owned(), opened.clone());
                Some(opened)
            }
            Err(error) => {
                self.fail(file, &error, searched);
                None
            }
        }
    }

    /// The positions of a segment's deleted rows, from the tombstones in the database.
    fn deleted(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        entry: &SegmentEntry,
        opened: &OpenSegment,
    ) -> Result<Result<Arc<Bits>, SegmentError>, StoreError> {
        if let Some((change, deleted)) = self.deleted.get(&entry.file)
            && *change == state.last_change
        {
            return Ok(Ok(Arc::clone(deleted)));
        }
        let versions = snapshot.tombstones(state.id)?;
        Ok(opened.positions_of(&versions).map(|deleted| {
            let deleted = Arc::new(deleted);
            self.deleted.insert(entry.file.clone(), (state.last_change, Arc::clone(&deleted)));
            deleted
        }))
    }
}

impl OpenSegment {
    /// The positions of record versions, given by ascending row; unknown versions are ignored.
    fn positions_of(&self, versions: &[(u64, u64)]) -> Result<Bits, SegmentError> {
        match self {
            OpenSegment::Vector(segment) => {
                let mut bits = Bits::new(segment.len());
                for (row, change) in versions {
                    if let Some(position) = segment.position_of(*row)?
                        && segment.change(position)? == *change
                    {
                        bits.insert(position);
                    }
                }
                Ok(bits)
            }
            OpenSegment::Text(segment) => {
                let mut bits = Bits::new(segment.len());
                segment.versions_of(versions, &mut bits)?;
                Ok(bits)
            }
            OpenSegment::Source(segment) => Ok(segment.files_with(versions)),
            OpenSegment::Graph(_) => Ok(Bits::new(0)),
        }
    }
}

fn open(entry: &SegmentEntry, path: &Path, token: InWorker) -> Result<OpenSegment, SegmentError> {
    let checksum = Some(entry.checksum);
    Ok(match entry.kind {
        IndexKind::Vector => {
            OpenSegment::Vector(Arc::new(VectorSegment::open(path, checksum, token)?))
        }
        IndexKind::Text => OpenSegment::Text(Arc::new(TextSegment::open(path, checksum, token)?)),
        IndexKind::Source => {
            OpenSegment::Source(Arc::new(SourceSegment::open(path, checksum, token)?))
        }
    })
}

/// The segments of one kind. `None` if one is quarantined, or if the job is being retried: a
/// segment may have crashed the previous worker.
fn usable<'a>(
    state: &'a CollectionState,
    kind: IndexKind,
    context: &Context<'_>,
    searched: &mut Searched,
) -> Option<Vec<&'a SegmentEntry>> {
    let generation = state.generation.as_ref()?;
    searched.generation = generation.number;
    let entries: Vec<&SegmentEntry> =
        generation.segments.iter().filter(|segment| segment.kind == kind).collect();
    if entries.iter().any(|entry| entry.quarantined.is_some()) {
        searched.quarantined = true;
        return None;
    }
    if context.attempt() > 0 {
        for entry in entries {
            if !searched.avoided.contains(&entry.file) {
                searched.avoided.push(entry.file.clone());
            }
        }
        return None;
    }
    Some(entries)
}
