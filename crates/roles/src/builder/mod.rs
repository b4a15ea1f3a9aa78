//! The role that builds segments.

mod graph;
mod segments;

use std::fs::File;
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime};

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_folder::Folder;
use isolith_protocol::{
    CollectionState, IndexKind, Key, Level, SegmentEntry, SegmentsSwapped, StoreError, SwapPlan,
    SwapSegments, WriteOperation,
};
use isolith_segment::storage::{Disk, Storage};
use isolith_segment::text::remove_scratch;
use isolith_segment::{PublishedSegment, SegmentError, remove_leftovers};
use isolith_store::names::is_segment;
use isolith_store::{BUILDER_LOCK, Reader, Scope, Snapshot, StoreFolder, Truth, WriterOptions};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::settings::{StoreSettings, pass_on_if_replaced, replaced_error, store_sandbox};
use graph::GraphBuild;
pub use graph::GraphJob;
use isolith_fault as fault;
use segments::NewSegments;

/// Builds segments. Only one process at a time builds in a store.
pub struct StoreBuilder {
    settings: StoreSettings,
    token: InWorker,
}

/// What to build.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum BuildJob {
    /// A new generation of a collection's segments.
    Fold(FoldJob),
    /// The graph segment.
    Graph(GraphJob),
}

/// Builds a new generation of a collection's segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FoldJob {
    /// The collection's name.
    pub collection: String,
    /// Fold even if little has changed.
    pub ignore_threshold: bool,
    /// Build a new base, even if nothing has changed.
    pub rebuild: bool,
    /// The idempotency key of the swap.
    pub key: Key,
}

/// The result of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOutcome {
    /// The new generation, or the change number of the graph segment; `None` if there was nothing
    /// to do or another process was faster.
    pub generation: Option<u64>,
    /// Number of rows or edges in the new segments.
    pub rows: u64,
    /// Size of the new segments in bytes.
    pub bytes: u64,
    /// Whether another process is building in this store.
    pub busy: bool,
}

/// The base is rebuilt when 1/10 of its rows are deleted, or the delta has grown to 1/10 of it.
const REBASE_FRACTION: u64 = 10;

/// Minimum age of segments that no generation refers to before they are removed. Younger ones may
/// belong to a build whose swap is still being committed.
const LEFTOVER_AGE: Duration = Duration::from_secs(60);

/// Maximum time that a swap waits for other writers.
const SWAP_PATIENCE: Duration = Duration::from_secs(60);

impl Role for StoreBuilder {
    const NAME: &'static str = "store-builder";
    type Settings = StoreSettings;
    type Request = BuildJob;
    type Reply = Result<BuildOutcome, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { settings, token })
    }

    fn handle(&mut self, job: BuildJob, context: &Context<'_>) -> Self::Reply {
        if pass_on_if_replaced(context) {
            return Err(replaced_error(&self.settings).to_failure());
        }
        let folder = self.settings.folder();
        let Some(_lock) = lock_builder(&folder)? else {
            return Ok(BuildOutcome { busy: true, ..BuildOutcome::default() });
        };
        fault::point("build", context);
        let token = self.token;
        let done = match &job {
            BuildJob::Fold(job) => Fold { folder, token, job, context }.run(),
            BuildJob::Graph(job) => GraphBuild { folder: &folder, token, job, context }.run(),
        };
        // The next build may be far away.
        isolate::give_back_memory();
        done.map_err(BuildError::into_failure)
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &[])
    }
}

/// Takes the builder lock, which the system releases when this process ends; `None` if another
/// process holds it.
fn lock_builder(folder: &StoreFolder) -> Result<Option<File>, Failure> {
    let path = folder.builder_lock();
    let refuse = |error: std::io::Error| {
        Failure::new(Code::ReadOnly, format!("cannot lock {}: {error}", path.display()))
    };
    // A store restored from a backup may lack the folders that the first writer creates.
    folder.create().map_err(|error| error.to_failure())?;
    let file = Folder::open(folder.run()).and_then(|run| run.file_or_create(BUILDER_LOCK));
    let file = file.map_err(refuse)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(refuse(error)),
    }
}

enum BuildError {
    Store(StoreError),
    Segment(SegmentError),
    Io(std::io::Error),
    Cancelled,
}

impl BuildError {
    fn into_failure(self) -> Failure {
        match self {
            BuildError::Store(error) => error.to_failure(),
            BuildError::Segment(error) => {
                let code = match &error {
                    SegmentError::Io { source, .. } => code_of(source),
                    _ => Code::Failed,
                };
                Failure::new(code, error.to_string())
            }
            BuildError::Io(error) => Failure::new(code_of(&error), error.to_string()),
            BuildError::Cancelled => Failure::new(Code::Interrupted, "the build was cancelled"),
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

impl From<std::io::Error> for BuildError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StoreError> for BuildError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SegmentError> for BuildError {
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
    fn run(&self) -> Result<BuildOutcome, BuildError> {
        let mut reader = Truth::open_reader(&self.folder, self.token)?.for_scans()?;
        let storage = Disk::new(self.folder.segments());
        remove_leftover_files(&self.folder, &mut reader, &storage)?;
        let Some(plan) = self.build(&mut reader, &storage)? else {
            return Ok(BuildOutcome::default());
        };
        drop(reader);
        fault::point("fold.built", self.context);
        let done = BuildOutcome {
            generation: Some(plan.from_generation + 1),
            rows: plan.segments.iter().map(|segment| segment.rows).max().unwrap_or(0),
            bytes: plan.segments.iter().map(|segment| segment.bytes).sum(),
            busy: false,
        };
        let built: Vec<String> = plan.segments.iter().map(|segment| segment.file.clone()).collect();
        let outcome = self.swap(plan)?;
        fault::point("fold.swapped", self.context);
        let obsolete = if outcome.swapped { &outcome.obsolete_files } else { &built };
        for file in obsolete {
            remove(&storage, file)?;
        }
        Ok(if outcome.swapped { done } else { BuildOutcome::default() })
    }

    /// Builds the segments of the next generation; `None` if no fold is due.
    fn build(&self, reader: &mut Reader, storage: &Disk) -> Result<Option<SwapPlan>, BuildError> {
        let snapshot = reader.snapshot()?;
        let state = snapshot.collection(&self.job.collection)?;
        let at = snapshot.last_change()?;
        let Some(step) = FoldStep::due(&snapshot, &state, self.job, at)? else {
            return Ok(None);
        };
        let segments = NewSegments { fold: self, state: &state, storage, step };
        Ok(Some(SwapPlan {
            collection: state.id,
            from_generation: state.generation_number(),
            level: step.level(),
            complete_to: at,
            segments: segments.build(&snapshot)?,
        }))
    }

    fn swap(&self, plan: SwapPlan) -> Result<SegmentsSwapped, BuildError> {
        // If a fold crashes after its swap, the retry swaps another generation, which needs
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
) -> Result<O::Reply, BuildError> {
    // The swap must be durable before files of the previous generation are deleted.
    let options = WriterOptions { durability: isolith_store::Durability::Full, create: false };
    let mut writer = Truth::open_writer(folder, options, token)?;
    writer.set_deadline(Instant::now() + SWAP_PATIENCE.min(context.remaining()));
    Ok(writer.apply_one(key, operation)?.reply)
}

/// Removes files left behind by crashed builders.
fn remove_leftover_files(
    folder: &StoreFolder,
    reader: &mut Reader,
    storage: &Disk,
) -> Result<(), BuildError> {
    remove_leftovers(storage, LEFTOVER_AGE)?;
    remove_scratch(&folder.run(), is_segment)?;
    let listed = storage.list()?;
    let referenced = reader.snapshot()?.segment_files()?;
    let unreferenced = |name: &str| is_segment(name) && !referenced.contains(name);
    for entry in listed.into_iter().filter(|entry| unreferenced(&entry.name)) {
        let age = SystemTime::now().duration_since(entry.modified);
        if age.is_ok_and(|age| age > LEFTOVER_AGE) {
            remove(storage, &entry.name)?;
        }
    }
    Ok(())
}

/// The level that a fold builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoldStep {
    Base,
    Delta { base_to: u64 },
}

impl FoldStep {
    /// Which level is due, if any.
    fn due(
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
        job: &FoldJob,
        at: u64,
    ) -> Result<Option<Self>, StoreError> {
        let Some(generation) = state.generation.as_ref().filter(|_| !job.rebuild) else {
            return Ok(Some(Self::Base));
        };
        let quarantined = generation.segments.iter().any(|segment| segment.quarantined.is_some());
        let unusable = quarantined || state.lacks_sources();
        let base_rows = generation.segments.iter().find(|segment| segment.level == Level::Base);
        let Some(base) = base_rows.filter(|_| !unusable) else { return Ok(Some(Self::Base)) };
        // Another process may have folded in the meantime.
        let below_threshold = !state.fold_due() && !job.ignore_threshold;
        if below_threshold || state.unfolded == 0 || generation.complete_to >= at {
            return Ok(None);
        }
        let changed = snapshot.tail(state.id, generation.base_to)?.len() as u64;
        let dead = snapshot.tombstones(state.id)?;
        let dead = dead.iter().filter(|(_, change)| *change <= generation.base_to).count() as u64;
        let rebase = changed.max(dead) * REBASE_FRACTION > base.rows;
        Ok(Some(if rebase { Self::Base } else { Self::Delta { base_to: generation.base_to } }))
    }

    fn scope(self) -> Scope {
        match self {
            FoldStep::Base => Scope::All,
            FoldStep::Delta { base_to } => Scope::ChangedAfter(base_to),
        }
    }

    fn level(self) -> Level {
        match self {
            FoldStep::Base => Level::Base,
            FoldStep::Delta { .. } => Level::Delta,
        }
    }

    fn file_name(self, collection: u64, number: u64, extension: &str) -> String {
        // Names are random, so that a name never refers to different content.
        let random = fastrand::u32(..);
        format!("c{collection}-{number}-{}-{random:08x}.{extension}", self.level().name())
    }

    fn entry(self, kind: IndexKind, published: PublishedSegment, rows: u64) -> SegmentEntry {
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

/// Removes a segment, if it still exists. Names come from the database, so other files are left
/// alone.
fn remove(storage: &Disk, file: &str) -> std::io::Result<()> {
    if !is_segment(file) {
        return Ok(());
    }
    match storage.remove(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
