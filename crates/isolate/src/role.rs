use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::linux::files::RuledFolder;
use crate::sandbox::Sandbox;
use crate::wire::Progress;
use crate::worker::Link;

/// What a worker process does: the code that may crash.
///
/// The type is made in the worker by [`Role::warm_up`] and lives there; requests
/// and replies are all that crosses. A reply is the role's own affair: make it a
/// `Result` if the job can fail without anything having died.
pub trait Role: Sized + 'static {
    /// The name of the role, in the process list, reports and metrics.
    const NAME: &'static str;

    /// What a worker is told at its start.
    type Settings: Serialize + DeserializeOwned + Send + Sync;
    /// What a job asks.
    type Request: Serialize + DeserializeOwned + Send;
    /// What it answers.
    type Reply: Serialize + DeserializeOwned + Send;

    /// Makes the worker ready for its first job.
    ///
    /// # Errors
    /// A [`Refusal`] says that a worker with these settings cannot start; callers
    /// get it as it is.
    fn warm_up(settings: Self::Settings, token: InWorker) -> Result<Self, Refusal>;

    /// Does one job.
    fn handle(&mut self, request: Self::Request, context: &Context<'_>) -> Self::Reply;

    /// What kind of job this is, for reports.
    fn kind(_request: &Self::Request) -> &'static str {
        Self::NAME
    }

    /// What a worker with these settings may touch.
    fn sandbox(_settings: &Self::Settings) -> Sandbox {
        Sandbox::open()
    }
}

/// Why a worker cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// A code for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with a code for programs and a sentence for people.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// What a job can ask while it runs.
#[derive(Debug)]
pub struct Context<'a> {
    /// None outside of workers.
    pub(crate) link: Option<&'a Link>,
    /// Of a [`Files::Folder`](crate::Files::Folder) sandbox.
    pub(crate) folder: Option<&'a RuledFolder>,
    pub(crate) passed_on: AtomicBool,
    pub(crate) cancelled_job: &'a AtomicU64,
    pub(crate) job: u64,
    pub(crate) attempt: u32,
    pub(crate) started: Instant,
    pub(crate) budget: Duration,
    pub(crate) descriptors: &'a [OwnedFd],
}

impl Context<'_> {
    /// How much time is left before this worker is killed.
    pub fn remaining(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    /// Whether the caller has gone away, so that the job may as well stop.
    pub fn cancelled(&self) -> bool {
        self.cancelled_job.load(Ordering::Relaxed) == self.job
    }

    /// What the caller opened for this job, in its order (see
    /// [`CallOptions::descriptors`](crate::CallOptions)). They are closed when the job ends;
    /// a role that goes on using one clones it.
    pub fn descriptors(&self) -> &[OwnedFd] {
        self.descriptors
    }

    /// 0 on the first try, then one more for each worker that died before.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the folder of this worker's [`Files::Folder`](crate::Files::Folder)
    /// sandbox is no longer the one at its path, so that the worker cannot reach what is
    /// there now. A new worker can: see [`Context::pass_on`].
    pub fn folder_replaced(&self) -> bool {
        self.folder.is_some_and(RuledFolder::is_replaced)
    }

    /// Has another worker do this job. What `handle` returns is dropped, the job starts
    /// again on another worker, and this one is stopped, which is not a death. Only for
    /// jobs that have had no effect yet. A job that is passed on more often than
    /// [`RetryPolicy::outside_kills`](crate::RetryPolicy::outside_kills) allows fails.
    pub fn pass_on(&self) {
        self.passed_on.store(true, Ordering::Relaxed);
    }

    /// Tells the caller how far the job is. Cheap to call often: only some calls
    /// a second are sent.
    pub fn progress(&self, done: u64, total: Option<u64>, note: impl Into<String>) {
        if let Some(link) = self.link {
            link.progress(self.job, || Progress { done, total, note: note.into() });
        }
    }

    /// Sends bytes ahead of the reply, to [`CallOptions::on_part`](crate::CallOptions::on_part):
    /// for replies of which nobody wants to hold all at once. It waits until the front has
    /// taken all but a little of them.
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
    /// For tests and benchmarks that call a role's code where they run: nobody hears of
    /// its progress, and nobody cancels it.
    pub fn in_process(budget: Duration) -> Self {
        static NONE: AtomicU64 = AtomicU64::new(0);
        let (job, started) = (1, Instant::now());
        Self {
            link: None,
            folder: None,
            passed_on: AtomicBool::new(false),
            cancelled_job: &NONE,
            job,
            attempt: 0,
            started,
            budget,
            descriptors: &[],
        }
    }
}
