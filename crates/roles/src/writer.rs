use std::time::{Duration, Instant};

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::Model;
use isolith_fault as fault;
use isolith_protocol::{Done, Key, StoreError, Write, WriteReply};
use isolith_store::{Truth, Writer, WriterOptions};
use isolith_types::Failure;
use serde::{Deserialize, Serialize};

use crate::drawers;
use crate::settings::{StoreSettings, must_pass_on, passed_on, store_sandbox};

/// How long copying the log may take when the worker is told to stop.
const LEAVING: Duration = Duration::from_millis(500);

/// The one process of a front that writes to its store.
pub struct StoreWriter {
    settings: StoreSettings,
    token: InWorker,
    model: Model,
    /// Closed after the file was replaced; the next job opens what is there then, or is
    /// passed on if that is another folder.
    writer: Option<Writer>,
    has_written: bool,
}

/// Writes that become one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WriteJob {
    /// Each has its own result.
    pub writes: Vec<Write>,
    /// Keys whose answers the front has; they are forgotten.
    pub confirmed: Vec<Key>,
    /// Whether nothing is expected for a while: the log is copied into the file.
    pub rest: bool,
    /// How long it may take; without, most of what the job has.
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
        // If it cannot be opened, the first job says so, with a code.
        let _ = worker.open();
        Ok(worker)
    }

    fn handle(&mut self, mut job: WriteJob, context: &Context<'_>) -> Self::Reply {
        fault::point("write", context);
        // Before the transaction: nobody waits for the lock meanwhile.
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
    /// The front ends, or does without this worker: nothing is left in the log alone.
    fn drop(&mut self) {
        if let Some(writer) = self.writer.as_mut().filter(|_| self.has_written) {
            writer.set_deadline(Instant::now() + LEAVING);
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
        if self.writer.is_none() && must_pass_on(context) {
            return Err(passed_on(&self.settings));
        }
        let writer = self.open()?;
        // Answer before the front loses patience: a refusal is better than a kill.
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
        Ok(self.writer.as_mut().expect("it was opened above"))
    }
}
