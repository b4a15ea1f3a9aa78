//! Commits every fault repeatedly: checks its class, and that another worker answers the job.

use std::sync::Arc;
use std::time::Duration;

use isolate::misbehave::Fault;
use isolate::{CallOptions, DeathClass, Measure, PoolSettings, WorkerState};
use libtest_mimic::Trial;

use crate::support::*;

const INJECTIONS: u64 = 14;

pub fn trials() -> Vec<Trial> {
    let in_jobs = Fault::ALL.into_iter().filter(|fault| !fault.is_at_start());
    in_jobs
        .map(|fault| {
            let name = format!("fault::{}", fault.describe().replace(' ', "_"));
            trial(&name, move || inject(fault))
        })
        .chain([
            trial("fault::death_before_ready_is_a_start_failure", death_before_ready),
            trial("fault::an_undelivered_job_is_not_blamed_for_a_death", undelivered),
            trial("fault::sigkill_of_an_idle_worker_is_harmless", idle_kill),
        ])
        .collect()
}

async fn inject(fault: Fault) {
    let (reports, hooks) = reporting();
    let settings = PoolSettings { spares: 1, ..restless() };
    let pool = pool_with(&Settings::default(), settings, hooks);
    for number in 0..INJECTIONS {
        let deadline = fault.needs_deadline().then_some(Duration::from_secs(1));
        // A slow listener must not let a flood of progress delay its deadline.
        let listener = Arc::new(|_| std::thread::sleep(Duration::from_micros(50)));
        let on_progress = (fault == Fault::Flood).then_some(listener as _);
        let options =
            CallOptions { deadline, idempotent: true, on_progress, ..CallOptions::default() };
        let answer = pool.call(&Request::Fail(fault, number), options).await.unwrap();
        assert_eq!(answer.reply, Reply::Number(number));
        let seen: Vec<DeathClass> = answer.deaths.iter().map(|death| death.class).collect();
        let expected: Vec<DeathClass> = fault.expected().into_iter().collect();
        assert_eq!(seen, expected, "{fault:?} number {number}: {:#?}", reports.take());
        assert!(answer.deaths.iter().all(|death| death.pid != answer.worker_pid));
        for death in &answer.deaths {
            eventually("no process of the group is left", || !group_is_alive(death.pid));
        }
    }
    pool.drain(Duration::from_secs(5)).await;
    let reports = reports.take();
    let expected = if fault.expected().is_some() { INJECTIONS as usize } else { 0 };
    assert_eq!(reports.len(), expected, "{reports:#?}");
    let alone = fault == Fault::OutOfMemory;
    let measure = if alone { Measure::RetriedAlone } else { Measure::Retried };
    assert!(reports.iter().all(|report| report.action == measure));
}

async fn death_before_ready() {
    let (reports, hooks) = reporting();
    let role = Settings { panic_at_start: true, ..Settings::default() };
    let pool = pool_with(&role, PoolSettings::default(), hooks);
    let error = call(&pool, Request::Descriptors).await.unwrap_err();
    assert_eq!(error.code(), "breaker_open", "{error}");
    assert!(error.to_string().contains("told to panic"), "{error}");
    // The caller does not wait until reports are written.
    pool.drain(Duration::ZERO).await;
    let reports = reports.take();
    assert_eq!(reports.len(), 6, "the breaker opens on the sixth");
    assert!(reports.iter().all(|report| report.class == DeathClass::StartFailure));
}

async fn idle_kill() {
    let pool = pool(PoolSettings { spares: 1, ..restless() });
    for _ in 0..20 {
        let pid = echo(&pool).await.worker_pid;
        kill(pid, "KILL");
        eventually("the worker is gone", || !is_alive(pid));
        assert_ne!(echo(&pool).await.worker_pid, pid);
    }
}

/// If a worker dies before it has read its job, the job is not blamed.
async fn undelivered() {
    let pool = pool(restless());
    for _ in 0..10 {
        let pid = echo(&pool).await.worker_pid;
        kill(pid, "STOP");
        eventually("the worker is stopped", || state_of(pid) == Some('T'));
        let waiting = {
            let pool = pool.clone();
            tokio::spawn(async move { echo(&pool).await })
        };
        eventually("the job is sent", || {
            pool.snapshot().workers.iter().any(|worker| worker.state == WorkerState::Busy)
        });
        kill(pid, "ABRT");
        kill(pid, "CONT");
        let answer = waiting.await.unwrap();
        assert!(answer.deaths.is_empty(), "{:?}", answer.deaths);
        assert_ne!(answer.worker_pid, pid);
    }
}

pub fn kill(pid: u32, signal: &str) {
    let status =
        std::process::Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(status.unwrap().success());
}
