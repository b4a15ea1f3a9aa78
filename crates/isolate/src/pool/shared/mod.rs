//! What a pool's callers, executors and timer share: the supervisor behind a lock, and the data
//! behind its IDs.

mod answers;
mod deaths;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::Instrument;

pub(super) use deaths::DeathRecord;

use super::executor::{self, Order};
use super::{Answer, CallOptions, Death, Hooks};
use crate::class::KillReason;
use crate::crash::CrashReport;
use crate::error::{CallError, StartError};
use crate::linux::process_memory::{OomKills, resident_bytes};
use crate::metrics::{Counter, Gauge};
use crate::role::Role;
use crate::sandbox::Confinement;
use crate::settings::PoolSettings;
use crate::snapshot::{DeathSnapshot, JobSnapshot, PoolSnapshot, WorkerSnapshot};
use crate::supervisor::{
    AwakeClock, BreakerState, JobId, JobTerms, Supervisor, SupervisorAction, SupervisorEvent,
    WorkerId,
};
use crate::wire::{Parcel, Progress};

/// While jobs run, the clock is checked this often, to notice when the front itself was
/// stopped; so is the workers' memory.
const HEARTBEAT: Duration = Duration::from_secs(1);

type Outcome<R> = Result<Answer<<R as Role>::Reply>, CallError>;

pub(super) struct Shared<R: Role> {
    pub(super) settings: PoolSettings,
    pub(super) hooks: Hooks,
    pub(super) build: String,
    /// The first message to every worker of this pool.
    hello: Mutex<Arc<Parcel>>,
    pub(super) timer: Arc<Notify>,
    pub(super) drained: watch::Sender<bool>,
    /// The runtime that the pool was created in. Calls may come from others.
    runtime: Handle,
    origin: Instant,
    state: Mutex<PoolState<R>>,
}

impl<R: Role> Drop for Shared<R> {
    fn drop(&mut self) {
        // Wakes the timer, which then sees that the pool is gone.
        self.timer.notify_one();
    }
}

struct PoolState<R: Role> {
    supervisor: Supervisor,
    clock: AwakeClock,
    /// When the timer will wake up, in monotonic time.
    planned: Option<Duration>,
    workers: HashMap<WorkerId, WorkerEntry>,
    jobs: HashMap<JobId, JobEntry<R>>,
    last_job: JobId,
    actions: Vec<SupervisorAction>,
    oom_kills: OomKills,
    last_death: Option<DeathSnapshot>,
    start_error: Option<StartError>,
    /// Complete reports, to be written after the lock is released.
    reports: Vec<CrashReport>,
    /// How many threads are writing reports.
    reporting: usize,
    drained: bool,
    /// Whether the pool's runtime is gone, so that nothing can run.
    runtime_gone: bool,
}

struct WorkerEntry {
    orders: mpsc::UnboundedSender<Order>,
    pid: Option<u32>,
    rss_bytes: Option<u64>,
    confinement: Option<Confinement>,
    /// The report of its death, until the supervisor has decided what to do.
    death: Option<CrashReport>,
}

struct JobEntry<R: Role> {
    parcel: Arc<Parcel>,
    kind: &'static str,
    options: CallOptions,
    answer: oneshot::Sender<Outcome<R>>,
    /// What the worker sent, until the supervisor accepts it.
    reply: Option<(WorkerId, FinishedJob<R::Reply>)>,
    /// Since when it has been waiting for its current or next worker.
    waiting_since: Instant,
    sent: Option<Instant>,
    attempt: u32,
    deaths: Vec<Death>,
}

/// How a worker finished its job.
pub(super) enum FinishedJob<T> {
    Reply(T, Duration),
    Unanswerable(String),
}

impl<R: Role> Shared<R> {
    /// The first message to a worker.
    pub(super) fn hello(&self) -> Arc<Parcel> {
        Arc::clone(&self.hello.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_hello(&self, hello: Parcel) {
        *self.hello.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(hello);
    }

    pub(super) fn new(
        settings: PoolSettings,
        hooks: Hooks,
        hello: Parcel,
        build: String,
        runtime: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(PoolState {
                supervisor: Supervisor::new(settings.clone()),
                clock: AwakeClock::default(),
                planned: None,
                workers: HashMap::new(),
                jobs: HashMap::new(),
                last_job: 0,
                actions: Vec::new(),
                oom_kills: OomKills::watch(),
                last_death: None,
                start_error: None,
                reports: Vec::new(),
                reporting: 0,
                drained: false,
                runtime_gone: false,
            }),
            settings,
            hooks,
            build,
            hello: Mutex::new(Arc::new(hello)),
            timer: Arc::new(Notify::new()),
            drained: watch::Sender::new(false),
            runtime,
            origin: Instant::now(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an event to the supervisor and performs its actions. Nothing here blocks, because
    /// orders and answers go through channels: so the lock is held throughout, and actions are
    /// performed in the order in which they were decided.
    pub(super) fn step(self: &Arc<Self>, event: SupervisorEvent) {
        let mut state = self.lock();
        self.step_locked(&mut state, event);
        self.release(state);
    }

    fn step_locked(self: &Arc<Self>, state: &mut PoolState<R>, event: SupervisorEvent) {
        let monotonic = self.origin.elapsed();
        let now = state.clock.at(monotonic, state.planned);
        state.planned = state.planned.filter(|&planned| planned > monotonic);
        let breaker_before = state.supervisor.breaker();
        let mut actions = std::mem::take(&mut state.actions);
        state.supervisor.step(now, event, &mut actions);
        for action in actions.drain(..) {
            self.perform(state, action);
        }
        state.actions = actions;

        let breaker = state.supervisor.breaker();
        if breaker != breaker_before {
            tracing::warn!(role = R::NAME, from = ?breaker_before, to = ?breaker, "breaker");
            self.hooks.metrics.set(Gauge::Breaker, R::NAME, f64::from(breaker_level(breaker)));
        }
        let heartbeat = state.supervisor.is_watching().then(|| monotonic + HEARTBEAT);
        let next = state.supervisor.next_wake(now).map(|at| state.clock.monotonic(at));
        let next = next.into_iter().chain(heartbeat).min();
        let sooner = match (next, state.planned) {
            (Some(next), Some(planned)) => next < planned,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if sooner {
            state.planned = next;
            self.timer.notify_one();
        }
    }

    /// Releases the lock, then writes the pending crash reports. The pool counts as drained
    /// only after that, because the program may exit then.
    fn release<'a>(&'a self, mut state: MutexGuard<'a, PoolState<R>>) {
        let reports = std::mem::take(&mut state.reports);
        if !reports.is_empty() {
            state.reporting += 1;
            drop(state);
            // A panic of the sink is caught; the panic hook has reported it.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| self.record(&reports)));
            state = self.lock();
            state.reporting -= 1;
        }
        let drained = state.drained && state.reporting == 0;
        drop(state);
        if drained {
            self.drained.send_replace(true);
        }
    }

    fn record(&self, reports: &[CrashReport]) {
        let Some(sink) = &self.hooks.crashes else {
            return;
        };
        for report in reports {
            if let Err(error) = sink.record(report) {
                self.hooks.metrics.add(Counter::ReportsLost, R::NAME, "", 1);
                tracing::warn!(role = R::NAME, %error, "cannot store the crash report");
            }
        }
    }

    /// When the timer must wake up next.
    pub(super) fn planned_wake(&self) -> Option<Instant> {
        self.lock().planned.and_then(|at| self.origin.checked_add(at))
    }

    /// Called when the timer wakes up.
    pub(super) fn tick(self: &Arc<Self>) {
        let mut state = self.lock();
        self.step_locked(&mut state, SupervisorEvent::Tick);
        let total = sample_memory(&mut state);
        state.oom_kills.sample();
        self.release(state);
        self.hooks.metrics.set(Gauge::WorkerBytes, R::NAME, total as f64);
    }

    pub(super) fn submit(
        self: &Arc<Self>,
        parcel: Parcel,
        kind: &'static str,
        options: CallOptions,
        terms: JobTerms,
    ) -> (JobId, oneshot::Receiver<Outcome<R>>) {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.last_job += 1;
        let job = state.last_job;
        let entry = JobEntry {
            parcel: Arc::new(parcel),
            kind,
            options,
            answer,
            reply: None,
            waiting_since: Instant::now(),
            sent: None,
            attempt: 0,
            deaths: Vec::new(),
        };
        if state.runtime_gone {
            let _ = entry.answer.send(Err(CallError::Draining { role: R::NAME }));
            return (job, receiver);
        }
        state.jobs.insert(job, entry);
        self.step_locked(&mut state, SupervisorEvent::Submit { job, terms });
        self.release(state);
        (job, receiver)
    }

    /// The pool's runtime is shutting down and its executors with it, so all calls fail.
    pub(super) fn runtime_stopped(&self) {
        let mut state = self.lock();
        state.runtime_gone = true;
        state.drained = true;
        for (_, entry) in state.jobs.drain() {
            let _ = entry.answer.send(Err(CallError::Draining { role: R::NAME }));
        }
        self.release(state);
    }

    pub(super) fn cancel(self: &Arc<Self>, job: JobId) {
        let mut state = self.lock();
        if state.jobs.remove(&job).is_some() {
            self.hooks.metrics.add(Counter::Jobs, R::NAME, "cancelled", 1);
            self.step_locked(&mut state, SupervisorEvent::Cancel { job });
        }
        self.release(state);
    }

    pub(super) fn spawned(self: &Arc<Self>, worker: WorkerId, pid: u32) {
        tracing::debug!(role = R::NAME, pid, "worker started");
        self.hooks.metrics.add(Counter::Spawns, R::NAME, "", 1);
        let mut state = self.lock();
        if let Some(entry) = state.workers.get_mut(&worker) {
            entry.pid = Some(pid);
        }
        self.step_locked(&mut state, SupervisorEvent::Spawned { worker });
        self.release(state);
    }

    pub(super) fn ready(
        self: &Arc<Self>,
        worker: WorkerId,
        rss_bytes: Option<u64>,
        confinement: Confinement,
    ) {
        let mut state = self.lock();
        state.start_error = None;
        if let Some(entry) = state.workers.get_mut(&worker) {
            entry.rss_bytes = rss_bytes;
            entry.confinement = Some(confinement);
            tracing::debug!(role = R::NAME, pid = entry.pid, "worker ready");
            if confinement.is_incomplete() {
                tracing::warn!(role = R::NAME, ?confinement, "sandbox not available");
            }
        }
        self.step_locked(&mut state, SupervisorEvent::Ready { worker });
        self.release(state);
    }

    pub(super) fn progressed(&self, job: JobId, progress: Progress) {
        let listener =
            self.lock().jobs.get(&job).and_then(|entry| entry.options.on_progress.clone());
        if let Some(listener) = listener {
            // A panic of the listener is caught; the panic hook has reported it.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| listener(progress)));
        }
    }

    pub(super) fn part(&self, job: JobId, part: Bytes) {
        let listener = self.lock().jobs.get(&job).and_then(|entry| {
            entry.options.on_part.clone().map(|listener| (entry.attempt, listener))
        });
        if let Some((attempt, listener)) = listener {
            // A panic of the listener is caught; the panic hook has reported it.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| listener(attempt, part)));
        }
    }

    pub(super) fn finished(
        self: &Arc<Self>,
        worker: WorkerId,
        job: JobId,
        finish: FinishedJob<R::Reply>,
    ) {
        let mut state = self.lock();
        if let Some(entry) = state.jobs.get_mut(&job) {
            entry.reply = Some((worker, finish));
        }
        tracing::trace!(role = R::NAME, worker, job, "worker idle");
        self.step_locked(&mut state, SupervisorEvent::Finished { worker });
        self.release(state);
    }

    pub(super) fn passed_on(self: &Arc<Self>, worker: WorkerId, job: JobId) {
        let mut state = self.lock();
        if let Some(entry) = state.jobs.get_mut(&job) {
            entry.waiting_since = Instant::now();
        }
        tracing::debug!(role = R::NAME, worker, job, "job passed on to another worker");
        self.step_locked(&mut state, SupervisorEvent::PassedOn { worker });
        self.release(state);
    }

    fn perform(self: &Arc<Self>, state: &mut PoolState<R>, action: SupervisorAction) {
        match action {
            SupervisorAction::Start { worker } => {
                let (orders, receiver) = mpsc::unbounded_channel();
                let entry = WorkerEntry {
                    orders,
                    pid: None,
                    rss_bytes: None,
                    confinement: None,
                    death: None,
                };
                state.workers.insert(worker, entry);
                let span = tracing::debug_span!("worker", role = R::NAME, number = worker);
                let executor = executor::execute(Arc::clone(self), worker, receiver);
                self.runtime.spawn(executor.instrument(span));
            }
            SupervisorAction::Run { worker, job, attempt, budget } => {
                if let Some(entry) = state.jobs.get_mut(&job) {
                    entry.sent = Some(Instant::now());
                    entry.attempt = attempt;
                    tracing::trace!(role = R::NAME, worker, job, attempt, "worker busy");
                    let order = Order::Run {
                        job,
                        parcel: Arc::clone(&entry.parcel),
                        descriptors: entry.options.descriptors.clone(),
                        attempt,
                        budget,
                    };
                    state.order(worker, order);
                }
            }
            SupervisorAction::Cancel { worker, job } => state.order(worker, Order::Cancel { job }),
            SupervisorAction::Stop { worker } => {
                tracing::debug!(role = R::NAME, worker, "worker told to stop");
                state.order(worker, Order::Stop);
            }
            SupervisorAction::Kill { worker, reason } => {
                if reason == KillReason::Deadline {
                    let pid = state.workers.get(&worker).and_then(|entry| entry.pid);
                    tracing::warn!(role = R::NAME, pid, "deadline passed");
                }
                state.order(worker, Order::Kill { reason });
            }
            SupervisorAction::Answer { job } => self.answer(state, job),
            SupervisorAction::Fail { job, why } => self.fail(state, job, why),
            SupervisorAction::Taken { worker, measure } => {
                let entry = state.workers.get_mut(&worker);
                if let Some(mut report) = entry.and_then(|entry| entry.death.take()) {
                    report.action = measure;
                    state.reports.push(report);
                }
            }
            SupervisorAction::Drained => state.drained = true,
        }
    }

    pub(super) fn snapshot(&self) -> PoolSnapshot {
        let mut state = self.lock();
        sample_memory(&mut state);
        let now = state.clock.convert(self.origin.elapsed());
        let workers = state
            .supervisor
            .views(now)
            .map(|(id, view)| {
                let entry = state.workers.get(&id);
                let kind = view.job.and_then(|job| state.jobs.get(&job)).map_or("", |job| job.kind);
                WorkerSnapshot {
                    pid: entry.and_then(|entry| entry.pid),
                    state: view.state,
                    age_ms: view.age.as_millis() as u64,
                    jobs_done: view.jobs_done,
                    job: view.job_age.map(|age| JobSnapshot {
                        kind: kind.to_owned(),
                        age_ms: age.as_millis() as u64,
                    }),
                    rss_bytes: entry.and_then(|entry| entry.rss_bytes),
                    confinement: entry.and_then(|entry| entry.confinement),
                }
            })
            .collect();
        PoolSnapshot {
            role: R::NAME.to_owned(),
            breaker: state.supervisor.breaker(),
            waiting: state.supervisor.waiting(),
            restarts: state.supervisor.restarts(),
            quarantined: self.hooks.quarantine.len(),
            last_death: state.last_death.clone(),
            workers,
        }
    }
}

impl<R: Role> PoolState<R> {
    fn order(&self, worker: WorkerId, order: Order) {
        if let Some(entry) = self.workers.get(&worker) {
            // An executor that is gone has reported its worker's end, or will.
            let _ = entry.orders.send(order);
        }
    }
}

/// Samples the memory of all workers; returns the sum.
fn sample_memory<R: Role>(state: &mut PoolState<R>) -> u64 {
    let entries = state.workers.values_mut();
    entries
        .filter_map(|entry| {
            entry.rss_bytes = resident_bytes(entry.pid?).or(entry.rss_bytes);
            entry.rss_bytes
        })
        .sum()
}

fn breaker_level(state: BreakerState) -> u8 {
    match state {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    }
}

pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}
