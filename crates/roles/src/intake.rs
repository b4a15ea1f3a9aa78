use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_history::{History, Repository, last_changes};
use isolith_intake::records::{Batches, Cursor, IntakeError, Layout, OnError, Rules, validate};
use isolith_intake::transcript::{
    self, Problem, Transcript, TranscriptCursor, TranscriptError, TranscriptOptions,
};
use isolith_types::{Code, Failure, Hint, Metadata, Metric, NewDrawer};
use serde::{Deserialize, Serialize};

use isolith_fault as fault;

/// Reads one file of ready records or conversations, or the history of one repository,
/// and may read nothing else. The file comes as a descriptor with each job.
pub struct Intake {
    source: IntakeSettings,
    token: InWorker,
    /// The second pass, open where the last batch ended.
    batches: Option<Batches<Arc<File>>>,
    /// Conversations, open where the last batch ended, and how they are read.
    transcript: Option<(TranscriptOptions, Transcript<Arc<File>>)>,
}

/// What the worker is told: what it may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntakeSettings {
    /// A file of ready records, or of conversations, by the name that errors give it.
    File(PathBuf),
    /// A git repository: what git keeps, not the work tree.
    Repository(Repository),
}

/// The two passes over the file, or a look at the repository.
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
        /// At most this many rows.
        rows: u32,
        /// At most about this many bytes.
        bytes: u32,
    },
    /// Reads the next turns of conversations, or the next drawers.
    Turns {
        /// What tells this file, as it is now, from others.
        input: String,
        /// What it is read as, and where its drawers go.
        plan: Box<TranscriptOptions>,
        /// Where to go on; the beginning, if it is not given.
        place: Option<Box<TranscriptCursor>>,
        /// At most this many drawers and problems.
        rows: u32,
        /// At most about this many bytes.
        bytes: u32,
    },
    /// Tells who changed the files of the repository last.
    History {
        /// What tells this repository, as it is now, from others.
        input: String,
        /// The folder asked for, as [`Repository::below`] gives it.
        below: String,
        /// What was found after so long is the answer.
        budget: Duration,
    },
}

/// Where a batch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// After this many rows.
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
    /// Some turns.
    Turns(Turns),
    /// Who changed which file.
    History(History),
}

/// Some turns of conversations, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turns {
    /// As drawers; there may be none.
    pub drawers: Vec<NewDrawer>,
    /// Where each of them is in the file.
    pub rows: Vec<u64>,
    /// What cannot be used.
    pub problems: Vec<Problem>,
    /// How many parts are nothing that anybody said.
    pub skipped: u64,
    /// Where the next ones begin, or that there are none.
    pub next: TranscriptCursor,
    /// How many bytes the file has.
    pub size: u64,
}

impl Role for Intake {
    const NAME: &'static str = "intake";
    type Settings = IntakeSettings;
    type Request = IntakeJob;
    type Reply = Result<IntakeReply, Failure>;

    fn warm_up(settings: IntakeSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { source: settings, token, batches: None, transcript: None })
    }

    fn handle(&mut self, job: IntakeJob, context: &Context<'_>) -> Self::Reply {
        match job {
            IntakeJob::Validate { dimension, metric, skip_bad_rows, .. } => {
                let on_error = if skip_bad_rows { OnError::Skip } else { OnError::Stop };
                self.validate(&Rules { dimension, metric, on_error }, context)
            }
            IntakeJob::Batch { layout, place, rows, bytes } => {
                fault::point("intake.batch", context);
                self.batch(*layout, place, rows, bytes, context)
            }
            IntakeJob::Turns { plan, place, rows, bytes, .. } => {
                fault::point("intake.turns", context);
                let file = Arc::new(self.open(context)?);
                self.turns(file, *plan, place.map(|place| *place), rows, bytes)
            }
            IntakeJob::History { below, budget, .. } => {
                fault::point("intake.history", context);
                self.history(&below, budget, context)
            }
        }
    }

    fn kind(job: &IntakeJob) -> &'static str {
        match job {
            IntakeJob::Validate { .. } => "validate",
            IntakeJob::Batch { .. } => "batch",
            IntakeJob::Turns { .. } => "turns",
            IntakeJob::History { .. } => "history",
        }
    }

    fn sandbox(settings: &IntakeSettings) -> Sandbox {
        match settings {
            IntakeSettings::File(_) => Sandbox::sealed(),
            IntakeSettings::Repository(Repository { git_dir, common_dir, .. }) => {
                Sandbox::read_only([git_dir.clone(), common_dir.clone()])
            }
        }
    }
}

impl Intake {
    fn validate(&self, rules: &Rules, context: &Context<'_>) -> Result<IntakeReply, Failure> {
        fault::point("intake.validate", context);
        let file = self.open(context)?;
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
        context: &Context<'_>,
    ) -> Result<IntakeReply, Failure> {
        let mut batches = self.at(layout, place, context)?;
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

    fn turns(
        &mut self,
        file: Arc<File>,
        plan: TranscriptOptions,
        place: Option<TranscriptCursor>,
        rows: u32,
        bytes: u32,
    ) -> Result<IntakeReply, Failure> {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let open = self.transcript.take_if(|(used, transcript)| {
            Some(transcript.cursor()) == place.as_ref() && *used == plan
        });
        let fail = |error: TranscriptError| self.fail_with(error.code(), &error, error.hint());
        let mut transcript = match (open, place) {
            (Some((_, transcript)), _) => transcript,
            (None, Some(place)) => Transcript::resume(file, plan.clone(), place).map_err(fail)?,
            (None, None) => Transcript::open(file, plan.clone()).map_err(fail)?,
        };
        let batch = transcript.next(rows as usize, bytes as usize).map_err(fail)?;
        let batch = batch.unwrap_or_default();
        let next = transcript.cursor().clone();
        self.transcript = Some((plan, transcript));
        let transcript::Batch { drawers, rows, problems, skipped } = batch;
        Ok(IntakeReply::Turns(Turns { drawers, rows, problems, skipped, next, size }))
    }

    fn history(
        &self,
        below: &str,
        budget: Duration,
        context: &Context<'_>,
    ) -> Result<IntakeReply, Failure> {
        let IntakeSettings::Repository(repository) = &self.source else {
            return Err(other_source());
        };
        let cancelled = || context.cancelled();
        let history = last_changes(repository, below, budget, &cancelled, self.token);
        history.map(IntakeReply::History).map_err(|error| Failure::from(&error))
    }

    fn file(&self) -> Result<&Path, Failure> {
        match &self.source {
            IntakeSettings::File(path) => Ok(path),
            IntakeSettings::Repository(_) => Err(other_source()),
        }
    }

    /// The second pass at a place: where it stands, or anew.
    fn at(
        &mut self,
        layout: Layout,
        place: Place,
        context: &Context<'_>,
    ) -> Result<Batches<Arc<File>>, Failure> {
        if let Some(batches) = self.batches.take_if(|batches| place == Place::At(batches.cursor()))
        {
            return Ok(batches);
        }
        let file = Arc::new(self.open(context)?);
        match place {
            Place::At(cursor) => Batches::open(file, layout, cursor),
            Place::AfterRows(rows) => Batches::open_after(file, layout, rows),
        }
        .map_err(|error| self.fail(&error))
    }

    /// The file that the front opened for this job.
    fn open(&self, context: &Context<'_>) -> Result<File, Failure> {
        let path = self.file()?.display();
        let [file] = context.descriptors() else {
            return Err(Failure::new(Code::Failed, format!("{path} did not come with the job")));
        };
        let cloned = file.try_clone().map_err(|error| {
            Failure::new(Code::Failed, format!("{path} cannot be read: {error}"))
        })?;
        Ok(cloned.into())
    }

    fn fail(&self, error: &IntakeError) -> Failure {
        self.fail_with(error.code(), error, error.hint())
    }

    fn fail_with(&self, code: Code, error: &dyn std::fmt::Display, hint: Hint) -> Failure {
        match self.file() {
            Ok(path) => Failure::new(code, format!("{}: {error}", path.display())).with_hint(hint),
            Err(failure) => failure,
        }
    }
}

/// The worker may read something else than what the job is about.
fn other_source() -> Failure {
    Failure::new(Code::Failed, "this worker was started for another kind of source")
}
