//! Jobs: long operations that run on after the request that started them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolith_types::{Code, Failure, Moment, ShownFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::shown;
use crate::arguments::NoArguments;
use crate::progress::ProgressStep;
use crate::server::Server;
use crate::text::round;
use crate::tool::Call;

/// Maximum number of jobs that run at a time.
const MAX_RUNNING: usize = 8;

/// Maximum number of jobs that are kept. Beyond it, the oldest one that has ended is forgotten.
const MAX_KEPT: usize = 64;

/// The longest that a request waits for a job.
const MAX_WAIT_SECONDS: u32 = 60;

/// The jobs of a server.
#[derive(Clone, Default)]
pub(crate) struct Jobs(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    last: u64,
    jobs: BTreeMap<u64, Job>,
}

/// A job, running or not.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) id: String,
    operation: &'static str,
    started_at: Moment,
    steps: watch::Receiver<ProgressStep>,
    outcome: watch::Receiver<Option<Outcome>>,
    cancel: CancellationToken,
}

/// How a job ended.
#[derive(Clone)]
pub(super) enum Outcome {
    Succeeded(Arc<RawValue>),
    Failed(ShownFailure),
    Cancelled,
}

impl Jobs {
    /// Starts a job. `work` gets where it reports progress.
    ///
    /// # Errors
    /// `queue_full` if too many are running.
    pub(super) fn start<F>(
        &self,
        server: &Server,
        operation: &'static str,
        work: impl FnOnce(watch::Sender<ProgressStep>) -> F,
    ) -> Result<Job, Failure>
    where
        F: Future<Output = Result<Box<RawValue>, Failure>> + Send + 'static,
    {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let (steps, seen_steps) = watch::channel(ProgressStep::default());
        let (ended, outcome) = watch::channel(None);
        let cancel = CancellationToken::new();
        let mut table = self.table();
        let running = table.jobs.values().filter(|job| job.outcome.borrow().is_none()).count();
        if running >= MAX_RUNNING {
            let message = format!("{running} jobs are running already");
            return Err(Failure::new(Code::QueueFull, message)
                .with_hint("wait until one has ended, or cancel one with DELETE /v1/jobs/{id}"));
        }
        table.last += 1;
        let job = Job {
            // The time tells jobs of an earlier server apart.
            id: format!("{now:x}-{}", table.last),
            operation,
            started_at: Moment::instant(now),
            steps: seen_steps,
            outcome,
            cancel: cancel.clone(),
        };
        let number = table.last;
        table.jobs.insert(number, job.clone());
        table.forget_old();
        drop(table);
        let (guard, stopping, work) = (server.begin_call(), server.stopping(), work(steps));
        tokio::spawn(async move {
            let outcome = tokio::select! {
                biased;
                done = work => match done {
                    Ok(answer) => Outcome::Succeeded(answer.into()),
                    Err(failure) => Outcome::Failed(shown(failure)),
                },
                // Dropping the work cancels it.
                () = cancel.cancelled() => Outcome::Cancelled,
                () = stopping.cancelled() => Outcome::Cancelled,
            };
            ended.send_replace(Some(outcome));
            drop(guard);
        });
        Ok(job)
    }

    pub(super) fn find(&self, id: &str) -> Result<Job, Failure> {
        let table = self.table();
        let job = table.jobs.values().find(|job| job.id == id).cloned();
        job.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("there is no job {id:?}"))
                .with_hint("GET /v1/jobs lists the jobs since the server was started")
        })
    }

    fn remove(&self, id: &str) -> Result<Job, Failure> {
        let job = self.find(id)?;
        self.table().jobs.retain(|_, kept| kept.id != id);
        Ok(job)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_old(&mut self) {
        while self.jobs.len() > MAX_KEPT {
            let ended = self.jobs.iter().find(|(_, job)| job.outcome.borrow().is_some());
            // There are always some, as fewer may run than are kept.
            let Some(oldest) = ended.map(|(number, _)| *number) else { return };
            self.jobs.remove(&oldest);
        }
    }
}

impl Job {
    pub(super) fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    pub(super) fn steps(&self) -> watch::Receiver<ProgressStep> {
        self.steps.clone()
    }

    /// Waits until the job has ended.
    pub(super) async fn outcome(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Outcome::Cancelled),
            // The task has panicked.
            Err(_) => Outcome::Cancelled,
        }
    }

    /// What is known of the job now.
    pub(super) fn report(&self) -> JobReport {
        let (mut result, mut error) = (None, None);
        // A task that is gone without an outcome has panicked.
        let gone = self.outcome.has_changed().is_err();
        let state = match &*self.outcome.borrow() {
            None if gone => JobState::Cancelled,
            None => JobState::Running,
            Some(Outcome::Succeeded(answer)) => {
                result = Some((**answer).to_owned());
                JobState::Succeeded
            }
            Some(Outcome::Failed(failure)) => {
                error = Some(JobError::of(failure));
                JobState::Failed
            }
            Some(Outcome::Cancelled) => JobState::Cancelled,
        };
        let mut progress = JobProgress::of(&self.steps.borrow());
        if result.is_some() {
            progress.fraction = 1.0;
        }
        let (id, operation) = (self.id.clone(), self.operation.to_owned());
        let started_at = self.started_at.to_string();
        JobReport { id, operation, state, started_at, progress, result, error }
    }
}

/// A job.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Job")]
pub(super) struct JobReport {
    id: String,
    /// The name of the operation that it runs.
    operation: String,
    state: JobState,
    started_at: String,
    progress: JobProgress,
    /// The answer of the operation, once it has succeeded.
    #[schemars(with = "Option<serde_json::Value>")]
    result: Option<Box<RawValue>>,
    /// Why it failed.
    error: Option<JobError>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum JobState {
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

/// How far a job is.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobProgress {
    /// The stage that it is in; empty before the first one.
    stage: String,
    /// How much the stage has done.
    done: u64,
    /// Of how much; 0 if that is not known.
    total: u64,
    /// An estimate of the progress of all stages, from 0 to 1.
    fraction: f64,
    /// For people.
    message: String,
    /// What was done so far, if the operation shows each step; others have none.
    items: Vec<Value>,
}

impl JobProgress {
    pub(super) fn of(step: &ProgressStep) -> Self {
        let ProgressStep { stage, done, total, fraction, message, items } = step.clone();
        Self { stage: stage.to_owned(), done, total, fraction: round(fraction), message, items }
    }
}

/// Why a job failed, as in the answers of other endpoints.
#[derive(Serialize, JsonSchema)]
pub(super) struct JobError {
    code: String,
    message: String,
    hint: String,
}

impl JobError {
    pub(super) fn of(failure: &ShownFailure) -> Self {
        let code = serde_json::json!(failure.code).as_str().unwrap_or_default().to_owned();
        Self { code, message: failure.message.clone(), hint: failure.hint.clone() }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct JobList {
    /// The newest first.
    jobs: Vec<JobReport>,
}

pub(super) async fn list(call: Call, _: NoArguments) -> Result<JobList, Failure> {
    let table = call.server.jobs().table();
    Ok(JobList { jobs: table.jobs.values().rev().map(Job::report).collect() })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobToGet {
    id: String,
    /// How long to wait for its end, in seconds: 0 (the default) to 60.
    #[schemars(range(min = 0, max = 60))]
    wait: Option<u32>,
}

pub(super) async fn get(call: Call, JobToGet { id, wait }: JobToGet) -> Result<JobReport, Failure> {
    let job = call.server.jobs().find(&id)?;
    let wait = wait.unwrap_or(0);
    if wait > MAX_WAIT_SECONDS {
        let message = format!("wait must be from 0 to {MAX_WAIT_SECONDS} seconds");
        return Err(Failure::new(Code::BadInput, message));
    }
    // Either way the answer says what is known then.
    let _ = timeout(Duration::from_secs(wait.into()), job.outcome()).await;
    Ok(job.report())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JobId {
    id: String,
}

/// The job as it is when somebody begins to follow it.
pub(super) async fn get_to_follow(call: Call, JobId { id }: JobId) -> Result<JobReport, Failure> {
    call.server.jobs().find(&id).map(|job| job.report())
}

pub(super) async fn cancel(call: Call, JobId { id }: JobId) -> Result<JobReport, Failure> {
    let job = call.server.jobs().remove(&id)?;
    job.cancel.cancel();
    job.outcome().await;
    Ok(job.report())
}
