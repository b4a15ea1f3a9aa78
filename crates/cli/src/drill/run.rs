use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isolate::misbehave::Fault;
use isolate::{
    BreakerPolicy, CallError, CallOptions, CrashReport, CrashSink, DeathClass, Hooks, Measure,
    Pool, PoolSettings, RestartPolicy, Role, Signal, Signals, Supervised, run_until_signalled,
};
use isolith_types::{Code, Failure};
use tokio::task::JoinSet;

use super::ledger::{Ledger, monotonic_ns};
use super::report::{Report, Verdict};
use super::role::{Request, Saboteur, Settings};
use super::screen::Screen;
use super::{DrillPlan, orphans};

/// Deadline of jobs that hang. Others have the pool's deadline.
const HANG_DEADLINE: Duration = Duration::from_secs(1);

/// How long running jobs may take after Ctrl-C.
const DRAIN_BUDGET: Duration = Duration::from_secs(10);

/// Memory limit of a worker: small, so that it is exhausted quickly.
const MEMORY_CAP: u64 = 256 << 20;

/// Jobs at the same time: one pool for faults that end at once, another for faults that only a
/// deadline ends, so that fast jobs do not wait for slow ones.
const FAST_LANES: usize = 2;
const SLOW_LANES: usize = 4;

/// Runs all of the plan's faults.
pub(super) async fn run(
    plan: &DrillPlan,
    folder: &Path,
    screen: &Arc<Screen>,
) -> Result<Report, Failure> {
    let setup = |error: io::Error| Failure::new(Code::Failed, error.to_string());
    let mut signals = Signals::listen().map_err(setup)?;
    let deaths = Arc::new(Deaths::default());
    let drill = Arc::new(Drill {
        folder: folder.to_owned(),
        screen: Arc::clone(screen),
        deaths: Arc::clone(&deaths),
        verdicts: Mutex::default(),
        stopping: AtomicBool::new(false),
    });
    let fast = drill.pool(pool_settings(FAST_LANES, 2), None)?;
    let slow = drill.pool(pool_settings(SLOW_LANES, 1), None)?;
    let mut lanes = JoinSet::new();
    let requests = shuffled(plan);
    for (lane, pool, width) in [
        (Lane::Fast, Some(&fast), FAST_LANES),
        (Lane::Slow, Some(&slow), SLOW_LANES),
        (Lane::Start, None, 1),
    ] {
        let mine = requests.iter().filter(|request| Lane::of(request.fault) == lane);
        let todo: Todo = Arc::new(Mutex::new(mine.copied().collect()));
        for _ in 0..width {
            lanes.spawn(Arc::clone(&drill).work_through(Arc::clone(&todo), pool.cloned()));
        }
    }
    // Pools of faults at startup come and go without being drained; stop them with this one.
    let (watched, canary) = (Arc::clone(&drill), fast.clone());
    let watch = tokio::spawn(async move {
        canary.drained().await;
        watched.stopping.store(true, Ordering::Relaxed);
    });
    let work = async {
        while let Some(lane) = lanes.join_next().await {
            lane.map_err(|error| Failure::new(Code::Failed, error.to_string()))??;
        }
        Ok::<(), Failure>(())
    };
    let pools = || vec![Arc::new(fast.clone()) as _, Arc::new(slow.clone()) as _];
    match run_until_signalled(&mut signals, pools, DRAIN_BUDGET, work).await {
        Ok(done) => done?,
        Err(interrupted) => return Err(stopped(interrupted.signal)),
    }
    watch.abort();
    fast.drain(DRAIN_BUDGET).await;
    slow.drain(DRAIN_BUDGET).await;
    let verdicts = drill.verdicts();
    let orphans = orphans::count(Saboteur::NAME, &deaths.pids(&verdicts)).map_err(setup)?;
    Ok(Report::new(plan.seed, &verdicts, &deaths.measures(), orphans))
}

fn stopped(signal: Signal) -> Failure {
    let code = match signal {
        Signal::Interrupt => Code::Interrupted,
        Signal::Terminate => Code::Terminated,
    };
    Failure::new(code, "the drill was stopped; all its workers have ended")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Fast,
    Slow,
    Start,
}

impl Lane {
    fn of(fault: Fault) -> Self {
        if fault.is_at_start() {
            Lane::Start
        } else if fault.needs_deadline() || fault == Fault::ClosedSocket {
            Lane::Slow
        } else {
            Lane::Fast
        }
    }
}

/// Every kind of fault in turn, shuffled.
fn shuffled(plan: &DrillPlan) -> Vec<Request> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut requests: Vec<Request> = Fault::ALL
        .into_iter()
        .cycle()
        .zip(1..=u64::from(plan.count))
        .map(|(fault, token)| Request { token, fault, after_effect: random.bool() })
        .collect();
    random.shuffle(&mut requests);
    requests
}

/// No backoff or breaker: crashes are the purpose of a drill.
fn pool_settings(workers: usize, spares: usize) -> PoolSettings {
    PoolSettings {
        workers,
        spares,
        memory_cap: Some(MEMORY_CAP),
        restart: RestartPolicy { first_delay: Duration::ZERO, ..RestartPolicy::default() },
        breaker: BreakerPolicy { deaths: usize::MAX, ..BreakerPolicy::default() },
        ..PoolSettings::default()
    }
}

struct Drill {
    folder: PathBuf,
    screen: Arc<Screen>,
    deaths: Arc<Deaths>,
    verdicts: Mutex<Vec<Verdict>>,
    stopping: AtomicBool,
}

/// Remaining requests of one lane.
type Todo = Arc<Mutex<Vec<Request>>>;

impl Drill {
    fn verdicts(&self) -> MutexGuard<'_, Vec<Verdict>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pool(
        &self,
        settings: PoolSettings,
        at_start: Option<(u64, Fault)>,
    ) -> Result<Pool<Saboteur>, Failure> {
        let role = Settings { folder: self.folder.clone(), at_start };
        let hooks = Hooks { crashes: Some(self.deaths.clone()), ..Hooks::default() };
        Pool::start(&role, settings, hooks).map_err(|error| isolith_engine::of_call(&error))
    }

    /// Injects faults until `todo` is empty: into jobs of `pool`, or, without one, into the
    /// startup of workers, each with its own pool.
    async fn work_through(
        self: Arc<Self>,
        todo: Todo,
        pool: Option<Pool<Saboteur>>,
    ) -> Result<(), Failure> {
        let next = || todo.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(request) = next()
            && !self.stopping.load(Ordering::Relaxed)
        {
            match &pool {
                Some(pool) => self.judge(pool, request, None).await?,
                None => {
                    let before = self.deaths.start_failures();
                    let at_start = Some((request.token, request.fault));
                    let pool = self.pool(pool_settings(1, 0), at_start)?;
                    self.judge(&pool, request, Some(before)).await?;
                    pool.drain(DRAIN_BUDGET).await;
                }
            }
        }
        Ok(())
    }

    /// Runs one job and compares the supervisor's report with the ledger. For a fault at startup,
    /// `before` is the number of startup failures so far.
    async fn judge(
        &self,
        pool: &Pool<Saboteur>,
        request: Request,
        before: Option<usize>,
    ) -> Result<(), Failure> {
        let deadline = request.fault.needs_deadline().then_some(HANG_DEADLINE);
        let options = CallOptions { deadline, idempotent: true, ..CallOptions::default() };
        let answer = pool.call(&request, options).await;
        let answered_ns = monotonic_ns();
        if let Err(CallError::Draining { .. }) = answer {
            return Ok(());
        }
        let account = Ledger::of(&self.folder, request.token).read().map_err(|error| {
            Failure::new(Code::Failed, format!("cannot read a ledger: {error}"))
        })?;
        let deaths = match &answer {
            Ok(answer) => answer.deaths.as_slice(),
            Err(CallError::Died { deaths, .. } | CallError::Poisoned { deaths, .. }) => deaths,
            Err(_) => &[],
        };
        let mut classes: Vec<DeathClass> = deaths.iter().map(|death| death.class).collect();
        if let Some(before) = before {
            let more = self.deaths.start_failures() - before;
            classes.extend(std::iter::repeat_n(DeathClass::StartFailure, more));
        }
        let token = answer.as_ref().ok().and_then(|answer| answer.reply.as_ref().ok().copied());
        let verdict = Verdict {
            fault: request.fault,
            lost: token != Some(request.token) || account.effects == 0,
            duplicated: account.effects > 1 || account.tries > deaths.len() + 1,
            recovery: account
                .fault_ns
                .map(|fault_ns| Duration::from_nanos(answered_ns.saturating_sub(fault_ns))),
            pids: deaths.iter().map(|death| death.pid).collect(),
            classes,
        };
        self.screen.show(&verdict)?;
        self.verdicts().push(verdict);
        Ok(())
    }
}

/// All crashes, as reported by the pools.
#[derive(Debug, Default)]
struct Deaths(Mutex<Vec<CrashReport>>);

impl Deaths {
    fn reports(&self) -> MutexGuard<'_, Vec<CrashReport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_failures(&self) -> usize {
        let reports = self.reports();
        reports.iter().filter(|report| report.class == DeathClass::StartFailure).count()
    }

    fn measures(&self) -> HashMap<u32, Measure> {
        let reports = self.reports();
        reports.iter().filter_map(|report| Some((report.pid?, report.action))).collect()
    }

    fn pids(&self, verdicts: &[Verdict]) -> Vec<u32> {
        let reported = self.reports().iter().filter_map(|report| report.pid).collect::<Vec<_>>();
        let seen = verdicts.iter().flat_map(|verdict| verdict.pids.iter().copied());
        reported.into_iter().chain(seen).collect()
    }
}

impl CrashSink for Deaths {
    fn record(&self, report: &CrashReport) -> io::Result<()> {
        self.reports().push(report.clone());
        Ok(())
    }
}
