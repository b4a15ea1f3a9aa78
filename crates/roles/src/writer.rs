use std::time::{Duration, Instant};

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::Model;
use isolith_fault as fault;
use isolith_protocol::{Done, Key, StoreError, Write, WriteReply};
use isolith_store::{Truth, Writer, WriterOptions};
use isolith_types::Failure;
use serde::{Deserialize, Serialize};

use crate::drawers;
use crate::settings::{StoreSettings, pass_on_if_replaced, replaced_error, store_sandbox};

/// Time limit for the checkpoint when the worker is told to stop.
const FINAL_CHECKPOINT: Duration = Duration::from_millis(500);

/// Writes to the store. Each front has only one.
pub struct StoreWriter {
    settings: StoreSettings,
    token: InWorker,
    model: Model,
    /// Closed when the file was replaced; the next job opens the new file, or is passed on if the
    /// folder was replaced.
    writer: Option<Writer>,
    has_written: bool,
}

/// Writes that are committed in one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteJob {
    /// The writes, each of which has its own result.
    pub writes: Vec<Write>,
    /// Keys of results that the front has received, whose receipts can be deleted.
    pub confirmed: Vec<Key>,
    /// Whether to checkpoint the write-ahead log, because no writes are expected for a while.
    pub rest: bool,
    /// Time limit; by default most of the job's deadline.
    pub time: Option<Duration>,
}

impl Role for StoreWriter {
    const NAME: &'static str = "store-writer";
    type Settings = StoreSettings;
    type Request = WriteJob;
    type Reply = Result<Vec<Result<Done<WriteReply>, Failure>>, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        let mut worker = Self {
            settings,
            token,
            model: Model::embedded(token),
            writer: None,
            has_written: false,
        };
        // If this fails, the first job reports it.
        let _ = worker.open();
        Ok(worker)
    }

    fn handle(&mut self, mut job: WriteJob, context: &Context<'_>) -> Self::Reply {
        fault::point("write", context);
        // Before the transaction, so that no other writer has to wait.
        for write in &mut job.writes {
            drawers::embed(&mut write.action, self.model);
        }
        let outcomes = self.apply(&job, context).map_err(|error| {
            if matches!(error, StoreError::Replaced { .. }) {
                self.writer = None;
            }
            error.to_failure()
        })?;
        fault::point("write.committed", context);
        if job.rest
            && let Some(writer) = &mut self.writer
        {
            writer.rest();
        }
        let outcomes = outcomes.into_iter();
        Ok(outcomes.map(|outcome| outcome.map_err(|error| error.to_failure())).collect())
    }

    fn kind(job: &WriteJob) -> &'static str {
        match job.writes.as_slice() {
            [write] => write.action.name(),
            _ => "group",
        }
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &[])
    }
}

impl Drop for StoreWriter {
    /// Checkpoints the write-ahead log when the worker is told to stop.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.as_mut().filter(|_| self.has_written) {
            writer.set_deadline(Instant::now() + FINAL_CHECKPOINT);
            writer.rest();
        }
    }
}

impl StoreWriter {
    fn apply(
        &mut self,
        job: &WriteJob,
        context: &Context<'_>,
    ) -> Result<Vec<Result<Done<WriteReply>, StoreError>>, StoreError> {
        if self.writer.is_none() && pass_on_if_replaced(context) {
            return Err(replaced_error(&self.settings));
        }
        let writer = self.open()?;
        // Leave time to reply with an error before the front kills the worker at its deadline.
        let remaining = context.remaining().mul_f32(0.9);
        let time = job.time.map_or(remaining, |time| remaining.min(time));
        writer.set_deadline(Instant::now() + time);
        let applied = writer.apply(&job.writes, &job.confirmed);
        self.has_written |= applied.is_ok();
        applied
    }

    fn open(&mut self) -> Result<&mut Writer, StoreError> {
        if self.writer.is_none() {
            let folder = self.settings.folder();
            let options = WriterOptions {
                durability: self.settings.durability,
                create: self.settings.create,
            };
            self.writer = Some(Truth::open_writer(&folder, options, self.token)?);
        }
        Ok(self.writer.as_mut().expect("opened above"))
    }
}
