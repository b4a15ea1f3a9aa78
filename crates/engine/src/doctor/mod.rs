//! Checks a store and repairs it.

mod jobs;
mod log;
mod permissions;
mod repair;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate::{
    Answer, BreakerPolicy, CallError, CallOptions, CrashFolder, DeathClass, Hooks, Pool,
    PoolSettings, RetryPolicy, Supervised,
};
use isolith_roles::{
    Check, EnforceLimits, Finding, Health, Operation, Probe, Repair, RunCheck, StoreSettings,
    bytes_below, locks,
};
use isolith_store::{Durability, StoreFolder, write_lock_holder};
use isolith_types::{Code, Failure, counted};
use tokio::task::JoinSet;

use crate::failure::of_call;
use crate::open::{CRASH_REPORTS, Engine, EngineOptions};
use crate::status::{FrontReply, RunFolder};
use crate::trust::{IfMissing, StorePlace};
pub use jobs::QuarantinedJob;
pub use report::{CheckReport, DoctorReport};

/// Options of a doctor run.
#[derive(Debug, Clone, Default)]
pub struct DoctorOptions {
    /// Run the slow checks, too: compare indexes with their tables.
    pub full: bool,
    /// Repair what can be repaired.
    pub repair: bool,
    /// Change nothing; do not even remove expired data.
    pub only_look: bool,
    /// Deadline of a check; by default it depends on the size of the store.
    pub deadline: Option<Duration>,
    /// The program to start as workers; by default the running one.
    pub program: Option<PathBuf>,
}

/// Examines a store with a fresh worker for each check.
pub struct Doctor {
    folder: StoreFolder,
    options: DoctorOptions,
    probes: Pool<Probe>,
    /// `None` if the store must not be used.
    engine: Option<Engine>,
    on_check: Box<dyn Fn(&CheckReport) + Send + Sync>,
}

/// Minimum deadline of a check.
const MIN_DEADLINE: Duration = Duration::from_secs(60);

/// Assumed throughput of a slow disk.
const BYTES_PER_SECOND: u64 = 4 << 20;

/// A salvage may take this many times as long as a check.
const SALVAGE_FACTOR: u32 = 10;

impl Doctor {
    /// Prepares to check the store in `place`, whatever its state. Must be called within a
    /// tokio runtime. `on_check` is called after each check.
    ///
    /// # Errors
    /// `no_store` if there is none, `store_foreign` if it has no seal of this user,
    /// `store_refused` if git tracks it.
    pub fn open(
        place: &StorePlace,
        options: DoctorOptions,
        on_check: impl Fn(&CheckReport) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let engine_options =
            EngineOptions { program: options.program.clone(), ..EngineOptions::default() };
        let (folder, engine) = match place.admit(IfMissing::Refuse) {
            Ok(folder) => (folder, Engine::open(place, engine_options).ok()),
            Err(failure) if place.needs_seal() || refuses(&failure) => return Err(failure),
            // The checks will find any other problem.
            Err(_) => (StoreFolder::new(place.path()), None),
        };
        let crashes = engine.as_ref().and_then(|_| {
            let folder = CrashFolder::open(folder.crashes(), CRASH_REPORTS).ok()?;
            Some(Arc::new(folder) as _)
        });
        let settings = StoreSettings {
            folder: folder.path().to_owned(),
            truth: folder.truth_id().clone(),
            durability: Durability::Full,
            create: false,
        };
        let hooks = Hooks { crashes, ..Hooks::default() };
        let probes = Pool::start(&settings, probe_settings(&options), hooks)
            .map_err(|error| of_call(&error))?;
        Ok(Self { folder, options, probes, engine, on_check: Box::new(on_check) })
    }

    /// The pool of workers that check the store.
    pub(crate) fn probes(&self) -> &Pool<Probe> {
        &self.probes
    }

    /// The pools, to be drained on a signal.
    pub fn pools(&self) -> Vec<Arc<dyn Supervised>> {
        let mut pools: Vec<Arc<dyn Supervised>> = vec![Arc::new(self.probes.clone())];
        pools.extend(self.engine.iter().flat_map(Engine::pools));
        pools
    }

    /// Checks the store, and repairs it if requested. Removes expired data unless told to
    /// change nothing.
    pub async fn run(&self) -> DoctorReport {
        let mut repaired = match self.options.only_look {
            true => Vec::new(),
            false => self.enforce_limits().await,
        };
        let mut found = self.examine().await;
        let (mut error, mut lost) = (None, Vec::new());
        if self.options.repair {
            let before = repaired.len();
            error = self.repair(&found, &mut repaired, &mut lost).await.err();
            if repaired.len() > before {
                self.release_read_jobs().await;
                found = self.examine().await;
            }
        }
        let sound = found.iter().all(|examined| examined.report.status <= Health::Warn);
        // An idle engine need not be waited for.
        let stuck = write_lock_holder(&self.folder).is_some_and(|holder| holder.is_stopped());
        if let Some(engine) =
            self.engine.as_ref().filter(|_| sound && !stuck && !self.options.only_look)
        {
            match engine.remove_expired().await {
                0 => {}
                removed => repaired.push(format!("removed {}", counted(removed, "expired entry"))),
            }
            // A failure is reported by the command that needs the index.
            for folder in engine.removed_worktrees().await.unwrap_or_default() {
                repaired.push(format!("removed the index of the worktree {folder}, which is gone"));
            }
        }
        let checks = found.into_iter().map(|examined| examined.report).collect();
        DoctorReport::new(checks, repaired, lost, error)
    }

    /// Stops all workers.
    pub async fn close(&self) {
        self.probes.drain(Duration::ZERO).await;
        if let Some(engine) = &self.engine {
            engine.close().await;
        }
    }

    async fn examine(&self) -> Vec<CheckOutcome> {
        let bytes = bytes_below(self.folder.path());
        let mut all = Vec::new();
        for check in Check::ALL {
            let started = Instant::now();
            let finding = match check {
                // Only the front can reach the sockets of other fronts.
                Check::Locks => locks(&self.folder, std::process::id()),
                check => self.check(check, self.deadline(check, bytes)).await,
            };
            all.push(self.examined(check.name(), finding, started));
        }
        let started = Instant::now();
        let (finding, _) = self.check_fronts().await;
        all.push(self.examined("fronts", finding, started));
        all
    }

    async fn check(&self, check: Check, deadline: Duration) -> Finding {
        let check = RunCheck { check, full: self.options.full };
        let finding = self.probe(check, deadline).await;
        finding.unwrap_or_else(|failure| Finding::new(Health::Failed, failure.message))
    }

    fn examined(&self, name: &'static str, finding: Finding, started: Instant) -> CheckOutcome {
        let Finding { status, detail, repairs } = finding;
        let seconds = started.elapsed().as_secs_f64();
        let report = CheckReport { name, status, detail, seconds };
        (self.on_check)(&report);
        CheckOutcome { report, repairs }
    }

    async fn probe<O: Operation<Probe>>(
        &self,
        operation: O,
        deadline: Duration,
    ) -> Result<O::Reply, Failure> {
        let options = CallOptions { deadline: Some(deadline), ..CallOptions::default() };
        let answer = self.probes.call(&operation.into(), options).await;
        let Answer { reply, .. } = answer.map_err(|error| explain(&error, deadline))?;
        O::reply_from(reply)
    }

    fn deadline(&self, check: Check, bytes: u64) -> Duration {
        let more = if check.reads_everything() { bytes / BYTES_PER_SECOND } else { 0 };
        self.options.deadline.unwrap_or(MIN_DEADLINE + Duration::from_secs(more))
    }

    fn salvage_deadline(&self) -> Duration {
        let bytes = bytes_below(self.folder.path());
        SALVAGE_FACTOR * (MIN_DEADLINE + Duration::from_secs(bytes / BYTES_PER_SECOND))
    }

    async fn enforce_limits(&self) -> Vec<String> {
        if self.engine.is_none() {
            return Vec::new();
        }
        // If it fails, the check of expired data will report it.
        let mut done = self.probe(EnforceLimits, MIN_DEADLINE).await.unwrap_or_default();
        let (_, removed) = self.check_fronts().await;
        if removed > 0 {
            let sockets = counted(removed, "unused socket");
            done.push(format!("removed {sockets} of processes that are gone"));
        }
        done
    }

    /// Checks whether live fronts answer. Removes the sockets of dead ones and returns how
    /// many there were.
    async fn check_fronts(&self) -> (Finding, usize) {
        let Ok(folder) = RunFolder::open(&self.folder.run()) else {
            return (Finding::new(Health::Ok, "no process has the store open for long"), 0);
        };
        let folder = Arc::new(folder);
        let mut asking = JoinSet::new();
        for name in folder.sockets() {
            let folder = Arc::clone(&folder);
            asking.spawn(async move { (folder.ask(&name).await, name) });
        }
        let (mut answering, mut silent, mut dead) = (Vec::new(), Vec::new(), 0);
        for (asked, name) in asking.join_all().await {
            match asked {
                FrontReply::Answered(front) => answering.push(front.pid.to_string()),
                FrontReply::Silent => silent.push(name),
                FrontReply::Dead => dead += 1,
            }
        }
        let finding = if !silent.is_empty() {
            let names = silent.join(", ");
            let processes = counted(silent.len(), "process");
            Finding::new(Health::Warn, format!("no answer from {processes}: {names}"))
        } else if answering.is_empty() {
            Finding::new(Health::Ok, "no process has the store open for long")
        } else {
            Finding::new(Health::Ok, format!("open in {}", answering.join(", ")))
        };
        (finding, dead)
    }
}

/// A check's report and the repairs that it suggests.
struct CheckOutcome {
    report: CheckReport,
    repairs: Vec<Repair>,
}

/// Whether a store must not even be checked.
fn refuses(failure: &Failure) -> bool {
    matches!(failure.code, Code::NoStore | Code::StoreForeign | Code::StoreRefused)
}

fn probe_settings(options: &DoctorOptions) -> PoolSettings {
    let mut settings = PoolSettings {
        workers: 1,
        recycle_after: Some(1),
        job_deadline: MIN_DEADLINE,
        retry: RetryPolicy { strikes: 1, ..RetryPolicy::default() },
        // A check that crashes must not stop the others.
        breaker: BreakerPolicy { deaths: usize::MAX, ..BreakerPolicy::default() },
        environment: isolith_roles::environment(),
        ..PoolSettings::default()
    };
    if let Some(program) = &options.program {
        settings.program.clone_from(program);
    }
    settings
}

/// Describes why a check's worker did not answer.
fn explain(error: &CallError, deadline: Duration) -> Failure {
    match error {
        CallError::Died { class: DeathClass::Timeout, .. } => Failure::new(
            Code::Timeout,
            format!("did not finish within {:.0} s (timeout)", deadline.as_secs_f64()),
        ),
        CallError::Died { class, deaths, .. } | CallError::Poisoned { class, deaths, .. } => {
            let end = deaths.last().map_or(String::new(), |death| format!(", {}", death.end));
            let failure = of_call(error);
            Failure { message: format!("its worker died ({class}{end})"), ..failure }
        }
        error => of_call(error),
    }
}
