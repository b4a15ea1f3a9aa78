use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_intake::{Batches, Cursor, IntakeError, Layout, OnError, Rules, validate};
use isolith_types::{Code, Failure, Metadata, Metric};
use serde::{Deserialize, Serialize};

use crate::fault;

/// Reads one file of ready records, and may read no other.
pub struct Intake {
    path: PathBuf,
    /// The second pass, open where the last batch ended.
    batches: Option<Batches<Arc<File>>>,
}

/// What the worker is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntakeSettings {
    /// The file.
    pub path: PathBuf,
}

/// The two passes over the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IntakeJob {
    /// Reads all of it, checks every row, keeps nothing.
    Validate {
        /// What tells this file, as it is now, from others: a file that kills workers is
        /// remembered by its job.
        input: String,
        /// The length of the vectors; the first one decides if it is not given.
        dimension: Option<u32>,
        /// How distances are measured.
        metric: Metric,
        /// Whether bad rows are left out, or refuse the file.
        skip_bad_rows: bool,
    },
    /// Reads the next rows.
    Batch {
        /// What the first pass found.
        layout: Box<Layout>,
        /// Where to go on.
        place: Place,
        /// At most so many rows.
        rows: u32,
        /// At most about so many bytes.
        bytes: u32,
    },
}

/// Where a batch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// After so many rows.
    AfterRows(u64),
    /// Where the batch before it ended.
    At(Cursor),
}

/// What the passes answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IntakeReply {
    /// The file is as it should be, or its bad rows may be skipped.
    Valid(Layout),
    /// Some rows.
    Batch {
        /// Their ids.
        ids: Vec<String>,
        /// Their texts.
        documents: Vec<Option<String>>,
        /// Their metadata.
        metadatas: Vec<Metadata>,
        /// Their vectors: f32, little-endian.
        vectors: Bulk,
        /// How many rows of the file this covers, skipped ones included.
        covered: u64,
        /// Where the next batch starts.
        next: Cursor,
    },
    /// There are no more rows.
    End,
}

impl Role for Intake {
    const NAME: &'static str = "intake";
    type Settings = IntakeSettings;
    type Request = IntakeJob;
    type Reply = Result<IntakeReply, Failure>;

    fn warm_up(settings: IntakeSettings, _token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { path: settings.path, batches: None })
    }

    fn handle(&mut self, job: IntakeJob, context: &Context<'_>) -> Self::Reply {
        match job {
            IntakeJob::Validate { dimension, metric, skip_bad_rows, .. } => {
                let on_error = if skip_bad_rows { OnError::Skip } else { OnError::Stop };
                self.validate(&Rules { dimension, metric, on_error }, context)
            }
            IntakeJob::Batch { layout, place, rows, bytes } => {
                fault::point("intake.batch", context);
                self.batch(*layout, place, rows, bytes)
            }
        }
    }

    fn kind(job: &IntakeJob) -> &'static str {
        match job {
            IntakeJob::Validate { .. } => "validate",
            IntakeJob::Batch { .. } => "batch",
        }
    }

    fn sandbox(settings: &IntakeSettings) -> Sandbox {
        Sandbox::read_only([settings.path.clone()])
    }
}

impl Intake {
    fn validate(&self, rules: &Rules, context: &Context<'_>) -> Result<IntakeReply, Failure> {
        fault::point("intake.validate", context);
        let file = self.open()?;
        let mut report = |done, total| {
            context.progress(done, Some(total), "checking");
            if context.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let layout = validate(&file, rules, &mut report).map_err(|error| self.fail(&error))?;
        Ok(IntakeReply::Valid(layout))
    }

    fn batch(
        &mut self,
        layout: Layout,
        place: Place,
        rows: u32,
        bytes: u32,
    ) -> Result<IntakeReply, Failure> {
        let mut batches = self.at(layout, place)?;
        let batch = batches.next(u64::from(rows), bytes as usize);
        let Some(batch) = batch.map_err(|error| self.fail(&error))? else {
            return Ok(IntakeReply::End);
        };
        self.batches = Some(batches);
        let vectors: Vec<u8> = batch.vectors.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(IntakeReply::Batch {
            ids: batch.ids,
            documents: batch.documents,
            metadatas: batch.metadatas,
            vectors: vectors.into(),
            covered: batch.rows_covered,
            next: batch.next,
        })
    }

    /// The second pass at a place: where it stands, or anew.
    fn at(&mut self, layout: Layout, place: Place) -> Result<Batches<Arc<File>>, Failure> {
        if let Some(batches) = self.batches.take_if(|batches| place == Place::At(batches.cursor()))
        {
            return Ok(batches);
        }
        let file = Arc::new(self.open()?);
        match place {
            Place::At(cursor) => Batches::open(file, layout, cursor),
            Place::AfterRows(rows) => Batches::open_after(file, layout, rows),
        }
        .map_err(|error| self.fail(&error))
    }

    fn open(&self) -> Result<File, Failure> {
        let refuse = |code, error: &dyn std::fmt::Display| {
            Failure::new(code, format!("{} cannot be read: {error}", self.path.display()))
        };
        // Opening a pipe would wait for somebody to write to it.
        let unblocked = rustix::fs::OFlags::NONBLOCK.bits();
        let mut options = File::options();
        options.read(true).custom_flags(unblocked.cast_signed());
        let file = options.open(&self.path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refuse(Code::NotFound, &error),
            _ => refuse(Code::BadInput, &error),
        })?;
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            Ok(_) => Err(refuse(Code::BadInput, &"it is not a regular file")),
            Err(error) => Err(refuse(Code::BadInput, &error)),
        }
    }

    fn fail(&self, error: &IntakeError) -> Failure {
        let message = format!("{}: {error}", self.path.display());
        Failure::new(error.code(), message).with_hint(error.hint())
    }
}
