//! A pool of workers of one role, as callers see it.

mod executor;
mod output;
mod shared;

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tracing::Instrument;

use crate::class::{DeathClass, End};
use crate::crash::CrashSink;
use crate::error::CallError;
use crate::linux::process;
use crate::linux::socket::MAX_DESCRIPTORS;
use crate::metrics::{Metrics, Tally};
use crate::quarantine::{MemoryQuarantine, Quarantine};
use crate::role::Role;
use crate::settings::PoolSettings;
use crate::shutdown::Supervised;
use crate::snapshot::PoolSnapshot;
use crate::supervisor::{Event, JobId, Terms};
use crate::wire::{Hello, INLINE_LIMIT, Parcel, Progress, WireError};
use shared::Shared;

/// The longest hello: settings are plain data, and there is no area yet.
const HELLO_LIMIT: u64 = INLINE_LIMIT as u64;

/// Worker processes of one role. Clones are handles to the same pool; when the
/// last one is dropped, its workers are killed.
pub struct Pool<R: Role> {
    owner: Arc<Owner<R>>,
}

impl<R: Role> Clone for Pool<R> {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

impl<R: Role> fmt::Debug for Pool<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", R::NAME)
    }
}

/// Executors keep what is shared alive; this is dropped with the last caller.
struct Owner<R: Role> {
    shared: Arc<Shared<R>>,
}

impl<R: Role> Drop for Owner<R> {
    fn drop(&mut self) {
        self.shared.step(Event::Kill);
    }
}

/// Where a pool reports to.
#[derive(Clone)]
pub struct Hooks {
    /// Takes crash reports; without it there are none on disk.
    pub crashes: Option<Arc<dyn CrashSink>>,
    /// Remembers jobs that kill.
    pub quarantine: Arc<dyn Quarantine>,
    /// Takes measurements.
    pub metrics: Arc<dyn Metrics>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            crashes: None,
            quarantine: Arc::new(MemoryQuarantine::default()),
            metrics: Arc::new(Tally::default()),
        }
    }
}

/// How one call differs from what the pool's settings say.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// How long one try may run.
    pub deadline: Option<Duration>,
    /// How long to wait for a worker.
    pub patience: Option<Duration>,
    /// Whether the job may be tried again after it was killed at its deadline,
    /// when nobody knows how far it got.
    pub idempotent: bool,
    /// How many workers the job may kill before it is given up.
    pub strikes: Option<u32>,
    /// Called with the worker's progress, on a thread of the runtime: it must not
    /// block.
    pub on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Takes what the worker sends ahead of its reply, in order, on a thread of the runtime:
    /// be quick, as the worker waits. What comes with another attempt begins anew.
    pub on_part: Option<Arc<dyn Fn(u32, Bytes) + Send + Sync>>,
    /// Files and folders that the caller opened for the job, at most 4: the role gets them
    /// from [`Context::descriptors`](crate::Context::descriptors), on every try. They do not
    /// count as part of the input by which a job that kills is known again.
    pub descriptors: Vec<Arc<OwnedFd>>,
}

/// A reply, and how it came about.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// What the role answered.
    pub reply: T,
    /// The process that did it.
    pub worker_pid: u32,
    /// The workers that died of it before.
    pub deaths: Vec<Death>,
    /// How long it waited for the worker that answered.
    pub queued: Duration,
    /// How long it ran there.
    pub ran: Duration,
    /// The rest of the round trip.
    pub overhead: Duration,
}

/// A worker that died while it ran a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// What it died of.
    pub class: DeathClass,
    /// How it ended.
    pub end: End,
    /// Its process.
    pub pid: u32,
    /// How long the job had run.
    pub ran: Duration,
}

impl<R: Role> Pool<R> {
    /// Makes a pool and starts its spares. The pool lives in the tokio runtime that
    /// this is called in, which must have its time and input/output drivers enabled;
    /// calls may come from other runtimes.
    ///
    /// # Errors
    /// [`CallError::BadRequest`] if the role's settings cannot be encoded, or there
    /// is no runtime.
    pub fn start(
        role_settings: &R::Settings,
        settings: PoolSettings,
        hooks: Hooks,
    ) -> Result<Self, CallError> {
        process::keep_exit_statuses();
        let hello = hello::<R>(role_settings, &settings)?;
        let bad = |error: &dyn fmt::Display| CallError::BadRequest(error.to_string());
        let build = settings.build.clone().unwrap_or_else(|| build_of(&settings));
        let runtime = Handle::try_current().map_err(|error| bad(&error))?;
        let shared = Shared::new(settings, hooks, hello, build, runtime.clone());
        runtime.spawn(keep_time(Arc::downgrade(&shared), Arc::clone(&shared.timer)));
        shared.step(Event::Tick);
        Ok(Self { owner: Arc::new(Owner { shared }) })
    }

    /// Gives other settings to workers. Those that run finish their jobs and are replaced.
    ///
    /// # Errors
    /// [`CallError::BadRequest`] if the settings cannot be encoded.
    pub fn change_settings(&self, role_settings: &R::Settings) -> Result<(), CallError> {
        let shared = &self.owner.shared;
        shared.set_hello(hello::<R>(role_settings, &shared.settings)?);
        shared.step(Event::Renew);
        Ok(())
    }

    /// Has a worker do a job. Dropping the future cancels it: a job that waits is
    /// forgotten, one that runs is told so, and its answer is not waited for. If it goes
    /// on for longer than a worker may take to stop, its worker is killed.
    ///
    /// # Errors
    /// A [`CallError`]; the front lives on in any case.
    pub async fn call(
        &self,
        request: &R::Request,
        options: CallOptions,
    ) -> Result<Answer<R::Reply>, CallError> {
        let terms = self.terms(&options);
        self.call_on(request, options, terms).await
    }

    pub(crate) async fn call_on(
        &self,
        request: &R::Request,
        options: CallOptions,
        terms: Terms,
    ) -> Result<Answer<R::Reply>, CallError> {
        let shared = &self.owner.shared;
        let parcel = self.encode(request)?;
        if options.descriptors.len() > MAX_DESCRIPTORS {
            let message = format!("a job can have at most {MAX_DESCRIPTORS} descriptors");
            return Err(CallError::BadRequest(message));
        }
        if let Some(poison) = shared.poison(&parcel) {
            return Err(CallError::Quarantined { poison });
        }
        let kind = R::kind(request);
        let (job, answer) = shared.submit(parcel, kind, options, terms);
        let cancel = CancelOnDrop { shared, job };
        let span = tracing::debug_span!("call", role = R::NAME, kind, job);
        let outcome = answer.instrument(span).await;
        std::mem::forget(cancel);
        outcome.unwrap_or(Err(CallError::Draining { role: R::NAME }))
    }

    pub(crate) fn encode(&self, request: &R::Request) -> Result<Parcel, CallError> {
        let limit = self.owner.shared.settings.max_request_bytes;
        Parcel::encode(request, limit).map_err(|error| match error {
            WireError::TooLong { claimed, limit } => {
                CallError::RequestTooLarge { size: claimed, limit }
            }
            other => CallError::BadRequest(other.to_string()),
        })
    }

    /// Whether this request is known to kill workers.
    pub(crate) fn is_quarantined(&self, request: &R::Request) -> Option<CallError> {
        if self.owner.shared.hooks.quarantine.is_empty() {
            return None;
        }
        let parcel = self.encode(request).ok()?;
        let poison = self.owner.shared.poison(&parcel)?;
        Some(CallError::Quarantined { poison })
    }

    pub(crate) fn terms(&self, options: &CallOptions) -> Terms {
        let settings = &self.owner.shared.settings;
        Terms {
            deadline: options.deadline.unwrap_or(settings.job_deadline),
            patience: options.patience.unwrap_or(settings.queue_patience),
            idempotent: options.idempotent,
            strikes: options.strikes.unwrap_or(settings.retry.strikes).max(1),
            single: true,
            bisecting: false,
        }
    }

    /// What the pool looks like now.
    pub fn snapshot(&self) -> PoolSnapshot {
        self.owner.shared.snapshot()
    }

    /// Takes no more jobs, gives those that run up to `budget` to finish, stops all
    /// workers and returns when they are gone.
    pub async fn drain(&self, budget: Duration) {
        self.begin_drain(budget);
        self.drained().await;
    }
}

impl<R: Role> Supervised for Pool<R> {
    fn begin_drain(&self, budget: Duration) {
        self.owner.shared.step(Event::Drain { budget });
    }

    fn kill(&self) {
        self.owner.shared.step(Event::Kill);
    }

    fn drained(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut drained = self.owner.shared.drained.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`.
            let _ = drained.wait_for(|drained| *drained).await;
        })
    }

    fn snapshot(&self) -> PoolSnapshot {
        Pool::snapshot(self)
    }
}

/// Forgotten once there is an answer: it borrows, so nothing leaks.
struct CancelOnDrop<'a, R: Role> {
    shared: &'a Arc<Shared<R>>,
    job: JobId,
}

impl<R: Role> Drop for CancelOnDrop<'_, R> {
    fn drop(&mut self) {
        self.shared.cancel(self.job);
    }
}

/// Tells callers when the pool's runtime goes away under them.
struct Desertion<R: Role>(Weak<Shared<R>>);

impl<R: Role> Drop for Desertion<R> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.desert();
        }
    }
}

/// Wakes the supervisor when time has made something due.
async fn keep_time<R: Role>(shared: Weak<Shared<R>>, timer: Arc<Notify>) {
    let _desertion = Desertion(Weak::clone(&shared));
    loop {
        let Some(planned) = shared.upgrade().map(|shared| shared.planned_wake()) else {
            return;
        };
        match planned {
            None => timer.notified().await,
            Some(at) => tokio::select! {
                () = tokio::time::sleep_until(at.into()) => {
                    let Some(shared) = shared.upgrade() else { return };
                    shared.tick();
                }
                () = timer.notified() => {}
            },
        }
    }
}

/// What tells one build of the worker's program from another.
/// What a worker is told at its start.
fn hello<R: Role>(
    role_settings: &R::Settings,
    settings: &PoolSettings,
) -> Result<Parcel, CallError> {
    let bad = |error: &dyn fmt::Display| CallError::BadRequest(error.to_string());
    let hello = Hello {
        role: R::NAME.to_owned(),
        settings: postcard::to_allocvec(role_settings).map_err(|error| bad(&error))?,
        memory_cap: settings.memory_cap,
        max_reply_bytes: settings.max_reply_bytes,
        max_request_bytes: settings.max_request_bytes,
    };
    Parcel::encode(&hello, HELLO_LIMIT).map_err(|error| bad(&error))
}

fn build_of(settings: &PoolSettings) -> String {
    match std::fs::metadata(&settings.program) {
        Ok(file) => format!("{:x}-{:x}.{:x}", file.size(), file.mtime(), file.mtime_nsec()),
        Err(_) => String::from("unknown"),
    }
}
