//! Round trips to a warm worker that echoes the payload.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolate::{Bulk, CallOptions, Pool};
use serde_json::json;
use tokio::sync::oneshot;

use crate::Harness;
use crate::figure::{Figure, Goal, Rival};
use crate::roles::{Bench, Job, pool};
use crate::samples::{Samples, WARM_UP_CALLS};
use crate::table::WorkerRow;

const SIZES: [Size; 3] = [
    Size { name: "100 B", bytes: 100, calls: 400, python_calls: 100 },
    Size { name: "10 kB", bytes: 10_000, calls: 400, python_calls: 100 },
    Size { name: "1 MB", bytes: 1_000_000, calls: 60, python_calls: 20 },
];

const ROUNDS: usize = 40;

const GOAL_100_B: Duration = Duration::from_micros(30);
const GOAL_1_MB_HOPS: u32 = 10;

struct Size {
    name: &'static str,
    bytes: usize,
    /// Per round.
    calls: usize,
    python_calls: usize,
}

pub(crate) fn measure(harness: &mut Harness) -> Result<Vec<WorkerRow>> {
    let pool = harness.run(async { Ok(pool(1, 0)?) })?;
    let mut rows = Vec::new();
    for size in SIZES {
        let round = measure_size(harness, &pool, &size)?;
        for percent in [50, 99] {
            rows.push(round.row(&size, percent)?);
        }
    }
    harness.run(async move {
        pool.drain(Duration::from_secs(1)).await;
        Ok(())
    })?;
    Ok(rows)
}

#[derive(Default)]
struct Compared {
    ours: Samples,
    hop: Samples,
    awaited_hop: Samples,
    python: Option<Samples>,
}

fn measure_size(harness: &mut Harness, pool: &Pool<Bench>, size: &Size) -> Result<Compared> {
    let blocking = Hop::start(|caller: mpsc::Sender<_>, reply| {
        let _ = caller.send(reply);
    })?;
    let awaited = Hop::start(|caller: oneshot::Sender<_>, reply| {
        let _ = caller.send(reply);
    })?;
    let payload: Arc<[u8]> = vec![7; size.bytes].into();
    let mut all = Compared::default();
    for _ in 0..harness.count(ROUNDS) {
        let ours = call(pool.clone(), Arc::clone(&payload), size.calls);
        all.ours.extend(harness.run(ours)?);
        all.hop.extend(hop(&blocking, &payload, size.calls)?);
        let task = awaited_hop(&awaited, Arc::clone(&payload), size.calls);
        all.awaited_hop.extend(harness.run(task)?);
        let order = json!({
            "measure": "echo",
            "size": size.bytes,
            "calls": size.python_calls,
            "uncounted": WARM_UP_CALLS,
        });
        if let Some(round) = harness.executor.round(&order) {
            all.python.get_or_insert_default().extend(round);
        }
    }
    Ok(all)
}

impl Compared {
    fn row(&self, size: &Size, percent: usize) -> Result<WorkerRow> {
        let took = |samples: &Samples| samples.percentile(percent);
        let figure = |samples: &Samples| Rival::from(took(samples).map(Figure::Time));
        let ours = took(&self.ours).context("no call was measured")?;
        let hop = took(&self.hop).context("no hop was measured")?;
        let goal = match (size.name, percent) {
            ("100 B", 50) => Some(Goal::within(ours, GOAL_100_B)),
            ("1 MB", 50) => {
                let goal = Goal::within(ours, hop * GOAL_1_MB_HOPS);
                Some(goal.named(&format!("{GOAL_1_MB_HOPS} thread hops")))
            }
            _ => None,
        };
        Ok(WorkerRow {
            name: format!("warm round trip, {}, p{percent}", size.name),
            ours: Figure::Time(ours),
            thread_hop: figure(&self.hop),
            awaited_hop: figure(&self.awaited_hop),
            python: self.python.as_ref().map_or(Rival::NotAvailable, figure),
            goal,
        })
    }
}

/// Small payloads are part of the message, larger ones are sent as [`Bulk`].
async fn call(pool: Pool<Bench>, payload: Arc<[u8]>, calls: usize) -> Result<Samples> {
    let job = match payload.len() {
        ..1000 => Job::Echo(payload.to_vec()),
        _ => Job::EchoBulk(Bulk::from(payload.to_vec())),
    };
    let mut watch = Stopwatch::new(&payload);
    for _ in 0..calls + WARM_UP_CALLS {
        let started = Instant::now();
        let answer = pool.call(&job, CallOptions::default()).await?;
        watch.stop(started, answer.reply.len())?;
    }
    Ok(watch.samples)
}

/// The same without a process: a thread receives a copy of the request through a channel and
/// returns a copy of it.
struct Hop<A> {
    thread: mpsc::Sender<(Vec<u8>, A)>,
}

impl<A: Send + 'static> Hop<A> {
    fn start(answer: fn(A, Vec<u8>)) -> Result<Self> {
        let (thread, requests) = mpsc::channel::<(Vec<u8>, A)>();
        std::thread::Builder::new().name("hop".into()).spawn(move || {
            for (request, caller) in requests {
                answer(caller, request.clone());
            }
        })?;
        Ok(Self { thread })
    }
}

/// The caller is a blocking thread, which is the fastest kind of hop.
fn hop(hop: &Hop<mpsc::Sender<Vec<u8>>>, payload: &[u8], calls: usize) -> Result<Samples> {
    let mut watch = Stopwatch::new(payload);
    for _ in 0..calls + WARM_UP_CALLS {
        let started = Instant::now();
        let (caller, answer) = mpsc::channel();
        hop.thread.send((payload.to_vec(), caller))?;
        let reply = answer.recv()?;
        watch.stop(started, reply.len())?;
    }
    Ok(watch.samples)
}

/// The caller is a tokio task, like the callers of a pool.
fn awaited_hop(
    hop: &Hop<oneshot::Sender<Vec<u8>>>,
    payload: Arc<[u8]>,
    calls: usize,
) -> impl Future<Output = Result<Samples>> + Send + use<> {
    let thread = hop.thread.clone();
    async move {
        let mut watch = Stopwatch::new(&payload);
        for _ in 0..calls + WARM_UP_CALLS {
            let started = Instant::now();
            let (caller, answer) = oneshot::channel();
            thread.send((payload.to_vec(), caller))?;
            let reply = answer.await?;
            watch.stop(started, reply.len())?;
        }
        Ok(watch.samples)
    }
}

/// Records the durations of a round's calls after the warm-up calls.
struct Stopwatch {
    samples: Samples,
    calls: usize,
    expected: usize,
}

impl Stopwatch {
    fn new(payload: &[u8]) -> Self {
        Self { samples: Samples::default(), calls: 0, expected: payload.len() }
    }

    fn stop(&mut self, started: Instant, length: usize) -> Result<()> {
        let took = started.elapsed();
        ensure!(length == self.expected, "the echo has {length} bytes, not {}", self.expected);
        if self.calls >= WARM_UP_CALLS {
            self.samples.push(took);
        }
        self.calls += 1;
        Ok(())
    }
}
