mod graph;

use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime};

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_folder::Folder;
use isolith_protocol::{
    CollectionState, Key, Kind, Level, SegmentEntry, SegmentsSwapped, StoreError, SwapPlan,
    SwapSegments, WriteOperation,
};
use isolith_segment::storage::{Disk, Storage};
use isolith_segment::text::{TextBuilder, remove_scratch};
use isolith_segment::{SegmentError, VectorBuilder, VectorSpec, remove_leftovers};
use isolith_store::names::is_segment;
use isolith_store::{BUILDER_LOCK, Reader, Scope, Snapshot, StoreFolder, Truth, WriterOptions};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::settings::{StoreSettings, must_pass_on, passed_on, store_sandbox};
use graph::GraphBuild;
pub use graph::GraphJob;
use isolith_fault as fault;
use isolith_retrieve::{analyzer, for_each_text};

/// Makes new generations of segments, one at a time across all processes.
pub struct StoreBuilder {
    settings: StoreSettings,
    token: InWorker,
}

/// What is to be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BuildJob {
    /// A new generation of a collection.
    Fold(FoldJob),
    /// The segment of the graph.
    Graph(GraphJob),
}

/// Folds one collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoldJob {
    /// The collection.
    pub collection: String,
    /// Fold even if little has changed.
    pub even_little: bool,
    /// Fold in any case, and make a new base.
    pub rebuild: bool,
    /// The key of the swap.
    pub key: Key,
}

/// What a fold came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldDone {
    /// The new generation, or the change that the graph's segment is of; none if there was nothing to do, or another builder is at
    /// it or was faster.
    pub generation: Option<u64>,
    /// Rows in the new segments, or edges.
    pub rows: u64,
    /// Bytes written for them.
    pub bytes: u64,
    /// Another process is building in this store.
    pub busy: bool,
}

/// A base of which this part is dead, or that has a delta of this part of it, is
/// made anew.
const REBASE_PART: u64 = 10;

/// Files that no generation names may be a fold that is about to be recorded by a
/// builder whose lock just died with it; after this long they are rubbish.
const RUBBISH_AGE: Duration = Duration::from_secs(60);

/// The swap waits for other writers no longer than this.
const SWAP_PATIENCE: Duration = Duration::from_secs(60);

impl Role for StoreBuilder {
    const NAME: &'static str = "store-builder";
    type Settings = StoreSettings;
    type Request = BuildJob;
    type Reply = Result<FoldDone, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { settings, token })
    }

    fn handle(&mut self, job: BuildJob, context: &Context<'_>) -> Self::Reply {
        if must_pass_on(context) {
            return Err(passed_on(&self.settings).to_failure());
        }
        let folder = self.settings.folder();
        let Some(_lock) = lock_builder(&folder)? else {
            return Ok(FoldDone { busy: true, ..FoldDone::default() });
        };
        fault::point("build", context);
        let token = self.token;
        let done = match &job {
            BuildJob::Fold(job) => Fold { folder, token, job, context }.run(),
            BuildJob::Graph(job) => GraphBuild { folder: &folder, token, job, context }.run(),
        };
        done.map_err(Problem::into_failure)
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &[])
    }
}

/// The lock dies with this process, whatever it dies of.
fn lock_builder(folder: &StoreFolder) -> Result<Option<File>, Failure> {
    let path = folder.builder_lock();
    let refuse = |error: std::io::Error| {
        Failure::new(Code::ReadOnly, format!("cannot lock {}: {error}", path.display()))
    };
    // A restored store may lack the folders that the first writer creates.
    folder.create().map_err(|error| error.to_failure())?;
    let file = Folder::open(folder.run()).and_then(|run| run.file_or_create(BUILDER_LOCK));
    let file = file.map_err(refuse)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(refuse(error)),
    }
}

enum Problem {
    Store(StoreError),
    Segment(SegmentError),
    Files(std::io::Error),
    Stopped,
}

impl Problem {
    fn into_failure(self) -> Failure {
        match self {
            Problem::Store(error) => error.to_failure(),
            Problem::Segment(error) => {
                let code = match &error {
                    SegmentError::Io { source, .. } => code_of(source),
                    _ => Code::Failed,
                };
                Failure::new(code, error.to_string())
            }
            Problem::Files(error) => Failure::new(code_of(&error), error.to_string()),
            Problem::Stopped => Failure::new(Code::Interrupted, "the fold was called off"),
        }
    }
}

fn code_of(error: &std::io::Error) -> Code {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::DiskFull,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
        _ => Code::Failed,
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Files(error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SegmentError> for Problem {
    fn from(error: SegmentError) -> Self {
        Self::Segment(error)
    }
}

struct Fold<'a> {
    folder: StoreFolder,
    token: InWorker,
    job: &'a FoldJob,
    context: &'a Context<'a>,
}

impl Fold<'_> {
    fn run(&self) -> Result<FoldDone, Problem> {
        let mut reader = Truth::open_reader(&self.folder, self.token)?;
        let storage = Disk::new(self.folder.segments());
        remove_rubbish(&self.folder, &mut reader, &storage)?;
        let Some(plan) = self.build(&mut reader, &storage)? else {
            return Ok(FoldDone::default());
        };
        drop(reader);
        fault::point("fold.built", self.context);
        let done = FoldDone {
            generation: Some(plan.from_generation + 1),
            rows: plan.segments.iter().map(|segment| segment.rows).max().unwrap_or(0),
            bytes: plan.segments.iter().map(|segment| segment.bytes).sum(),
            busy: false,
        };
        let made: Vec<String> = plan.segments.iter().map(|segment| segment.file.clone()).collect();
        let outcome = self.swap(plan)?;
        fault::point("fold.swapped", self.context);
        let obsolete = if outcome.swapped { &outcome.obsolete_files } else { &made };
        for file in obsolete {
            remove(&storage, file)?;
        }
        Ok(if outcome.swapped { done } else { FoldDone::default() })
    }

    /// Builds what the next generation needs.
    fn build(&self, reader: &mut Reader, storage: &Disk) -> Result<Option<SwapPlan>, Problem> {
        let snapshot = reader.snapshot()?;
        let state = snapshot.collection(&self.job.collection)?;
        let at = snapshot.last_change()?;
        let Some(step) = Step::due(&snapshot, &state, self.job, at)? else {
            return Ok(None);
        };
        let number = state.generation_number() + 1;
        let segments = [
            self.vectors(&snapshot, &state, storage, step, number)?,
            self.texts(&snapshot, &state, storage, step, number)?,
        ];
        Ok(Some(SwapPlan {
            collection: state.id,
            from_generation: state.generation_number(),
            level: step.level(),
            complete_to: at,
            segments: segments.into_iter().flatten().collect(),
        }))
    }

    fn vectors(
        &self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        storage: &Disk,
        step: Step,
        number: u64,
    ) -> Result<Option<SegmentEntry>, Problem> {
        let Some(dimension) = state.dimension else { return Ok(None) };
        let name = step.file_name(state.id, number, "vec");
        let spec = VectorSpec { dimension, metric: state.metric };
        let mut builder = VectorBuilder::create(storage, &name, spec, self.token)?;
        let mut pushed = Pushed::new(self, "vectors", state.records);
        snapshot.for_each_vector(state.id, step.scope(), &mut |row, change, bytes| {
            pushed.note(builder.push_bytes(row, change, bytes))
        })?;
        pushed.end()?;
        let (published, rows) = builder.finish()?;
        fault::point("fold.vectors", self.context);
        Ok(Some(step.entry(Kind::Vector, published, rows)))
    }

    fn texts(
        &self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        storage: &Disk,
        step: Step,
        number: u64,
    ) -> Result<Option<SegmentEntry>, Problem> {
        let name = step.file_name(state.id, number, "txt");
        let scratch = self.folder.run();
        let analyzer = analyzer(state);
        let mut builder = TextBuilder::create(storage, &scratch, &name, analyzer, self.token)?;
        let mut pushed = Pushed::new(self, "texts", state.records);
        for_each_text(snapshot, state, step.scope(), &mut |row, change, fields| {
            pushed.note(builder.push(row, change, fields))
        })?;
        pushed.end()?;
        let (published, rows) = builder.finish()?;
        Ok(Some(step.entry(Kind::Text, published, rows)))
    }

    fn swap(&self, plan: SwapPlan) -> Result<SegmentsSwapped, Problem> {
        // A fold that died after its swap is tried again, with another plan, which needs
        // another key.
        let mut key = self.job.key;
        for (byte, other) in key.0.iter_mut().zip(plan.from_generation.to_le_bytes()) {
            *byte ^= other;
        }
        write(&self.folder, self.token, self.context, key, SwapSegments { plan })
    }
}

fn write<O: WriteOperation>(
    folder: &StoreFolder,
    token: InWorker,
    context: &Context<'_>,
    key: Key,
    operation: O,
) -> Result<O::Reply, Problem> {
    // A swap that is not on disk must not cost the files of the generation before.
    let options = WriterOptions { durability: isolith_store::Durability::Full, create: false };
    let mut writer = Truth::open_writer(folder, options, token)?;
    writer.set_deadline(Instant::now() + SWAP_PATIENCE.min(context.remaining()));
    Ok(writer.apply_one(key, operation)?.reply)
}

/// Removes files that a builder left when it died.
fn remove_rubbish(
    folder: &StoreFolder,
    reader: &mut Reader,
    storage: &Disk,
) -> Result<(), Problem> {
    remove_leftovers(storage, RUBBISH_AGE)?;
    remove_scratch(&folder.run(), is_segment)?;
    let listed = storage.list()?;
    let named = reader.snapshot()?.segment_files()?;
    let unnamed = |name: &str| is_segment(name) && !named.contains(name);
    for entry in listed.into_iter().filter(|entry| unnamed(&entry.name)) {
        let age = SystemTime::now().duration_since(entry.modified);
        if age.is_ok_and(|age| age > RUBBISH_AGE) {
            remove(storage, &entry.name)?;
        }
    }
    Ok(())
}

/// Counts what goes into a segment, and remembers why it stopped.
struct Pushed<'a> {
    context: &'a Context<'a>,
    what: &'static str,
    done: u64,
    total: u64,
    problem: Option<Problem>,
}

impl<'a> Pushed<'a> {
    fn new(fold: &'a Fold<'_>, what: &'static str, total: u64) -> Self {
        Self { context: fold.context, what, done: 0, total, problem: None }
    }

    fn note(&mut self, pushed: Result<(), SegmentError>) -> ControlFlow<()> {
        self.done += 1;
        if self.done.is_multiple_of(1024) {
            self.context.progress(self.done, Some(self.total), self.what);
        }
        match pushed {
            Err(error) => self.problem = Some(Problem::Segment(error)),
            Ok(()) if self.context.cancelled() => self.problem = Some(Problem::Stopped),
            Ok(()) => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(())
    }

    fn end(self) -> Result<(), Problem> {
        self.problem.map_or(Ok(()), Err)
    }
}

/// Which segment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Base,
    Delta { base_to: u64 },
}

impl Step {
    /// What is due, if anything is. Deciding costs no more than counting.
    fn due(
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        job: &FoldJob,
        at: u64,
    ) -> Result<Option<Self>, StoreError> {
        let Some(generation) = state.generation.as_ref().filter(|_| !job.rebuild) else {
            return Ok(Some(Self::Base));
        };
        let unusable = generation.segments.iter().any(|segment| segment.quarantined.is_some());
        let base_rows = generation.segments.iter().find(|segment| segment.level == Level::Base);
        let Some(base) = base_rows.filter(|_| !unusable) else { return Ok(Some(Self::Base)) };
        // Another process may have folded since this one was asked for.
        let little = !state.fold_due() && !job.even_little;
        if little || state.unfolded == 0 || generation.complete_to >= at {
            return Ok(None);
        }
        let changed = snapshot.tail(state.id, generation.base_to)?.len() as u64;
        let dead = snapshot.tombstones(state.id)?;
        let dead = dead.iter().filter(|(_, change)| *change <= generation.base_to).count() as u64;
        let rebase = changed.max(dead) * REBASE_PART > base.rows;
        Ok(Some(if rebase { Self::Base } else { Self::Delta { base_to: generation.base_to } }))
    }

    fn scope(self) -> Scope {
        match self {
            Step::Base => Scope::All,
            Step::Delta { base_to } => Scope::ChangedAfter(base_to),
        }
    }

    fn level(self) -> Level {
        match self {
            Step::Base => Level::Base,
            Step::Delta { .. } => Level::Delta,
        }
    }

    fn file_name(self, collection: u64, number: u64, extension: &str) -> String {
        // Chance makes each name new, so that a name never changes its content.
        let chance = fastrand::u32(..);
        format!("c{collection}-{number}-{}-{chance:08x}.{extension}", self.level().name())
    }

    fn entry(
        self,
        kind: Kind,
        published: isolith_segment::PublishedSegment,
        rows: u64,
    ) -> SegmentEntry {
        SegmentEntry {
            level: self.level(),
            kind,
            file: published.file,
            rows,
            bytes: published.bytes,
            checksum: published.checksum,
            quarantined: None,
        }
    }
}

/// Removes a segment. Names come from the truth, so only what is a segment's goes. Another
/// process may have been faster.
fn remove(storage: &Disk, file: &str) -> std::io::Result<()> {
    if !is_segment(file) {
        return Ok(());
    }
    match storage.remove(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
