//! The jobs to measure, and the pools that run them.

use std::time::Duration;

use isolate::{
    BreakerPolicy, Bulk, Context, Hooks, InWorker, Pool, PoolSettings, Refusal, RestartPolicy, Role,
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// CPU time of the compute job, here and in Python.
pub(crate) const COMPUTE: Duration = Duration::from_micros(200);

pub(crate) struct Bench;

#[derive(Serialize, Deserialize)]
pub(crate) enum Job {
    /// Return these bytes, which are part of the message.
    Echo(Vec<u8>),
    /// Return these bytes, which are sent next to the message.
    EchoBulk(Bulk),
    /// Use CPU time for [`COMPUTE`].
    Compute,
    /// Abort on the first attempt, answer on the second.
    AbortOnce,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Reply {
    Bytes(Vec<u8>),
    Bulk(Bulk),
    Done,
}

impl Reply {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Bulk(bulk) => bulk.len(),
            Self::Done => 0,
        }
    }
}

impl Role for Bench {
    const NAME: &'static str = "bench";

    type Settings = ();
    type Request = Job;
    type Reply = Reply;

    fn warm_up((): (), _token: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, job: Job, context: &Context<'_>) -> Reply {
        match job {
            Job::Echo(bytes) => Reply::Bytes(bytes),
            Job::EchoBulk(bulk) => Reply::Bulk(bulk),
            Job::Compute => {
                compute();
                Reply::Done
            }
            Job::AbortOnce if context.attempt() == 0 => std::process::abort(),
            Job::AbortOnce => Reply::Done,
        }
    }
}

/// Spins for CPU time, not wall time: waiting for a processor does not count as work.
fn compute() {
    let used = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    };
    let until = used() + COMPUTE;
    while used() < until {
        std::hint::spin_loop();
    }
}

/// Must be called within the runtime. Back-off and breaker are disabled: the benchmark measures
/// what a crash costs, not how a pool reacts to many.
pub(crate) fn pool(workers: usize, spares: usize) -> Result<Pool<Bench>, isolate::CallError> {
    let settings = PoolSettings {
        workers,
        spares,
        restart: RestartPolicy { first_delay: Duration::ZERO, ..RestartPolicy::default() },
        breaker: BreakerPolicy { deaths: usize::MAX, ..BreakerPolicy::default() },
        ..PoolSettings::default()
    };
    Pool::start(&(), settings, Hooks::default())
}
