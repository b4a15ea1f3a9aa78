//! Throughput with many concurrent callers.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isolate::{CallOptions, Pool};
use serde_json::json;

use crate::Harness;
use crate::figure::{Figure, Rival};
use crate::roles::{Bench, COMPUTE, Job, pool};
use crate::samples::Samples;
use crate::table::WorkerRow;

const ROUNDS: usize = 10;
const CALLERS: usize = 8;

struct Load {
    name: &'static str,
    job: fn() -> Job,
    /// The name of the job in the Python script.
    python: &'static str,
    /// Per caller and round.
    calls: usize,
    python_calls: usize,
}

const LOADS: [Load; 2] = [
    Load {
        name: "echo of 100 B",
        job: || Job::Echo(vec![7; 100]),
        python: "echo",
        calls: 1000,
        python_calls: 2000,
    },
    Load {
        name: "200 us of CPU work",
        job: || Job::Compute,
        python: "compute",
        calls: 150,
        python_calls: 1000,
    },
];

pub(crate) fn measure(harness: &mut Harness) -> Result<Vec<WorkerRow>> {
    let mut rows = Vec::new();
    for load in LOADS {
        for workers in [1, 2] {
            rows.push(compare(harness, &load, workers)?);
        }
    }
    Ok(rows)
}

fn compare(harness: &mut Harness, load: &Load, workers: usize) -> Result<WorkerRow> {
    let pool = harness.run(async move { Ok(pool(workers, 0)?) })?;
    // The first round starts the workers of both sides and is not counted.
    let mut ours = Samples::default();
    let mut python = None::<Samples>;
    for round in 0..=harness.count(ROUNDS) {
        let our_round = harness.run(call(pool.clone(), load.job, load.calls))?;
        let order = json!({
            "measure": "throughput",
            "job": load.python,
            "workers": workers,
            "calls": load.python_calls,
            "compute_nanoseconds": COMPUTE.as_nanos() as u64,
        });
        let python_round = harness.executor.round(&order);
        if round > 0 {
            ours.push(our_round);
            if let Some(python_round) = python_round {
                python.get_or_insert_default().extend(python_round);
            }
        }
    }
    harness.run(async move {
        pool.drain(Duration::from_secs(1)).await;
        Ok(())
    })?;

    let rate = |samples: &Samples, calls: usize| {
        let took = samples.percentile(50)?;
        Some(Figure::Rate(calls as f64 / took.as_secs_f64()))
    };
    let plural = if workers == 1 { "" } else { "s" };
    Ok(WorkerRow {
        name: format!("throughput, {}, {workers} worker{plural}", load.name),
        ours: rate(&ours, CALLERS * load.calls).context("no round was measured")?,
        thread_hop: Rival::None,
        awaited_hop: Rival::None,
        python: Rival::from(python.and_then(|samples| rate(&samples, load.python_calls))),
        goal: None,
    })
}

/// The time until all callers have received all their answers.
async fn call(pool: Pool<Bench>, job: fn() -> Job, calls: usize) -> Result<Duration> {
    let started = Instant::now();
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let pool = pool.clone();
        callers.push(tokio::spawn(async move {
            let job = job();
            for _ in 0..calls {
                pool.call(&job, CallOptions::default()).await?;
            }
            anyhow::Ok(())
        }));
    }
    for caller in callers {
        caller.await??;
    }
    Ok(started.elapsed())
}
