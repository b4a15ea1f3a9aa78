//! A worker aborts during a job, and a spare answers it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolate::{CallOptions, Pool, WorkerState};
use serde_json::json;

use crate::Harness;
use crate::figure::{Figure, Goal, Rival};
use crate::roles::{Bench, Job, pool};
use crate::samples::Samples;
use crate::table::WorkerRow;

const ROUNDS: usize = 10;
const CRASHES: usize = 30;
const PYTHON_CRASHES: usize = 3;

const GOAL: Duration = Duration::from_millis(2);

/// How long to wait for a spare to become ready.
const SPARE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Crashes {
    /// The whole call, whose first attempt aborts immediately.
    answered: Samples,
    /// From sending the job until the crash was detected.
    detected: Samples,
}

pub(crate) fn measure(harness: &mut Harness) -> Result<Vec<WorkerRow>> {
    let pool = harness.run(async {
        let pool = pool(1, 1)?;
        pool.call(&Job::Echo(Vec::new()), CallOptions::default()).await?;
        Ok(pool)
    })?;
    let mut ours = Crashes::default();
    let mut python = None::<Samples>;
    for _ in 0..harness.count(ROUNDS) {
        let round = harness.run(crash(pool.clone(), CRASHES))?;
        ours.answered.extend(round.answered);
        ours.detected.extend(round.detected);
        let order = json!({ "measure": "crash", "crashes": PYTHON_CRASHES });
        if let Some(round) = harness.executor.round(&order) {
            python.get_or_insert_default().extend(round);
        }
    }
    harness.run(async move {
        pool.drain(Duration::from_secs(1)).await;
        Ok(())
    })?;

    let mut rows = Vec::new();
    for percent in [50, 99] {
        let took = |samples: &Samples| samples.percentile(percent);
        let answered = took(&ours.answered).context("no crash was measured")?;
        rows.push(WorkerRow {
            name: format!("crash to answer, p{percent}"),
            ours: Figure::Time(answered),
            thread_hop: Rival::None,
            awaited_hop: Rival::None,
            python: Rival::from(python.as_ref().and_then(took).map(Figure::Time)),
            goal: (percent == 50).then(|| Goal::within(answered, GOAL)),
        });
    }
    let detected = ours.detected.percentile(50).context("no crash was detected")?;
    rows.push(WorkerRow {
        name: "  until the crash is detected, p50".to_owned(),
        ours: Figure::Time(detected),
        thread_hop: Rival::None,
        awaited_hop: Rival::None,
        python: Rival::None,
        goal: None,
    });
    Ok(rows)
}

async fn crash(pool: Pool<Bench>, crashes: usize) -> Result<Crashes> {
    let mut measured = Crashes::default();
    for _ in 0..crashes {
        warm_spare(&pool).await?;
        let started = Instant::now();
        let answer = pool.call(&Job::AbortOnce, CallOptions::default()).await?;
        measured.answered.push(started.elapsed());
        ensure!(answer.deaths.len() == 1, "the job crashed {} workers", answer.deaths.len());
        measured.detected.extend(answer.deaths.iter().map(|death| death.ran).collect());
    }
    Ok(measured)
}

/// Waits until two workers are idle: one that has done a job and gets the next, and one that has
/// not, because only a fresh worker gets a job that crashed another.
async fn warm_spare(pool: &Pool<Bench>) -> Result<()> {
    let until = Instant::now() + SPARE_TIMEOUT;
    loop {
        let workers = pool.snapshot().workers;
        let idle = || workers.iter().filter(|worker| worker.state == WorkerState::Idle);
        if idle().any(|worker| worker.jobs_done == 0) && idle().any(|worker| worker.jobs_done > 0) {
            return Ok(());
        }
        ensure!(Instant::now() < until, "no warm spare after 5 s");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
