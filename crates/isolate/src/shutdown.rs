//! Stopping in order: the first signal drains, the second kills.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{self, SignalKind};

use crate::snapshot::PoolSnapshot;

/// After the second signal, or when the budget is over, workers that were killed
/// get this long to be gone.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// What can be drained: a pool of any role.
pub trait Supervised: Send + Sync {
    /// Takes no more jobs and gives those that run up to `budget`.
    fn begin_drain(&self, budget: Duration);
    /// Kills all workers.
    fn kill(&self);
    /// Completes when, after a drain or a kill, all workers are gone.
    fn drained(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// What the pool looks like now.
    fn snapshot(&self) -> PoolSnapshot;
}

/// A request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as from Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// The exit status of a program that this signal stopped.
    pub fn exit_status(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The signals that ask the program to stop.
#[derive(Debug)]
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// From now on these signals no longer end the process.
    ///
    /// # Errors
    /// If the handlers cannot be set.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// A signal stopped the work.
#[derive(Debug)]
pub struct Interrupted<T> {
    /// Which.
    pub signal: Signal,
    /// What the work came to, if it ended within the budget.
    pub output: Option<T>,
}

/// Runs `work` with `pools`. The first signal drains the pools: jobs that run may
/// finish within `budget`, others are refused, and the work sees that and ends. The
/// second signal kills at once. Either way all workers are gone when this returns.
/// Which pools there are is asked for when it matters, because work may start its own.
///
/// # Errors
/// [`Interrupted`] if a signal came first.
pub async fn run_until_signalled<T>(
    signals: &mut Signals,
    pools: impl Fn() -> Vec<Arc<dyn Supervised>>,
    budget: Duration,
    work: impl Future<Output = T>,
) -> Result<T, Interrupted<T>> {
    let mut work = pin!(work);
    let signal = tokio::select! {
        output = &mut work => return Ok(output),
        signal = signals.next() => signal,
    };
    tracing::info!(?signal, "draining");
    let draining = pools();
    for pool in &draining {
        pool.begin_drain(budget);
    }
    let output = tokio::select! {
        output = async {
            let output = (&mut work).await;
            all_drained(&draining).await;
            output
        } => Some(output),
        _ = signals.next() => None,
        () = tokio::time::sleep(budget) => None,
    };
    let all = [draining, pools()].concat();
    for pool in &all {
        pool.kill();
    }
    let _ = tokio::time::timeout(LAST_WAIT, all_drained(&all)).await;
    Err(Interrupted { signal, output })
}

async fn all_drained(pools: &[Arc<dyn Supervised>]) {
    for pool in pools {
        pool.drained().await;
    }
}
