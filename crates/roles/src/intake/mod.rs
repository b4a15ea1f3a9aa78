//! The role that reads files to import, and the history of git repositories.

mod operations;

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{DIMENSION, Model};
use isolith_history::{History, Repository, last_changes};
use isolith_intake::records::{
    Batches, IntakeError, Layout, OnError, Rules, VectorSource, validate_from,
};
use isolith_intake::transcript::{self, Transcript, TranscriptError, TranscriptOptions};
use isolith_protocol::Records;
use isolith_source::secrets::Secrets;
use isolith_types::{Code, Failure, Hint};
use serde::{Deserialize, Serialize};

use crate::operation::Perform;
use isolith_fault as fault;
pub use operations::{
    BatchStart, IntakeJob, IntakeReply, ReadHistory, ReadRecords, ReadTranscript, RecordBatch,
    TranscriptBatch, ValidateRecords, VectorsFrom,
};

/// Reads one file of records or conversations, or the history of one repository, and has access
/// to nothing else. Each job brings the file as a descriptor.
pub struct Intake {
    source: IntakeSettings,
    token: InWorker,
    /// The records, open where the last batch ended.
    batches: Option<Batches<Arc<File>>>,
    /// The conversations, open where the last batch ended.
    transcript: Option<(TranscriptOptions, Transcript<Arc<File>>)>,
    /// The rules for secrets, once they are needed.
    secrets: Option<Secrets>,
}

/// What the worker may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntakeSettings {
    /// A file of records or conversations. The path is only used in error messages.
    File(PathBuf),
    /// The folders of a git repository, without its work tree.
    Repository(Repository),
}

impl Role for Intake {
    const NAME: &'static str = "intake";
    type Settings = IntakeSettings;
    type Request = IntakeJob;
    type Reply = Result<IntakeReply, Failure>;

    fn warm_up(settings: IntakeSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { source: settings, token, batches: None, transcript: None, secrets: None })
    }

    fn handle(&mut self, job: IntakeJob, context: &Context<'_>) -> Self::Reply {
        fault::point(&format!("intake.{}", job.name()), context);
        job.perform(self, context)
    }

    fn kind(job: &IntakeJob) -> &'static str {
        job.name()
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

impl Perform<Intake> for ValidateRecords {
    fn name(&self) -> &'static str {
        "validate"
    }

    fn perform(self, intake: &mut Intake, context: &Context<'_>) -> Result<Layout, Failure> {
        let Self { dimension, metric, vectors, skip_bad_rows, .. } = self;
        let on_error = if skip_bad_rows { OnError::Skip } else { OnError::Stop };
        let file = intake.open(context)?;
        let mut report = |done, total| {
            context.progress(done, Some(total), "checking");
            if context.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let model = Model::embedded(intake.token);
        let can_embed = |document: &str| model.embed(document).is_some();
        let source = match vectors {
            VectorsFrom::Rows => VectorSource::Rows,
            VectorsFrom::Documents => VectorSource::Documents(&can_embed),
            VectorsFrom::AsFirstRow => VectorSource::AsFirstRow(&can_embed),
        };
        let rules = Rules { dimension, metric, on_error };
        let mut layout = validate_from(&file, &rules, source, &mut report)
            .map_err(|error| intake.fail(&error))?;
        if layout.embedded {
            layout.dimension = Some(DIMENSION as u32);
        }
        Ok(layout)
    }
}

impl Perform<Intake> for ReadRecords {
    fn name(&self) -> &'static str {
        "batch"
    }

    fn perform(
        self,
        intake: &mut Intake,
        context: &Context<'_>,
    ) -> Result<Option<RecordBatch>, Failure> {
        let Self { layout, start, rows, bytes } = self;
        let (dimension, embedded) = (layout.dimension.unwrap_or(0), layout.embedded);
        let mut batches = intake.batches_at(*layout, start, context)?;
        let batch = batches.next(u64::from(rows), bytes as usize);
        let Some(batch) = batch.map_err(|error| intake.fail(&error))? else { return Ok(None) };
        intake.batches = Some(batches);
        let vectors = match embedded {
            true => intake.embed(&batch.documents)?,
            false => batch.vectors.iter().flat_map(|value| value.to_le_bytes()).collect(),
        };
        let records = Records {
            ids: batch.ids,
            documents: batch.documents,
            metadatas: batch.metadatas,
            dimension,
            vectors: vectors.into(),
        };
        Ok(Some(RecordBatch { records, rows_covered: batch.rows_covered, next: batch.next }))
    }
}

impl Perform<Intake> for ReadTranscript {
    fn name(&self) -> &'static str {
        "turns"
    }

    fn perform(
        self,
        intake: &mut Intake,
        context: &Context<'_>,
    ) -> Result<TranscriptBatch, Failure> {
        let Self { options, cursor, rows, bytes, without_secrets, .. } = self;
        let file = Arc::new(intake.open(context)?);
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let open = intake.transcript.take_if(|(used, transcript)| {
            Some(transcript.cursor()) == cursor.as_deref() && *used == *options
        });
        let fail = |error: TranscriptError| intake.fail_with(error.code(), &error, error.hint());
        let mut transcript = match (open, cursor) {
            (Some((_, transcript)), _) => transcript,
            (None, Some(cursor)) => {
                Transcript::resume(file, (*options).clone(), *cursor).map_err(fail)?
            }
            (None, None) => Transcript::open(file, (*options).clone()).map_err(fail)?,
        };
        let batch = transcript.next(rows as usize, bytes as usize).map_err(fail)?;
        let next = transcript.cursor().clone();
        intake.transcript = Some((*options, transcript));
        let mut batch = batch.unwrap_or_default();
        if without_secrets {
            leave_out_secrets(intake.secrets.get_or_insert_with(Secrets::new), &mut batch);
        }
        let transcript::DrawerBatch { drawers, rows, problems, skipped } = batch;
        Ok(TranscriptBatch { drawers, rows, problems, skipped, next, size })
    }
}

/// Removes drawers with secrets; the problems do not repeat what was found.
fn leave_out_secrets(secrets: &Secrets, batch: &mut transcript::DrawerBatch) {
    let drawers = std::mem::take(&mut batch.drawers);
    let rows = std::mem::take(&mut batch.rows);
    for (drawer, row) in drawers.into_iter().zip(rows) {
        match secrets.find("", &drawer.text) {
            Some(finding) => {
                let reason = finding.problem(false);
                batch.problems.push(transcript::Problem { row, reason });
            }
            None => {
                batch.drawers.push(drawer);
                batch.rows.push(row);
            }
        }
    }
}

impl Perform<Intake> for ReadHistory {
    fn name(&self) -> &'static str {
        "history"
    }

    fn perform(self, intake: &mut Intake, context: &Context<'_>) -> Result<History, Failure> {
        let IntakeSettings::Repository(repository) = &intake.source else {
            return Err(wrong_source());
        };
        let cancelled = || context.cancelled();
        last_changes(repository, &self.below, self.budget, &cancelled, intake.token)
            .map_err(|error| Failure::from(&error))
    }
}

impl Intake {
    fn path(&self) -> Result<&Path, Failure> {
        match &self.source {
            IntakeSettings::File(path) => Ok(path),
            IntakeSettings::Repository(_) => Err(wrong_source()),
        }
    }

    /// Continues after the last batch if `start` is there; otherwise opens the file again.
    fn batches_at(
        &mut self,
        layout: Layout,
        start: BatchStart,
        context: &Context<'_>,
    ) -> Result<Batches<Arc<File>>, Failure> {
        let open = self.batches.take_if(|batches| start == BatchStart::At(batches.cursor()));
        if let Some(batches) = open {
            return Ok(batches);
        }
        let file = Arc::new(self.open(context)?);
        match start {
            BatchStart::At(cursor) => Batches::open(file, layout, cursor),
            BatchStart::AfterRows(rows) => Batches::open_after(file, layout, rows),
        }
        .map_err(|error| self.fail(&error))
    }

    /// The vectors of documents that the first pass found to have words.
    fn embed(&self, documents: &[Option<String>]) -> Result<Vec<u8>, Failure> {
        let model = Model::embedded(self.token);
        let mut vectors = Vec::with_capacity(documents.len() * DIMENSION * 4);
        for document in documents {
            let vector = document.as_deref().and_then(|text| model.embed(text));
            let vector = vector.ok_or_else(|| {
                let detail = "a document has no words any more".to_owned();
                self.fail(&IntakeError::Changed { detail })
            })?;
            vectors.extend(vector.into_iter().flat_map(f32::to_le_bytes));
        }
        Ok(vectors)
    }

    /// The file that came with the job.
    fn open(&self, context: &Context<'_>) -> Result<File, Failure> {
        let path = self.path()?.display();
        let fail = |problem: &dyn std::fmt::Display| {
            Failure::new(Code::Failed, format!("cannot read {path}: {problem}"))
        };
        let [file] = context.descriptors() else {
            return Err(fail(&"the job has no file descriptor"));
        };
        Ok(file.try_clone().map_err(|error| fail(&error))?.into())
    }

    fn fail(&self, error: &IntakeError) -> Failure {
        self.fail_with(error.code(), error, error.hint())
    }

    fn fail_with(&self, code: Code, error: &dyn std::fmt::Display, hint: Hint) -> Failure {
        match self.path() {
            Ok(path) => Failure::new(code, format!("{}: {error}", path.display())).with_hint(hint),
            Err(failure) => failure,
        }
    }
}

fn wrong_source() -> Failure {
    Failure::new(Code::Failed, "this worker was started for another kind of source")
}
