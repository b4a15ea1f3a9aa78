//! Imports conversations and ready drawers from files into agent memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate::{CallError, CallOptions, Pool, Role, Supervised};
use isolith_protocol::MEMORY_COLLECTION;
use isolith_roles::{
    Intake, ReadTranscript, SkippedItems, TranscriptBatch, TranscriptCursor, TranscriptFormat,
    TranscriptOptions,
};
use isolith_types::{Code, Failure, Hint, NewDrawer, counted};
use serde::Serialize;
use tokio::sync::Notify;

use crate::failure::of_call;
use crate::ingest::{LET_OTHERS_IN, LISTED, Rejected, call_intake, no_progress};
use crate::open::Engine;
use crate::opened::OpenFile;
use crate::status::WatchedPool;

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The file.
    pub file: PathBuf,
    /// The file if it is open already; then it is not opened again.
    pub opened: Option<OpenFile>,
    /// How to read it, and where its drawers go.
    pub plan: TranscriptOptions,
    /// Whether to only read the file and write nothing.
    pub dry_run: bool,
    /// Give up after this long without progress.
    pub patience: Duration,
    /// Whether to leave out turns with secrets.
    pub without_secrets: bool,
    /// Where to continue, if an earlier import of the same file ended here.
    pub start: Option<Box<TranscriptCursor>>,
}

/// The result of an import. Only durable writes are counted as created.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportReceipt {
    /// The file.
    pub path: PathBuf,
    /// Its format, once detected.
    pub format: Option<&'static str>,
    /// Number of drawers read.
    pub drawers: u64,
    /// Number of new drawers.
    pub created: u64,
    /// Number of drawers that already existed.
    pub duplicates: u64,
    /// Number of items that are not turns: tool calls, hidden messages.
    pub skipped: u64,
    /// Their numbers by reason.
    pub skipped_by: SkippedItems,
    /// The first rejected items.
    pub rejected: Vec<Rejected>,
    /// Number of rejected items.
    pub rejected_count: u64,
    /// Workers that died and were replaced.
    pub retries: u64,
    /// Why it stopped.
    pub error: Option<Failure>,
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    /// Number of bytes processed.
    pub done: u64,
    /// Size of the file in bytes.
    pub total: u64,
    /// Number of drawers read so far.
    pub drawers: u64,
}

/// Receives progress.
pub type ImportWatcher = Arc<dyn Fn(ImportProgress) + Send + Sync>;

/// Is told up to where everything is durable.
pub type DurableListener = Arc<dyn Fn(&TranscriptCursor) + Send + Sync>;

/// Memory limit of the worker that reads the file, which holds a whole conversation and its
/// drawers.
const INTAKE_MEMORY: u64 = 400 << 20;

/// Target duration of a batch.
const BATCH_TIME: Duration = Duration::from_millis(50);
const BATCH_ROWS: std::ops::RangeInclusive<u32> = 32..=500;
const BATCH_BYTES: u32 = 2 << 20;

impl Engine {
    /// Imports a file. Existing drawers are left unchanged, so repeating the call completes an
    /// interrupted import, and changes nothing after a complete one.
    ///
    /// The receipt tells what was written, even if the import failed half-way.
    pub async fn import_memory(
        &self,
        options: &ImportOptions,
        watcher: ImportWatcher,
    ) -> ImportReceipt {
        self.import_and_mark(options, watcher, Arc::new(|_| {})).await
    }

    /// As [`Engine::import_memory`]. After each batch, `durable` is told up to where everything has
    /// been stored.
    pub async fn import_and_mark(
        &self,
        options: &ImportOptions,
        watcher: ImportWatcher,
        durable: DurableListener,
    ) -> ImportReceipt {
        let mut receipt = ImportReceipt::new(options.file.clone());
        let outcome = match Import::prepare(self, options, watcher, durable) {
            Ok(import) => import.run(&mut receipt).await,
            Err(failure) => Err(failure),
        };
        receipt.error = outcome.err();
        receipt
    }
}

/// An import in progress.
struct Import<'a> {
    engine: &'a Engine,
    options: &'a ImportOptions,
    file: OpenFile,
    intake: Pool<Intake>,
    _shown: WatchedPool,
    watcher: ImportWatcher,
    durable: DurableListener,
    /// Notified of any progress.
    alive: Notify,
}

impl<'a> Import<'a> {
    fn prepare(
        engine: &'a Engine,
        options: &'a ImportOptions,
        watcher: ImportWatcher,
        durable: DurableListener,
    ) -> Result<Self, Failure> {
        let file = match &options.opened {
            Some(file) => file.clone(),
            None => OpenFile::open(&options.file)?,
        };
        let (intake, shown) = engine.start_intake(&file, INTAKE_MEMORY)?;
        let alive = Notify::new();
        Ok(Self { engine, options, file, intake, _shown: shown, watcher, durable, alive })
    }

    async fn run(self, receipt: &mut ImportReceipt) -> Result<(), Failure> {
        let outcome = tokio::select! {
            outcome = self.load(receipt) => outcome,
            failure = no_progress(self.options.patience, &self.alive) => Err(failure),
        };
        self.intake.kill();
        if receipt.created > 0 {
            self.engine.fold_later(MEMORY_COLLECTION);
        }
        outcome?;
        let used = receipt.created + receipt.duplicates;
        let used = if self.options.dry_run { receipt.drawers } else { used };
        let is_all = self.options.start.is_none();
        if used > 0 || !is_all { Ok(()) } else { receipt.any_usable() }
    }

    async fn load(&self, receipt: &mut ImportReceipt) -> Result<(), Failure> {
        if !self.options.dry_run {
            self.engine.load_quarantine().await;
        }
        let mut rows = *BATCH_ROWS.start() * 4;
        let start = self.options.start.clone();
        let mut turns = self.read(start, rows, &mut receipt.retries).await?;
        loop {
            receipt.format = Some(TranscriptFormat::name(turns.next.format()));
            let TranscriptBatch { drawers, rows: of_drawers, problems, skipped, next, size } =
                turns;
            receipt.drawers += drawers.len() as u64;
            receipt.skipped_by += skipped;
            receipt.skipped = receipt.skipped_by.total();
            for problem in problems {
                receipt.reject(problem.row, problem.reason);
            }
            let (done, begun) = (next.offset(), Instant::now());
            let cursor = (!next.is_end()).then(|| Box::new(next.clone()));
            let more = cursor.is_some();
            let mut retries = 0;
            // Read the next turns while these are written.
            let (written, ahead) = tokio::join!(
                self.write(drawers, &of_drawers, receipt),
                self.read_on(cursor, rows, &mut retries)
            );
            written?;
            (self.durable)(&next);
            receipt.retries += retries;
            rows = next_size(rows, begun.elapsed());
            self.alive.notify_one();
            let drawers = receipt.drawers;
            (self.watcher)(ImportProgress { done, total: size, drawers });
            match ahead? {
                Some(ahead) if more => turns = ahead,
                _ => return Ok(()),
            }
            if !self.options.dry_run {
                tokio::time::sleep(LET_OTHERS_IN).await;
            }
        }
    }

    async fn write(
        &self,
        drawers: Vec<NewDrawer>,
        rows: &[u64],
        receipt: &mut ImportReceipt,
    ) -> Result<(), Failure> {
        if self.options.dry_run || drawers.is_empty() {
            return Ok(());
        }
        let loaded = self.engine.load_drawers(drawers, None).await?;
        for (outcome, row) in loaded.drawers.into_iter().zip(rows) {
            match outcome {
                Ok(added) if added.created => receipt.created += 1,
                Ok(_) => receipt.duplicates += 1,
                Err(reason) => receipt.reject(*row, reason),
            }
        }
        Ok(())
    }

    async fn read_on(
        &self,
        cursor: Option<Box<TranscriptCursor>>,
        rows: u32,
        retries: &mut u64,
    ) -> Result<Option<TranscriptBatch>, Failure> {
        match cursor {
            Some(cursor) => self.read(Some(cursor), rows, retries).await.map(Some),
            None => Ok(None),
        }
    }

    async fn read(
        &self,
        cursor: Option<Box<TranscriptCursor>>,
        rows: u32,
        retries: &mut u64,
    ) -> Result<TranscriptBatch, Failure> {
        let read = ReadTranscript {
            input: self.file.identity(),
            options: Box::new(self.options.plan.clone()),
            cursor,
            without_secrets: self.options.without_secrets,
            rows,
            bytes: BATCH_BYTES,
        };
        let descriptors = vec![self.file.descriptor()];
        let options = CallOptions { descriptors, ..CallOptions::default() };
        let answer = tokio::select! {
            answer = call_intake(&self.intake, read, options) => answer?,
            // The program is stopping: turns read now would not be written.
            () = self.engine.inner.writer.drained() => {
                return Err(of_call(&CallError::Draining { role: Intake::NAME }));
            }
        };
        *retries += answer.retries;
        answer.reply
    }
}

impl ImportReceipt {
    /// An empty receipt.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            format: None,
            drawers: 0,
            created: 0,
            duplicates: 0,
            skipped: 0,
            skipped_by: SkippedItems::default(),
            rejected: Vec::new(),
            rejected_count: 0,
            retries: 0,
            error: None,
        }
    }

    fn reject(&mut self, row: u64, reason: String) {
        self.rejected_count += 1;
        if self.rejected.len() < LISTED {
            self.rejected.push(Rejected { row, reason });
        }
    }

    /// Fails the import if the file has only unusable items.
    fn any_usable(&self) -> Result<(), Failure> {
        let Some(Rejected { row, reason }) = self.rejected.first() else { return Ok(()) };
        let message = format!(
            "{}: nothing can be used ({}); row {row}: {reason}",
            self.path.display(),
            counted(self.rejected_count, "problem")
        );
        Err(Failure::new(Code::BadInput, message).with_hint(Hint::NameFormat))
    }
}

/// The number of rows expected to take [`BATCH_TIME`].
fn next_size(rows: u32, took: Duration) -> u32 {
    let fitting = f64::from(rows) * BATCH_TIME.as_secs_f64() / took.as_secs_f64().max(1e-4);
    // At most doubled, because a single measurement is unreliable.
    (fitting as u32).min(rows * 2).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end())
}
