//! The role that answers everything that only reads.

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

use crate::settings::{StoreSettings, must_pass_on, passed_on, store_sandbox};
use answers::Answerer;

/// A process that reads a store: records from the truth, hits with the help of
/// segments.
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
        // If it cannot be opened, the first job says so, with a code.
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
            self.reader = Some(self.open_or_make()?);
        }
        Ok(())
    }

    /// A store that is made where there is none has nothing in it to be read, which is no
    /// error.
    fn open_or_make(&self) -> Result<Reader, StoreError> {
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
        if self.reader.is_none() && must_pass_on(context) {
            return Err(passed_on(&self.settings));
        }
        self.open()?;
        let mut reply = match self.answer_once(job, context) {
            Err(error @ StoreError::Replaced { .. }) => {
                // Another store is there now, with its own rows and numbers.
                self.reader = None;
                self.segments.clear();
                self.tails.clear();
                if must_pass_on(context) {
                    return Err(error);
                }
                self.open()?;
                self.answer_once(job, context)?
            }
            answered => answered?,
        };
        // A fold may have replaced a segment between reading its name and opening it.
        // Then the generation is another one now.
        while let Some(searched) = reply.searched()
            && searched.came_too_late()
        {
            let generation = searched.generation;
            let again = self.answer_once(job, context)?;
            let moved_on = again.searched().is_some_and(|it| it.generation != generation);
            reply = again;
            if !moved_on {
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
