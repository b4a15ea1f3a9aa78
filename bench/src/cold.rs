//! Cold start: from creating a pool to the first reply, in a small and in a large process.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isolate::CallOptions;
use serde_json::json;

use crate::Harness;
use crate::figure::{Figure, Goal, Rival};
use crate::roles::{Job, pool};
use crate::samples::Samples;
use crate::table::WorkerRow;

const FRONTS: [(&str, usize); 2] = [("small front", 0), ("1 GB front", 1 << 30)];

const ROUNDS: usize = 10;
const STARTS: usize = 20;
const PYTHON_STARTS: usize = 3;

const GOAL: Duration = Duration::from_millis(3);

pub(crate) fn measure(harness: &mut Harness) -> Result<Vec<WorkerRow>> {
    let mut ours = FRONTS.map(|_| Samples::default());
    let mut python = FRONTS.map(|_| None::<Samples>);
    for _ in 0..harness.count(ROUNDS) {
        for (at, (_, ballast)) in FRONTS.into_iter().enumerate() {
            // Not zeros, so that the pages are allocated.
            let held = black_box(vec![1u8; ballast]);
            for _ in 0..STARTS {
                ours[at].push(harness.run(start())?);
            }
            drop(black_box(held));
            let order = json!({ "ballast": ballast, "starts": PYTHON_STARTS });
            if let Some(round) = harness.spawner.round(&order) {
                python[at].get_or_insert_default().extend(round);
            }
        }
    }
    let mut rows = Vec::new();
    for (at, (front, _)) in FRONTS.into_iter().enumerate() {
        for percent in [50, 99] {
            let took = |samples: &Samples| samples.percentile(percent);
            let ours = took(&ours[at]).context("no start was measured")?;
            rows.push(WorkerRow {
                name: format!("cold start to reply, {front}, p{percent}"),
                ours: Figure::Time(ours),
                thread_hop: Rival::None,
                awaited_hop: Rival::None,
                python: Rival::from(python[at].as_ref().and_then(took).map(Figure::Time)),
                goal: (percent == 50).then(|| Goal::within(ours, GOAL)),
            });
        }
    }
    Ok(rows)
}

async fn start() -> Result<Duration> {
    let started = Instant::now();
    let pool = pool(1, 0)?;
    pool.call(&Job::Echo(vec![7; 100]), CallOptions::default()).await?;
    let took = started.elapsed();
    pool.drain(Duration::from_secs(1)).await;
    Ok(took)
}
