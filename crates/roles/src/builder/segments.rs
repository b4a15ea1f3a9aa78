//! Builds the segments of a new generation, two at a time.

use std::ops::ControlFlow;
use std::panic;
use std::thread;

use isolate::Context;
use isolith_fault as fault;
use isolith_protocol::{CollectionState, IndexKind, SegmentEntry, StoreError};
use isolith_retrieve::{analyzer, for_each_text};
use isolith_segment::storage::Disk;
use isolith_segment::text::TextBuilder;
use isolith_segment::{
    SegmentError, SourceBuilder, SourceChunk, SourceFile, VectorBuilder, VectorSpec,
};
use isolith_store::{ChunkStart, FileText, Snapshot, Truth};
use isolith_types::CollectionKind;

use super::{BuildError, Fold, FoldStep};

/// With fewer rows, a second connection to the database would take as long as it saves.
const MIN_ROWS_TO_SHARE: u64 = 1_000;

/// The segments of a new generation.
pub(super) struct NewSegments<'a> {
    pub(super) fold: &'a Fold<'a>,
    pub(super) state: &'a CollectionState,
    pub(super) storage: &'a Disk,
    pub(super) step: FoldStep,
}

impl NewSegments<'_> {
    /// Builds all of them from one state of the database. Texts take longest, so another thread
    /// builds the others meanwhile.
    pub(super) fn build(&self, snapshot: &Snapshot<'_>) -> Result<Vec<SegmentEntry>, BuildError> {
        if self.state.records < MIN_ROWS_TO_SHARE {
            let others = self.others(snapshot)?;
            return Ok(in_order(others, self.texts(snapshot)?));
        }
        let at = version(snapshot)?;
        let (texts, others) = thread::scope(|scope| {
            let others = scope.spawn(|| self.others_at(&at));
            let texts = self.texts(snapshot);
            (texts, others.join().unwrap_or_else(|payload| panic::resume_unwind(payload)))
        });
        let (texts, others) = (texts?, others?);
        // Somebody has written before the second connection took its snapshot.
        let others = others.map_or_else(|| self.others(snapshot), Ok)?;
        Ok(in_order(others, texts))
    }

    /// All segments but that of texts, through another connection; `None` if the database is not
    /// at this version.
    fn others_at(&self, at: &(String, u64)) -> Result<Option<Vec<SegmentEntry>>, BuildError> {
        let mut reader = Truth::open_reader(&self.fold.folder, self.fold.token)?.for_scans()?;
        let snapshot = reader.snapshot()?;
        if version(&snapshot)? != *at {
            return Ok(None);
        }
        self.others(&snapshot).map(Some)
    }

    /// All segments but that of texts.
    fn others(&self, snapshot: &Snapshot<'_>) -> Result<Vec<SegmentEntry>, BuildError> {
        let segments = [self.vectors(snapshot)?, self.sources(snapshot)?];
        Ok(segments.into_iter().flatten().collect())
    }

    fn vectors(&self, snapshot: &Snapshot<'_>) -> Result<Option<SegmentEntry>, BuildError> {
        let Self { fold, state, storage, step } = *self;
        let Some(dimension) = state.dimension else { return Ok(None) };
        let name = self.file_name("vec");
        let spec = VectorSpec { dimension, metric: state.metric };
        let mut builder = VectorBuilder::create(storage, &name, spec, fold.token)?;
        let mut progress = PushProgress::new(self, "vectors");
        snapshot.for_each_vector(state.id, step.scope(), &mut |row, change, bytes| {
            progress.add(builder.push_bytes(row, change, bytes))
        })?;
        progress.finish()?;
        let (published, rows) = builder.finish()?;
        fault::point("fold.vectors", fold.context);
        Ok(Some(step.entry(IndexKind::Vector, published, rows)))
    }

    fn texts(&self, snapshot: &Snapshot<'_>) -> Result<SegmentEntry, BuildError> {
        let Self { fold, state, storage, step } = *self;
        let name = self.file_name("txt");
        let scratch = fold.folder.run();
        let mut builder =
            TextBuilder::create(storage, &scratch, &name, analyzer(state), fold.token)?;
        let mut progress = PushProgress::new(self, "texts");
        for_each_text(snapshot, state, step.scope(), &mut |row, change, fields| {
            progress.add(builder.push(row, change, fields))
        })?;
        progress.finish()?;
        let (published, rows) = builder.finish()?;
        Ok(step.entry(IndexKind::Text, published, rows))
    }

    /// The texts of files, for the code index.
    fn sources(&self, snapshot: &Snapshot<'_>) -> Result<Option<SegmentEntry>, BuildError> {
        let Self { fold, state, storage, step } = *self;
        if state.kind != CollectionKind::Code {
            return Ok(None);
        }
        let name = self.file_name("src");
        let mut builder = SourceBuilder::create(storage, &name, fold.token)?;
        let mut progress = PushProgress::new(self, "sources");
        snapshot.for_each_file_text(state.id, step.scope(), &mut |file| {
            let chunks: Vec<SourceChunk<'_>> = file.chunks.iter().map(source_chunk).collect();
            let FileText { id, root, generated, ref path, ref text, .. } = *file;
            let chunks = &chunks;
            progress.add(builder.push(&SourceFile { id, root, path, generated, chunks, text }))
        })?;
        progress.finish()?;
        let (published, rows) = builder.finish()?;
        fault::point("fold.sources", fold.context);
        Ok(Some(step.entry(IndexKind::Source, published, rows)))
    }

    fn file_name(&self, extension: &str) -> String {
        self.step.file_name(self.state.id, self.state.generation_number() + 1, extension)
    }
}

/// The uuid of the store, and its last change number.
fn version(snapshot: &Snapshot<'_>) -> Result<(String, u64), StoreError> {
    Ok((snapshot.uuid()?, snapshot.last_change()?))
}

/// The order in which segments are recorded.
fn in_order(mut others: Vec<SegmentEntry>, texts: SegmentEntry) -> Vec<SegmentEntry> {
    let at = others.iter().filter(|entry| entry.kind == IndexKind::Vector).count();
    others.insert(at, texts);
    others
}

fn source_chunk(chunk: &ChunkStart) -> SourceChunk<'_> {
    let ChunkStart { row, change, start, lines, ref parent, ref symbols } = *chunk;
    SourceChunk { row, change, start, lines, parent: parent.as_deref(), symbols }
}

/// Reports progress while rows are added to a segment, and records why it stopped early.
struct PushProgress<'a> {
    context: &'a Context<'a>,
    stage: &'static str,
    done: u64,
    total: u64,
    error: Option<BuildError>,
}

impl<'a> PushProgress<'a> {
    fn new(segments: &NewSegments<'a>, stage: &'static str) -> Self {
        let (context, total) = (segments.fold.context, segments.state.records);
        Self { context, stage, done: 0, total, error: None }
    }

    fn add(&mut self, pushed: Result<(), SegmentError>) -> ControlFlow<()> {
        self.done += 1;
        if self.done.is_multiple_of(1024) {
            self.context.progress(self.done, Some(self.total), self.stage);
        }
        match pushed {
            Err(error) => self.error = Some(BuildError::Segment(error)),
            Ok(()) if self.context.cancelled() => self.error = Some(BuildError::Cancelled),
            Ok(()) => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(())
    }

    fn finish(self) -> Result<(), BuildError> {
        self.error.map_or(Ok(()), Err)
    }
}
