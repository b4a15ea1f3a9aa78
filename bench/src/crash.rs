//! A worker aborts in the middle of a job; the answer comes from another one.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolate::{CallOptions, Pool, WorkerState};
use serde_json::json;

use crate::Lab;
use crate::figure::{Figure, Goal, Rival};
use crate::roles::{Bench, Job, pool};
use crate::samples::Samples;
use crate::table::Row;

const ROUNDS: usize = 10;
const CRASHES: usize = 30;
const PYTHON_CRASHES: usize = 3;

const GOAL: Duration = Duration::from_millis(2);

/// How long a spare may take to be there.
const SPARE_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Crashes {
    /// The whole call, which aborts at once.
    answered: Samples,
    /// From the job's sending until its worker's death was known.
    noticed: Samples,
}

pub(crate) fn measure(lab: &mut Lab) -> Result<Vec<Row>> {
    let pool = lab.run(async {
        let pool = pool(1, 1)?;
        pool.call(&Job::Echo(Vec::new()), CallOptions::default()).await?;
        Ok(pool)
    })?;
    let mut ours = Crashes::default();
    let mut python = None::<Samples>;
    for _ in 0..lab.count(ROUNDS) {
        let round = lab.run(crash(pool.clone(), CRASHES))?;
        ours.answered.extend(round.answered);
        ours.noticed.extend(round.noticed);
        let order = json!({ "measure": "crash", "crashes": PYTHON_CRASHES });
        if let Some(round) = lab.executor.round(&order) {
            python.get_or_insert_default().extend(round);
        }
    }
    lab.run(async move {
        pool.drain(Duration::from_secs(1)).await;
        Ok(())
    })?;

    let mut rows = Vec::new();
    for percent in [50, 99] {
        let took = |samples: &Samples| samples.percentile(percent);
        let answered = took(&ours.answered).context("no crash was measured")?;
        rows.push(Row {
            name: format!("crash to spare's answer, p{percent}"),
            ours: Figure::Took(answered),
            thread_hop: Rival::None,
            awaited_hop: Rival::None,
            python: Rival::from(python.as_ref().and_then(took).map(Figure::Took)),
            goal: (percent == 50).then(|| Goal::at_most(answered, GOAL)),
        });
    }
    let noticed = ours.noticed.percentile(50).context("no death was noticed")?;
    rows.push(Row {
        name: "  until the death is known, p50".to_owned(),
        ours: Figure::Took(noticed),
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
        ensure!(answer.deaths.len() == 1, "{} workers died of the job", answer.deaths.len());
        measured.noticed.extend(answer.deaths.iter().map(|death| death.ran).collect());
    }
    Ok(measured)
}

/// Waits until two workers are idle: one that has worked, which gets the next job,
/// and one that has not, which alone may get a job that killed a worker.
async fn warm_spare(pool: &Pool<Bench>) -> Result<()> {
    let until = Instant::now() + SPARE_PATIENCE;
    loop {
        let workers = pool.snapshot().workers;
        let idle = || workers.iter().filter(|worker| worker.state == WorkerState::Idle);
        if idle().any(|worker| worker.jobs_done == 0) && idle().any(|worker| worker.jobs_done > 0) {
            return Ok(());
        }
        ensure!(Instant::now() < until, "there is no warm spare");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
