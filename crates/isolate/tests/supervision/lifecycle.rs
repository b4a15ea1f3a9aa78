//! Starting, stopping and replacing workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use isolate::{
    CallError, CallOptions, Counter, CrashFolder, CrashReport, CrashSink, DeathClass, Hooks,
    Measure, Pool, PoolSettings, Tally, WorkerState,
};
use libtest_mimic::Trial;

use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("life::a_worker_is_replaced_after_its_last_job", recycle),
        trial("life::idle_workers_stop_and_are_started_again", idle_stop),
        trial("life::dropping_the_pool_kills_its_workers", drop_pool),
        trial("life::a_drain_lets_running_jobs_finish", drain),
        trial("life::a_drain_kills_when_its_budget_is_spent", drain_budget),
        trial("life::a_worker_that_does_not_stop_is_killed", stubborn),
        trial("life::workers_inherit_no_descriptors", descriptors),
        trial("life::workers_limit_themselves", limits),
        trial("life::crash_reports_are_complete", crash_reports),
        trial("life::a_drain_waits_until_reports_are_written", slow_reports),
        trial("life::snapshots_and_metrics_show_what_happens", snapshots),
        Trial::test("life::a_pool_stays_in_the_runtime_it_was_created_in", || {
            other_runtimes();
            Ok(())
        }),
        trial("life::two_workers_run_at_the_same_time", two_at_once),
    ]
}

async fn recycle() {
    let pool = pool(PoolSettings { recycle_after: Some(3), ..PoolSettings::default() });
    let mut pids = Vec::new();
    for _ in 0..9 {
        pids.push(echo(&pool).await.worker_pid);
    }
    pids.dedup();
    assert_eq!(pids.len(), 3);
    assert_eq!(pool.snapshot().restarts, 0, "an orderly end is not a death");
}

async fn idle_stop() {
    let settings = PoolSettings {
        spares: 2,
        idle_stop: Some(Duration::from_millis(200)),
        ..PoolSettings::default()
    };
    let pool = pool(settings);
    let pid = echo(&pool).await.worker_pid;
    eventually("all workers stop", || pool.snapshot().workers.is_empty());
    assert!(!is_alive(pid));
    assert_ne!(echo(&pool).await.worker_pid, pid);
}

async fn drop_pool() {
    let pool = pool(PoolSettings { spares: 1, ..PoolSettings::default() });
    let pid = echo(&pool).await.worker_pid;
    drop(pool);
    eventually("the worker is gone", || !group_is_alive(pid));
}

async fn drain() {
    let pool = pool(PoolSettings { spares: 1, ..PoolSettings::default() });
    let pid = echo(&pool).await.worker_pid;
    let spawn = |time: u64| {
        let pool = pool.clone();
        let request = Request::Sleep(Duration::from_millis(time));
        tokio::spawn(async move { call(&pool, request).await })
    };
    let running = spawn(400);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let waiting = spawn(1);
    tokio::time::sleep(Duration::from_millis(50)).await;
    pool.drain(Duration::from_secs(10)).await;
    assert_eq!(running.await.unwrap().unwrap().reply, Reply::Done);
    assert!(matches!(waiting.await.unwrap(), Err(CallError::Draining { .. })));
    assert!(!is_alive(pid));
    let late = call(&pool, Request::Descriptors).await.unwrap_err();
    assert!(matches!(late, CallError::Draining { .. }));
}

async fn drain_budget() {
    let pool = pool(PoolSettings::default());
    let pid = echo(&pool).await.worker_pid;
    let running = {
        let pool = pool.clone();
        tokio::spawn(async move { call(&pool, Request::Sleep(Duration::from_secs(60))).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    pool.drain(Duration::from_millis(200)).await;
    assert!(matches!(running.await.unwrap(), Err(CallError::Draining { .. })));
    assert!(!is_alive(pid));
}

async fn stubborn() {
    let (reports, hooks) = reporting();
    let settings = PoolSettings {
        recycle_after: Some(1),
        stop_grace: Duration::from_millis(200),
        ..PoolSettings::default()
    };
    let pool = Pool::<Stubborn>::start(&(), settings, hooks).unwrap();
    let pid = pool.call(&(), CallOptions::default()).await.unwrap().worker_pid;
    eventually("the worker is killed", || !is_alive(pid));
    eventually("its death is reported", || {
        reports.take().iter().any(|report| report.class == DeathClass::Timeout)
    });
}

async fn descriptors() {
    let pool = pool(PoolSettings { workers: 3, spares: 2, ..PoolSettings::default() });
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { call(&pool, Request::Descriptors).await.unwrap().reply })
        })
        .collect();
    for call in calls {
        let Reply::Text(names) = call.await.unwrap() else { panic!() };
        let names: Vec<&str> = names.lines().collect();
        let count = |what: &str| names.iter().filter(|name| name.starts_with(what)).count();
        // One socket; a pipe for stdout, stderr and the front's control; an area of
        // memory for each direction.
        let counts = (count("socket:"), count("pipe:"), count("/memfd:"));
        assert_eq!(counts, (1, 3, 2), "{names:?}");
        assert_eq!(names.len(), 8, "with standard input and the listing itself: {names:?}");
    }
}

async fn limits() {
    let pool = pool(PoolSettings { memory_cap: Some(300 << 20), ..PoolSettings::default() });
    let read = async |path: &str| {
        let answer = call(&pool, Request::Read(path.to_owned())).await.unwrap();
        let Reply::Text(text) = answer.reply else { panic!() };
        (text, answer.worker_pid)
    };
    let (limits, pid) = read("/proc/self/limits").await;
    let line = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("Max data size").contains(&(300 << 20).to_string()), "{limits}");
    assert!(line("Max core file size").split_whitespace().nth(4) == Some("0"), "{limits}");
    assert_eq!(read("/proc/self/oom_score_adj").await.0.trim(), "500");
    assert_eq!(read("/proc/self/comm").await.0.trim(), "tester");
    let (stat, _) = read("/proc/self/stat").await;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[2], pid.to_string(), "the worker leads its own process group");
    assert_eq!(fields[1], std::process::id().to_string(), "the worker is our child");
}

async fn crash_reports() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("crashes");
    let sink = CrashFolder::open(&folder, 200).unwrap();
    let hooks = Hooks { crashes: Some(Arc::new(sink)), ..Hooks::default() };
    let pool = pool_with(&Settings::default(), restless(), hooks);
    call(&pool, Request::Print("famous last words".into())).await.unwrap_err();
    // The caller does not wait until reports are written.
    pool.drain(Duration::ZERO).await;
    let mut reports: Vec<CrashReport> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .map(|bytes| serde_json::from_slice(&bytes).unwrap())
        .collect();
    reports.sort_by_key(|report| report.job.as_ref().unwrap().attempt);
    let [first, second] = &reports[..] else { panic!() };
    assert_eq!((first.class, first.end.as_str()), (DeathClass::Crash, "SIGABRT"));
    assert_eq!((first.signal, first.exit_code), (Some(6), None));
    assert_eq!((first.action, second.action), (Measure::Retried, Measure::Quarantined));
    assert!(first.output.contains(&"famous last words".to_owned()), "{first:?}");
    assert!(first.output.contains(&"famous last words (on stderr)".to_owned()));
    let job = first.job.as_ref().unwrap();
    assert_eq!((job.kind.as_str(), job.attempt), ("print", 0));
    assert_eq!(job.input_hash, second.job.as_ref().unwrap().input_hash);
    assert!(first.rss_bytes.unwrap() > 0);
}

/// A slow sink that panics on the first report.
#[derive(Debug, Default)]
struct SlowSink(AtomicUsize);

impl CrashSink for SlowSink {
    fn record(&self, _: &CrashReport) -> std::io::Result<()> {
        std::thread::sleep(Duration::from_millis(200));
        assert_ne!(self.0.fetch_add(1, Ordering::Relaxed), 0, "told to panic");
        Ok(())
    }
}

async fn slow_reports() {
    let sink = Arc::new(SlowSink::default());
    let hooks = Hooks { crashes: Some(sink.clone()), ..Hooks::default() };
    let pool = pool_with(&Settings::default(), restless(), hooks);
    call(&pool, Request::Print("last words".into())).await.unwrap_err();
    pool.drain(Duration::ZERO).await;
    assert_eq!(sink.0.load(Ordering::Relaxed), 2);
}

async fn snapshots() {
    let tally = Arc::new(Tally::default());
    let hooks = Hooks { metrics: tally.clone(), ..Hooks::default() };
    let pool = pool_with(&Settings::default(), PoolSettings { spares: 1, ..restless() }, hooks);
    let pid = echo(&pool).await.worker_pid;
    let running = {
        let pool = pool.clone();
        tokio::spawn(async move { call(&pool, Request::Sleep(Duration::from_millis(500))).await })
    };
    eventually("a job runs", || {
        let snapshot = pool.snapshot();
        let busy = snapshot.workers.iter().find(|worker| worker.state == WorkerState::Busy);
        busy.is_some_and(|busy| {
            busy.pid == Some(pid)
                && busy.job.as_ref().is_some_and(|job| job.kind == "other")
                && busy.rss_bytes.is_some_and(|rss| rss > 0)
                && busy.jobs_done == 1
        })
    });
    running.await.unwrap().unwrap();
    call(&pool, Request::Unlucky(vec![13])).await.unwrap_err();
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.restarts, snapshot.quarantined), (2, 1));
    assert_eq!(snapshot.last_death.unwrap().class, DeathClass::Crash);
    assert_eq!(tally.count(Counter::Jobs, "tester", Some("answered")), 2);
    assert_eq!(tally.count(Counter::Jobs, "tester", Some("poisoned")), 1);
    assert_eq!(tally.count(Counter::Deaths, "tester", Some("crash")), 2);
    eventually("dead workers are replaced", || tally.count(Counter::Spawns, "tester", None) >= 3);
    assert_eq!(tally.histograms()[0].2.count, 2);
}

fn other_runtimes() {
    let build = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let home =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let pool = home.block_on(async { pool(PoolSettings::default()) });
    let pid = build().block_on(echo(&pool)).worker_pid;
    assert_eq!(home.block_on(echo(&pool)).worker_pid, pid, "it outlived the caller's runtime");
    drop(home);
    eventually("its workers are gone with its own runtime", || !is_alive(pid));
    let error = build().block_on(call(&pool, Request::Descriptors)).unwrap_err();
    assert!(matches!(error, CallError::Draining { .. }), "{error}");
    build().block_on(pool.drain(Duration::from_secs(1)));
}

async fn two_at_once() {
    let pool = pool(PoolSettings { workers: 2, ..PoolSettings::default() });
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let pool = pool.clone();
            let request = Request::Sleep(Duration::from_millis(500));
            tokio::spawn(async move { call(&pool, request).await.unwrap().worker_pid })
        })
        .collect();
    eventually("both run", || {
        let busy = |worker: &&isolate::WorkerSnapshot| worker.state == WorkerState::Busy;
        pool.snapshot().workers.iter().filter(busy).count() == 2
    });
    let mut pids = Vec::new();
    for call in calls {
        pids.push(call.await.unwrap());
    }
    assert_ne!(pids[0], pids[1]);
}
