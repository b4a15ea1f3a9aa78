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
use crate::supervisor::{JobId, JobTerms, SupervisorEvent};
use crate::wire::{Hello, INLINE_LIMIT, Parcel, Progress, WireError};
use shared::Shared;

/// The maximum size of a hello: there is no shared area yet.
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

/// Executors keep the shared state alive; this is dropped with the last handle.
struct Owner<R: Role> {
    shared: Arc<Shared<R>>,
}

impl<R: Role> Drop for Owner<R> {
    fn drop(&mut self) {
        self.shared.step(SupervisorEvent::Kill);
    }
}

/// Where a pool reports to.
#[derive(Clone)]
pub struct Hooks {
    /// Receives crash reports; without it, none are written.
    pub crashes: Option<Arc<dyn CrashSink>>,
    /// Remembers jobs that kill workers.
    pub quarantine: Arc<dyn Quarantine>,
    /// Receives measurements.
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

/// Overrides the pool's settings for one call.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// How long one attempt may run.
    pub deadline: Option<Duration>,
    /// How long to wait for a worker.
    pub patience: Option<Duration>,
    /// Whether the job may be retried after it was killed at its deadline, when it may already
    /// have taken effect.
    pub idempotent: bool,
    /// How many workers the job may kill before it is given up.
    pub strikes: Option<u32>,
    /// Called with the worker's progress, on a thread of the runtime: it must not block.
    pub on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Called with the attempt and the bytes that the worker sends ahead of its reply, in
    /// order, on a thread of the runtime. It must be fast, as the worker waits. A new attempt
    /// starts from the beginning.
    pub on_part: Option<Arc<dyn Fn(u32, Bytes) + Send + Sync>>,
    /// Files and folders that the caller opened for the job, at most 4. The role gets them from
    /// [`Context::descriptors`](crate::Context::descriptors), on every attempt. They are not
    /// part of the input hash by which quarantined jobs are recognised.
    pub descriptors: Vec<Arc<OwnedFd>>,
}

/// A reply, with details of how it was obtained.
#[derive(Debug, Clone)]
pub struct Answer<T> {
    /// The role's reply.
    pub reply: T,
    /// The process ID of the worker that replied.
    pub worker_pid: u32,
    /// The workers that died of the job before.
    pub deaths: Vec<Death>,
    /// How long it waited for that worker.
    pub queued: Duration,
    /// How long it ran in that worker.
    pub ran: Duration,
    /// The rest of the round trip.
    pub overhead: Duration,
}

/// A worker that died while it ran a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// The class of the death.
    pub class: DeathClass,
    /// How the process ended.
    pub end: End,
    /// Its process ID.
    pub pid: u32,
    /// How long the job had been running.
    pub ran: Duration,
}

impl<R: Role> Pool<R> {
    /// Creates a pool and starts its spares. The pool lives in the current tokio runtime, whose
    /// time and I/O drivers must be enabled; calls may come from other runtimes.
    ///
    /// # Errors
    /// [`CallError::BadRequest`] if the role's settings cannot be encoded or there is no
    /// runtime.
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
        runtime.spawn(run_timer(Arc::downgrade(&shared), Arc::clone(&shared.timer)));
        shared.step(SupervisorEvent::Tick);
        Ok(Self { owner: Arc::new(Owner { shared }) })
    }

    /// Changes the settings of workers. Running workers finish their jobs and are replaced.
    ///
    /// # Errors
    /// [`CallError::BadRequest`] if the settings cannot be encoded.
    pub fn change_settings(&self, role_settings: &R::Settings) -> Result<(), CallError> {
        let shared = &self.owner.shared;
        shared.set_hello(hello::<R>(role_settings, &shared.settings)?);
        shared.step(SupervisorEvent::Renew);
        Ok(())
    }

    /// Runs a job. Dropping the future cancels it: a waiting job is removed, a running one is
    /// told to stop, and its worker is killed if it does not return within `stop_grace`.
    ///
    /// # Errors
    /// A [`CallError`]. No failure of a worker affects the front.
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
        terms: JobTerms,
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

    /// The error to return if this request is quarantined.
    pub(crate) fn is_quarantined(&self, request: &R::Request) -> Option<CallError> {
        if self.owner.shared.hooks.quarantine.is_empty() {
            return None;
        }
        let parcel = self.encode(request).ok()?;
        let poison = self.owner.shared.poison(&parcel)?;
        Some(CallError::Quarantined { poison })
    }

    pub(crate) fn terms(&self, options: &CallOptions) -> JobTerms {
        let settings = &self.owner.shared.settings;
        JobTerms {
            deadline: options.deadline.unwrap_or(settings.job_deadline),
            patience: options.patience.unwrap_or(settings.queue_patience),
            idempotent: options.idempotent,
            strikes: options.strikes.unwrap_or(settings.retry.strikes).max(1),
            single: true,
            bisecting: false,
        }
    }

    /// The pool's current state.
    pub fn snapshot(&self) -> PoolSnapshot {
        self.owner.shared.snapshot()
    }

    /// Accepts no more jobs, lets running ones finish within `budget`, stops all workers and
    /// returns when they are gone.
    pub async fn drain(&self, budget: Duration) {
        self.begin_drain(budget);
        self.drained().await;
    }
}

impl<R: Role> Supervised for Pool<R> {
    fn begin_drain(&self, budget: Duration) {
        self.owner.shared.step(SupervisorEvent::Drain { budget });
    }

    fn kill(&self) {
        self.owner.shared.step(SupervisorEvent::Kill);
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

/// Cancels the job when dropped; forgotten once there is an answer. It only borrows, so nothing
/// leaks.
struct CancelOnDrop<'a, R: Role> {
    shared: &'a Arc<Shared<R>>,
    job: JobId,
}

impl<R: Role> Drop for CancelOnDrop<'_, R> {
    fn drop(&mut self) {
        self.shared.cancel(self.job);
    }
}

/// Fails all calls when the pool's runtime shuts down.
struct RuntimeGuard<R: Role>(Weak<Shared<R>>);

impl<R: Role> Drop for RuntimeGuard<R> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.runtime_stopped();
        }
    }
}

/// Wakes the supervisor when something is due.
async fn run_timer<R: Role>(shared: Weak<Shared<R>>, timer: Arc<Notify>) {
    let _runtime_guard = RuntimeGuard(Weak::clone(&shared));
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

/// The first message to a worker.
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

/// Identifies the build of the worker's program.
fn build_of(settings: &PoolSettings) -> String {
    match std::fs::metadata(&settings.program) {
        Ok(file) => format!("{:x}-{:x}.{:x}", file.size(), file.mtime(), file.mtime_nsec()),
        Err(_) => String::from("unknown"),
    }
}
