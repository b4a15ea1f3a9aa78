//! The role that performs all read operations.

mod answers;
mod graph;
mod verify;

use std::time::Instant;

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::Model;
use isolith_fault as fault;
use isolith_protocol::{ReadJob, ReadReply, RunCypher, StoreError};
use isolith_retrieve::{Segments, Tails};
use isolith_store::{Reader, Truth, WriterOptions};
use isolith_types::Failure;

use crate::settings::{StoreSettings, pass_on_if_replaced, replaced_error, store_sandbox};
use answers::Answerer;

/// Reads a store: records from the database, and candidates for searches from segments.
pub struct StoreReader {
    settings: StoreSettings,
    token: InWorker,
    reader: Option<Reader>,
    segments: Segments,
    tails: Tails,
    model: Model,
}

impl Role for StoreReader {
    const NAME: &'static str = "store-reader";
    type Settings = StoreSettings;
    type Request = ReadJob;
    type Reply = Result<ReadReply, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        fault::point_at_start("read.start");
        let segments = Segments::in_folder(&settings.folder, token);
        let (model, tails) = (Model::embedded(token), Tails::default());
        let mut worker = Self { settings, token, reader: None, segments, tails, model };
        // If this fails, the first job reports it.
        let _ = worker.open();
        Ok(worker)
    }

    fn handle(&mut self, job: ReadJob, context: &Context<'_>) -> Self::Reply {
        self.answer(&job, context).map_err(|error| error.to_failure())
    }

    fn kind(job: &ReadJob) -> &'static str {
        job.name()
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &[])
    }
}

impl StoreReader {
    fn open(&mut self) -> Result<(), StoreError> {
        if self.reader.is_none() {
            self.reader = Some(self.open_or_create()?);
        }
        Ok(())
    }

    /// Opens the store; creates it if it does not exist and the settings allow it.
    fn open_or_create(&self) -> Result<Reader, StoreError> {
        let StoreSettings { durability, create, .. } = &self.settings;
        let folder = self.settings.folder();
        let opened = Truth::open_reader(&folder, self.token);
        if *create && matches!(opened, Err(StoreError::Missing { .. })) {
            let options = WriterOptions { durability: *durability, create: true };
            drop(Truth::open_writer(&folder, options, self.token)?);
            return Truth::open_reader(&folder, self.token);
        }
        opened
    }

    fn answer(&mut self, job: &ReadJob, context: &Context<'_>) -> Result<ReadReply, StoreError> {
        if self.reader.is_none() && pass_on_if_replaced(context) {
            return Err(replaced_error(&self.settings));
        }
        self.open()?;
        let mut reply = match self.answer_once(job, context) {
            Err(error @ StoreError::Replaced { .. }) => {
                // The new store has other rows and numbers.
                self.reader = None;
                self.segments.clear();
                self.tails.clear();
                if pass_on_if_replaced(context) {
                    return Err(error);
                }
                self.open()?;
                self.answer_once(job, context)?
            }
            answered => answered?,
        };
        // A fold may have replaced a segment after its name was read. In that case the generation
        // has changed.
        while let Some(searched) = reply.searched()
            && searched.came_too_late()
        {
            let generation = searched.generation;
            let again = self.answer_once(job, context)?;
            let changed = again.searched().is_some_and(|it| it.generation != generation);
            reply = again;
            if !changed {
                break;
            }
        }
        Ok(reply)
    }

    fn answer_once(
        &mut self,
        job: &ReadJob,
        context: &Context<'_>,
    ) -> Result<ReadReply, StoreError> {
        let Self { settings, token, reader, segments, tails, model } = self;
        let reader = reader.as_mut().expect("the caller has opened it");
        let remaining = context.remaining().mul_f32(0.9);
        reader.set_deadline(match job {
            ReadJob::RunCypher(RunCypher { time, .. }) => Instant::now() + remaining.min(*time),
            _ => Instant::now() + remaining,
        });
        let snapshot = &reader.snapshot()?;
        fault::point("read", context);
        fault::point_of("read", Self::kind(job), context);
        let (model, token) = (*model, *token);
        job.answer_with(&mut Answerer {
            settings,
            token,
            snapshot,
            segments,
            tails,
            model,
            context,
        })
    }
}
