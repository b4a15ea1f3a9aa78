//! Open segments, kept between jobs.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolate::{Context, InWorker};
use isolith_protocol::{
    CollectionState, Damage, DamageKind, GraphSegmentEntry, Kind, Searched, SegmentEntry,
    StoreError,
};
use isolith_segment::text::TextSegment;
use isolith_segment::{Bits, GraphSegment, SegmentError, VectorSegment};
use isolith_store::{Snapshot, StoreFolder};

/// The segments that this worker has open, by file name: a name never changes its
/// content.
pub struct Segments {
    folder: PathBuf,
    token: InWorker,
    open: HashMap<String, Opened>,
    /// Dead rows of open segments, as of a change number of their collection.
    dead: HashMap<String, (u64, Arc<Bits>)>,
}

#[derive(Clone)]
enum Opened {
    Vector(Arc<VectorSegment>),
    Text(Arc<TextSegment>),
    Graph(Arc<GraphSegment>),
}

/// Files kept open beyond those that the current job needs; the rest is closed, so
/// that replaced generations give back their disk space.
const MOST_OPEN: usize = 64;

/// A segment and its dead rows.
pub(crate) struct Live<S> {
    pub(crate) file: String,
    pub(crate) segment: Arc<S>,
    pub(crate) dead: Arc<Bits>,
}

/// Why a segment cannot be used.
pub fn damage_kind(error: &SegmentError) -> DamageKind {
    match error {
        SegmentError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            DamageKind::Missing
        }
        error if error.is_damage() => DamageKind::Damaged,
        _ => DamageKind::Unreadable,
    }
}

impl Segments {
    /// Opens nothing yet.
    pub fn in_folder(store: &Path, token: InWorker) -> Self {
        let folder = StoreFolder::new(store).segments();
        Self { folder, token, open: HashMap::new(), dead: HashMap::new() }
    }

    /// Closes all of them, because another store is in the folder now.
    pub fn forget(&mut self) {
        self.open.clear();
        self.dead.clear();
    }

    /// The vector segments of a collection; none if one of them cannot be used.
    pub(crate) fn vectors(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Option<Vec<Live<VectorSegment>>>, StoreError> {
        self.live(snapshot, state, Kind::Vector, context, searched, |opened| match opened {
            Opened::Vector(segment) => Some(segment),
            _ => None,
        })
    }

    /// The text segments of a collection; none if one of them cannot be used.
    pub(crate) fn texts(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Option<Vec<Live<TextSegment>>>, StoreError> {
        self.live(snapshot, state, Kind::Text, context, searched, |opened| match opened {
            Opened::Text(segment) => Some(segment),
            _ => None,
        })
    }

    fn live<S>(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        kind: Kind,
        context: &Context<'_>,
        searched: &mut Searched,
        of_kind: impl Fn(Opened) -> Option<Arc<S>>,
    ) -> Result<Option<Vec<Live<S>>>, StoreError> {
        let Some(entries) = usable(state, kind, context, searched) else { return Ok(None) };
        let mut live = Vec::new();
        for entry in entries {
            let opened = self.opened(&entry.file, searched, |path, token| open(entry, path, token));
            let Some(opened) = opened else { return Ok(None) };
            let dead = match self.dead(snapshot, state, entry, &opened)? {
                Ok(dead) => dead,
                Err(error) => {
                    self.fail(&entry.file, &error, searched);
                    return Ok(None);
                }
            };
            let Some(segment) = of_kind(opened) else { return Ok(None) };
            live.push(Live { file: entry.file.clone(), segment, dead });
        }
        Ok(Some(live))
    }

    /// Closes a segment that failed in use.
    pub(crate) fn fail(&mut self, file: &str, error: &SegmentError, searched: &mut Searched) {
        self.open.remove(file);
        self.dead.remove(file);
        searched.damaged.push(Damage {
            file: file.to_owned(),
            reason: error.to_string(),
            kind: damage_kind(error),
        });
    }

    /// The graph's segment; none if it cannot be used.
    pub fn graph(
        &mut self,
        entry: &GraphSegmentEntry,
        searched: &mut Searched,
    ) -> Option<Arc<GraphSegment>> {
        let opened = self.opened(&entry.file, searched, |path, token| {
            let segment = GraphSegment::open(path, Some(entry.checksum), token)?;
            Ok(Opened::Graph(Arc::new(segment)))
        });
        match opened? {
            Opened::Graph(segment) => Some(segment),
            _ => None,
        }
    }

    fn opened(
        &mut self,
        file: &str,
        searched: &mut Searched,
        open: impl FnOnce(&Path, InWorker) -> Result<Opened, SegmentError>,
    ) -> Option<Opened> {
        if let Some(opened) = self.open.get(file) {
            return Some(opened.clone());
        }
        if self.open.len() >= MOST_OPEN {
            self.forget();
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

    /// The dead rows of a segment, as the truth knows them.
    fn dead(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        entry: &SegmentEntry,
        opened: &Opened,
    ) -> Result<Result<Arc<Bits>, SegmentError>, StoreError> {
        if let Some((change, dead)) = self.dead.get(&entry.file)
            && *change == state.last_change
        {
            return Ok(Ok(Arc::clone(dead)));
        }
        let versions = snapshot.tombstones(state.id)?;
        Ok(opened.positions_of(&versions).map(|dead| {
            let dead = Arc::new(dead);
            self.dead.insert(entry.file.clone(), (state.last_change, Arc::clone(&dead)));
            dead
        }))
    }
}

impl Opened {
    /// Where these versions, in ascending order of rows, are; not all need be here.
    fn positions_of(&self, versions: &[(u64, u64)]) -> Result<Bits, SegmentError> {
        match self {
            Opened::Vector(segment) => {
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
            Opened::Text(segment) => {
                let mut bits = Bits::new(segment.len());
                segment.versions_of(versions, &mut bits)?;
                Ok(bits)
            }
            Opened::Graph(_) => Ok(Bits::new(0)),
        }
    }
}

fn open(entry: &SegmentEntry, path: &Path, token: InWorker) -> Result<Opened, SegmentError> {
    let checksum = Some(entry.checksum);
    Ok(match entry.kind {
        Kind::Vector => Opened::Vector(Arc::new(VectorSegment::open(path, checksum, token)?)),
        Kind::Text => Opened::Text(Arc::new(TextSegment::open(path, checksum, token)?)),
    })
}

/// The segments of one kind that may be opened, if none of them is in quarantine.
/// After a worker died of this job, it is tried without any.
fn usable<'a>(
    state: &'a CollectionState,
    kind: Kind,
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
        searched.avoided = entries.iter().map(|entry| entry.file.clone()).collect();
        return None;
    }
    Some(entries)
}
