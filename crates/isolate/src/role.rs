use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::linux::files::RuledFolder;
use crate::linux::limits;
use crate::sandbox::Sandbox;
use crate::wire::Progress;
use crate::worker::Link;

/// What a worker process does: the code that may crash.
///
/// The value is created in the worker by [`Role::warm_up`] and stays there; only requests and
/// replies cross the process boundary. If a job can fail without a crash, use a `Result` as the
/// reply.
pub trait Role: Sized + 'static {
    /// The role's name in the process list, reports and metrics.
    const NAME: &'static str;

    /// What a worker gets when it starts.
    type Settings: Serialize + DeserializeOwned + Send + Sync;
    /// The input of a job.
    type Request: Serialize + DeserializeOwned + Send;
    /// The output of a job.
    type Reply: Serialize + DeserializeOwned + Send;

    /// Prepares the worker for its first job.
    ///
    /// # Errors
    /// A [`Refusal`] means that a worker with these settings cannot start; callers receive it
    /// unchanged.
    fn warm_up(settings: Self::Settings, token: InWorker) -> Result<Self, Refusal>;

    /// Runs one job.
    fn handle(&mut self, request: Self::Request, context: &Context<'_>) -> Self::Reply;

    /// The kind of job, for reports.
    fn kind(_request: &Self::Request) -> &'static str {
        Self::NAME
    }

    /// What a worker with these settings may access.
    fn sandbox(_settings: &Self::Settings) -> Sandbox {
        Sandbox::open()
    }
}

/// Why a worker cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// An error code for programs.
    pub code: String,
    /// A message for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with an error code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// What a running job can ask and tell its front.
#[derive(Debug)]
pub struct Context<'a> {
    /// `None` outside of workers.
    pub(crate) link: Option<&'a Link>,
    /// Set for a [`Files::Folder`](crate::Files::Folder) sandbox.
    pub(crate) folder: Option<&'a RuledFolder>,
    pub(crate) passed_on: AtomicBool,
    pub(crate) cpu_limited: AtomicBool,
    pub(crate) cancelled_job: &'a AtomicU64,
    pub(crate) job: u64,
    pub(crate) attempt: u32,
    pub(crate) started: Instant,
    pub(crate) budget: Duration,
    pub(crate) descriptors: &'a [OwnedFd],
}

impl Context<'_> {
    /// The time left before this worker is killed.
    pub fn remaining(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    /// Whether the caller is gone, so that the job may stop.
    pub fn cancelled(&self) -> bool {
        self.cancelled_job.load(Ordering::Relaxed) == self.job
    }

    /// The descriptors that the caller opened for this job, in order (see
    /// [`CallOptions::descriptors`](crate::CallOptions)). They are closed when the job ends;
    /// clone one to keep it.
    pub fn descriptors(&self) -> &[OwnedFd] {
        self.descriptors
    }

    /// 0 for the first attempt, plus one for each worker that died before.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the folder of this worker's [`Files::Folder`](crate::Files::Folder) sandbox has
    /// been replaced, so that the worker cannot access what is at its path now. A new worker
    /// can: see [`Context::pass_on`].
    pub fn folder_replaced(&self) -> bool {
        self.folder.is_some_and(RuledFolder::is_replaced)
    }

    /// Passes the job to another worker: the reply is dropped, the job starts again elsewhere,
    /// and this worker is stopped, which is not a death. Only for jobs that have had no effect
    /// yet. A job that is passed on more often than
    /// [`RetryPolicy::outside_kills`](crate::RetryPolicy::outside_kills) allows fails.
    pub fn pass_on(&self) {
        self.passed_on.store(true, Ordering::Relaxed);
    }

    /// Ends this worker if the job uses more than this much further CPU time, to the second. That
    /// is a crash (SIGXCPU). Each call replaces the limit, and the end of the job lifts it.
    ///
    /// A deadline has to allow for a busy machine; this limit does not, so it finds a job that
    /// loops for ever sooner. It has no effect outside of workers.
    pub fn limit_cpu(&self, more: Duration) {
        // Without the limit, the deadline still holds.
        if self.link.is_some() && limits::limit_cpu(Some(more)).is_ok() {
            self.cpu_limited.store(true, Ordering::Relaxed);
        }
    }

    /// Reports progress to the caller. Cheap to call often: most calls are not sent.
    pub fn progress(&self, done: u64, total: Option<u64>, note: impl Into<String>) {
        if let Some(link) = self.link {
            link.progress(self.job, || Progress { done, total, note: note.into() });
        }
    }

    /// Sends bytes ahead of the reply, to
    /// [`CallOptions::on_part`](crate::CallOptions::on_part), for replies too large to hold in
    /// memory. Blocks until the front has read almost all of them.
    pub fn send_part(&self, bytes: &[u8]) {
        if let Some(link) = self.link {
            link.part(self.job, bytes);
        }
    }

    #[cfg(feature = "misbehave")]
    pub(crate) fn socket(&self) -> &std::os::fd::OwnedFd {
        self.link.expect("only jobs in workers misbehave").socket()
    }
}

#[cfg(feature = "in-process")]
impl Context<'static> {
    /// For tests and benchmarks that run a role's code in their own process: progress is
    /// dropped, and the job is never cancelled.
    pub fn in_process(budget: Duration) -> Self {
        static NONE: AtomicU64 = AtomicU64::new(0);
        let (job, started) = (1, Instant::now());
        Self {
            link: None,
            folder: None,
            passed_on: AtomicBool::new(false),
            cpu_limited: AtomicBool::new(false),
            cancelled_job: &NONE,
            job,
            attempt: 0,
            started,
            budget,
            descriptors: &[],
        }
    }
}
