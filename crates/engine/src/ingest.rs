//! Ingest: loads a file of records into a collection, in two passes.

mod receipt;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate::{CallError, CallOptions, Pool, PoolSettings, Progress, Role, Supervised};
use isolith_embed::model_name;
use isolith_protocol::{
    AddCollection, CollectionState, GetLoadProgress, LoadProgress, LoadStep, PutMode, PutRecords,
    RecordsPut,
};
use isolith_roles::{
    BatchStart, Intake, IntakeSettings, Layout, Operation, ReadRecords, RecordBatch,
    ValidateRecords, VectorsFrom,
};
use isolith_types::{Code, CollectionSpec, DatabaseName, Failure, Hint, Metadata, Metric};
use tokio::sync::Notify;

use crate::databases::NO_SETTINGS;
use crate::failure::of_call;
use crate::open::{Engine, pool_settings};
use crate::opened::OpenFile;
use crate::search::is_built_in;
use crate::status::WatchedPool;
use crate::writes::Written;
pub(crate) use receipt::LISTED;
pub use receipt::{Receipt, Rejected};

/// What to ingest, and how.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The file.
    pub file: PathBuf,
    /// The file, if the caller has opened it to check access. Otherwise `file` is opened.
    pub opened: Option<OpenFile>,
    /// The collection's database, which must exist.
    pub database: DatabaseName,
    /// The collection; created if it does not exist.
    pub collection: String,
    /// The dimension of the vectors; by default that of the first one.
    pub dimension: Option<u32>,
    /// The metric that the collection must have.
    pub metric: Option<Metric>,
    /// The metric of a new collection if none is required.
    pub default_metric: Metric,
    /// The model that produced the vectors, if known. If it is the built-in one, rows may have
    /// vectors or documents to embed.
    pub model: Option<String>,
    /// What to store with a new collection.
    pub attached: Attached,
    /// What to do with existing ids.
    pub mode: PutMode,
    /// What to do with invalid rows.
    pub on_error: OnError,
    /// Give up after this long without progress.
    pub patience: Duration,
}

/// What clients store with a collection, in addition to its properties.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attached {
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// Its settings, a JSON object.
    pub settings: Option<String>,
}

/// What to do when a row is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Write nothing of the file.
    Stop,
    /// Skip the row and report it.
    Skip,
}

/// The progress of an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestProgress {
    /// The current pass.
    pub stage: IngestStage,
    /// Completed so far: bytes of the file in the first pass, rows in the second.
    pub done: u64,
    /// The total, in the same unit.
    pub total: u64,
}

/// The two passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestStage {
    /// Checking the whole file.
    Checking,
    /// Writing its rows.
    Writing,
}

/// Receives progress.
pub type IngestListener = Arc<dyn Fn(IngestProgress) + Send + Sync>;

/// Memory limit of the worker that reads the file, in bytes.
const INTAKE_MEMORY: u64 = 200 << 20;

/// A batch aims to hold the write lock for this long.
const BATCH_TIME: Duration = Duration::from_millis(50);
const BATCH_ROWS: std::ops::RangeInclusive<u32> = 32..=4_096;
const BATCH_BYTES: u32 = 6 << 20;

/// Pause between batches, longer than waiting writers sleep, so that none of them starves.
pub(crate) const LET_OTHERS_IN: Duration = Duration::from_millis(2);

impl Engine {
    /// Ingests a file. Repeating the call resumes an interrupted load, and changes nothing
    /// after a complete one.
    ///
    /// The receipt tells what was written, even if the load failed half-way.
    pub async fn ingest(&self, options: &IngestOptions, watcher: IngestListener) -> Receipt {
        let started = Instant::now();
        let mut receipt = Receipt::new(&options.collection);
        let outcome = match Load::prepare(self, options, watcher) {
            Ok(load) => load.run(&mut receipt).await,
            Err(failure) => Err(failure),
        };
        receipt.seconds = started.elapsed().as_secs_f64();
        receipt.success = outcome.is_ok();
        receipt.error = outcome.err();
        receipt
    }

    /// Starts a worker that may read this file and nothing else.
    pub(crate) fn start_intake(
        &self,
        file: &OpenFile,
        memory: u64,
    ) -> Result<(Pool<Intake>, WatchedPool), Failure> {
        let settings = PoolSettings {
            memory_cap: Some(memory),
            // The job ends for lack of progress, not because the file is long.
            job_deadline: Duration::from_secs(7 * 24 * 3600),
            ..pool_settings(&self.inner.options, 1)
        };
        let source = IntakeSettings::File(file.path().to_owned());
        let intake = Pool::start(&source, settings, self.inner.hooks.clone())
            .map_err(|error| of_call(&error))?;
        let shown = self.watch_pool(Arc::new(intake.clone()));
        Ok((intake, shown))
    }
}

/// The answer of an intake worker.
pub(crate) struct IntakeAnswer<T> {
    pub(crate) reply: Result<T, Failure>,
    pub(crate) worker_pid: u32,
    /// Number of workers that died of the job before.
    pub(crate) retries: u64,
}

/// Sends an operation to an intake worker.
pub(crate) async fn call_intake<O: Operation<Intake>>(
    intake: &Pool<Intake>,
    operation: O,
    options: CallOptions,
) -> Result<IntakeAnswer<O::Reply>, Failure> {
    let options = CallOptions { idempotent: true, ..options };
    let answer = intake.call(&operation.into(), options).await.map_err(|error| of_call(&error))?;
    let reply = O::reply_from(answer.reply);
    let (worker_pid, retries) = (answer.worker_pid, answer.deaths.len() as u64);
    Ok(IntakeAnswer { reply, worker_pid, retries })
}

/// Completes with a failure after `patience` without progress.
pub(crate) async fn no_progress(patience: Duration, alive: &Notify) -> Failure {
    while tokio::time::timeout(patience, alive.notified()).await.is_ok() {}
    let message = format!("no progress for {} s", patience.as_secs());
    Failure::new(Code::Timeout, message).with_hint(Hint::ContinueLoading)
}

/// An ingest in progress.
struct Load<'a> {
    engine: &'a Engine,
    options: &'a IngestOptions,
    file: OpenFile,
    intake: Pool<Intake>,
    _shown: WatchedPool,
    watcher: IngestListener,
    /// Notified of any progress.
    alive: Arc<Notify>,
}

impl<'a> Load<'a> {
    fn prepare(
        engine: &'a Engine,
        options: &'a IngestOptions,
        watcher: IngestListener,
    ) -> Result<Self, Failure> {
        let file = match &options.opened {
            Some(file) => file.clone(),
            None => OpenFile::open(&options.file)?,
        };
        let (intake, shown) = engine.start_intake(&file, INTAKE_MEMORY)?;
        Ok(Self { engine, options, file, intake, _shown: shown, watcher, alive: Arc::default() })
    }

    async fn run(self, receipt: &mut Receipt) -> Result<(), Failure> {
        let outcome = tokio::select! {
            outcome = self.load(receipt) => outcome,
            failure = no_progress(self.options.patience, &self.alive) => Err(failure),
        };
        self.intake.kill();
        outcome
    }

    async fn load(&self, receipt: &mut Receipt) -> Result<(), Failure> {
        self.engine.load_quarantine().await;
        let known = self.collection().await?;
        if let Some(state) = &known {
            receipt.count_before = state.records;
            receipt.count_after = state.records;
            self.check_collection(state)?;
        }
        let vectors = self.vectors_from(known.as_ref());
        let pass = ValidateRecords {
            input: self.file.identity(),
            dimension: known.as_ref().and_then(|it| it.dimension).or(self.options.dimension),
            metric: known.as_ref().map_or(self.new_metric(), |it| it.metric),
            vectors,
            skip_bad_rows: self.options.on_error == OnError::Skip,
        };
        let layout = self.validate(pass, receipt).await?;
        receipt.take_layout(&layout);
        if known.is_none() {
            self.create_collection(&layout).await?;
        }
        let state = match known {
            Some(state) => state,
            None => self.collection().await?.ok_or_else(|| self.gone())?,
        };
        self.check_model(&layout, &state)?;
        receipt.count_before = state.records;
        receipt.count_after = state.records;
        let source = self.source(&layout, state.id);
        let done = self.progress(&source).await?;
        self.write(&layout, &state.name, source, done, receipt).await
    }

    /// The collection, if it exists.
    async fn collection(&self) -> Result<Option<CollectionState>, Failure> {
        let IngestOptions { database, collection, .. } = self.options;
        match self.engine.collection_in(database, collection).await {
            Ok(state) => Ok(Some(state)),
            Err(failure) if matches!(failure.code, Code::NotFound | Code::NoStore) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn gone(&self) -> Failure {
        let message = format!("collection {:?} was deleted meanwhile", self.options.collection);
        Failure::new(Code::NotFound, message)
    }

    async fn validate(
        &self,
        pass: ValidateRecords,
        receipt: &mut Receipt,
    ) -> Result<Layout, Failure> {
        let (watcher, alive) = (Arc::clone(&self.watcher), Arc::clone(&self.alive));
        let on_progress = move |progress: Progress| {
            alive.notify_one();
            watcher(IngestProgress {
                stage: IngestStage::Checking,
                done: progress.done,
                total: progress.total.unwrap_or(0),
            });
        };
        let options = CallOptions {
            descriptors: vec![self.file.descriptor()],
            on_progress: Some(Arc::new(on_progress)),
            ..CallOptions::default()
        };
        let answer = tokio::select! {
            answer = call_intake(&self.intake, pass, options) => answer?,
            // The program is stopping, and nothing has been written yet.
            () = self.engine.inner.readers.drained() => {
                return Err(of_call(&CallError::Draining { role: Intake::NAME }));
            }
        };
        receipt.worker_pid = answer.worker_pid;
        receipt.retries += answer.retries;
        answer.reply
    }

    /// Checks that an existing collection has the requested metric and dimension.
    fn check_collection(&self, state: &CollectionState) -> Result<(), Failure> {
        let name = &self.options.collection;
        if let Some(metric) = self.options.metric.filter(|metric| *metric != state.metric) {
            let message = format!("collection {name:?} measures by {}, not {metric}", state.metric);
            return Err(Failure::new(Code::AlreadyExists, message).with_hint(Hint::LeaveOutMetric));
        }
        match (&self.options.model, &state.model) {
            (Some(given), Some(known)) if given != known => {
                let message = format!("collection {name:?} has vectors of {known}, not of {given}");
                Err(Failure::new(Code::ModelMismatch, message).with_hint(
                    "vectors of two models cannot be compared; choose another collection",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether rows may or must have vectors.
    fn vectors_from(&self, known: Option<&CollectionState>) -> VectorsFrom {
        let given = self.options.model.as_deref();
        match known {
            Some(state) if !is_built_in(state.model.as_deref()) => VectorsFrom::Rows,
            Some(_) if given.is_none() => VectorsFrom::Documents,
            // The caller says that vectors, if there are any, come from the built-in model.
            Some(_) => VectorsFrom::AsFirstRow,
            None if is_built_in(given) => VectorsFrom::AsFirstRow,
            None if given.is_some() || self.options.dimension.is_some() => VectorsFrom::Rows,
            None => VectorsFrom::AsFirstRow,
        }
    }

    /// Another process may have created the collection since the file was checked.
    fn check_model(&self, layout: &Layout, state: &CollectionState) -> Result<(), Failure> {
        let allowed = match self.vectors_from(Some(state)) {
            VectorsFrom::Rows => !layout.embedded,
            VectorsFrom::Documents => layout.embedded || layout.rows == 0,
            VectorsFrom::AsFirstRow => true,
        };
        match allowed {
            true => Ok(()),
            false => {
                let name = &self.options.collection;
                let message = format!("collection {name:?} was created meanwhile");
                Err(Failure::new(Code::ModelMismatch, message).with_hint("try again"))
            }
        }
    }

    /// The metric of the collection if it is created.
    fn new_metric(&self) -> Metric {
        self.options.metric.unwrap_or(self.options.default_metric)
    }

    async fn create_collection(&self, layout: &Layout) -> Result<(), Failure> {
        let model = match layout.embedded {
            true => Some(model_name().to_owned()),
            false => self.options.model.clone(),
        };
        let spec = CollectionSpec {
            name: self.options.collection.clone(),
            dimension: layout.dimension.or(self.options.dimension),
            metric: self.new_metric(),
            model,
        };
        let Attached { metadata, settings } = self.options.attached.clone();
        // Another process may create it at the same time.
        let new = AddCollection {
            database: self.options.database.clone(),
            spec,
            metadata,
            settings: settings.unwrap_or_else(|| NO_SETTINGS.to_owned()),
            get_or_create: true,
        };
        self.engine.ensure_collection(new).await.map(drop)
    }

    /// Identifies this load.
    fn source(&self, layout: &Layout, collection: u64) -> String {
        let hash: String = layout.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let IngestOptions { mode, on_error, .. } = self.options;
        let embedded = if layout.embedded { ":embedded" } else { "" };
        format!("{hash}:{collection}:{mode:?}:{on_error:?}{embedded}")
    }

    async fn progress(&self, source: &str) -> Result<LoadProgress, Failure> {
        let known = self.engine.ask(GetLoadProgress { source: source.to_owned() }).await?;
        // Repeating a finished load goes through all rows again.
        Ok(known.filter(|progress| !progress.finished).unwrap_or_default())
    }

    async fn write(
        &self,
        layout: &Layout,
        collection: &str,
        source: String,
        done: LoadProgress,
        receipt: &mut Receipt,
    ) -> Result<(), Failure> {
        receipt.resume(&done);
        let mut row = done.rows;
        let mut rows = *BATCH_ROWS.start() * 8;
        let mut ahead = self.batch(layout, BatchStart::AfterRows(row), rows, receipt).await?;
        while let Some(batch) = ahead {
            let next = BatchStart::At(batch.next);
            let covered = batch.rows_covered;
            let load = LoadStep {
                source: source.clone(),
                first_row: row,
                rows_covered: covered,
                rejected: covered - batch.records.ids.len() as u64,
                finished: row + covered >= layout.rows,
            };
            let put = PutRecords {
                collection: collection.to_owned(),
                records: batch.records,
                mode: self.options.mode,
                load: Some(load),
            };
            // The next rows are read while these are written.
            let mut read = Receipt::new("");
            let (written, next) = tokio::join!(
                self.engine.write(put, None),
                self.batch(layout, next, rows, &mut read)
            );
            let written = written?;
            receipt.retries += read.retries;
            receipt.add(&written, &mut rows_of_records(layout, row));
            row += covered;
            rows = next_size(rows, &written);
            self.alive.notify_one();
            (self.watcher)(IngestProgress {
                stage: IngestStage::Writing,
                done: row,
                total: layout.rows,
            });
            tokio::time::sleep(LET_OTHERS_IN).await;
            ahead = next?;
        }
        self.engine.fold_later(collection);
        Ok(())
    }

    async fn batch(
        &self,
        layout: &Layout,
        start: BatchStart,
        rows: u32,
        receipt: &mut Receipt,
    ) -> Result<Option<RecordBatch>, Failure> {
        let layout = Box::new(layout.clone());
        let read = ReadRecords { layout, start, rows, bytes: BATCH_BYTES };
        let descriptors = vec![self.file.descriptor()];
        let options = CallOptions { descriptors, ..CallOptions::default() };
        let answer = call_intake(&self.intake, read, options).await?;
        receipt.retries += answer.retries;
        answer.reply
    }
}

/// The row numbers of a batch's records in the file, from 1.
fn rows_of_records(layout: &Layout, before: u64) -> impl Iterator<Item = u64> {
    (before + 1..).filter(|row| !layout.is_rejected(*row))
}

/// The batch size whose write should hold the lock for about [`BATCH_TIME`].
fn next_size(rows: u32, written: &Written<RecordsPut>) -> u32 {
    let ran = written.ran.as_secs_f64().max(1e-4);
    let fitting = f64::from(rows) * BATCH_TIME.as_secs_f64() / ran;
    // At most doubled, because a single measurement is unreliable.
    (fitting as u32).min(rows * 2).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end())
}
