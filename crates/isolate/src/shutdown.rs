//! Graceful shutdown: the first signal drains, the second kills.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{self, SignalKind};

use crate::linux::watch::{Watched, watch_process};
use crate::snapshot::PoolSnapshot;

/// How long to wait for killed workers to be gone.
const WAIT_AFTER_KILL: Duration = Duration::from_secs(2);

/// Something that can be drained: a pool of any role.
pub trait Supervised: Send + Sync {
    /// Accepts no more jobs and lets running ones finish within `budget`.
    fn begin_drain(&self, budget: Duration);
    /// Kills all workers.
    fn kill(&self);
    /// Completes when all workers are gone after a drain or a kill.
    fn drained(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// The pool's current state.
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
    /// The conventional exit status of a program stopped by this signal.
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
    /// Installs handlers: from now on these signals no longer end the process.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// Another process, whose end can be awaited. It need not be a child.
#[derive(Debug)]
pub struct OtherProcess(Watched);

impl OtherProcess {
    /// Starts watching. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn watch(pid: u32) -> io::Result<Self> {
        watch_process(pid).map(Self)
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// If the runtime is shutting down.
    pub async fn ended(&self) -> io::Result<()> {
        self.0.readable().await.map(drop)
    }
}

/// The work was stopped by a signal.
#[derive(Debug)]
pub struct Interrupted<T> {
    /// The first signal received.
    pub signal: Signal,
    /// The result of the work, if it ended within the budget.
    pub output: Option<T>,
}

/// Runs `work`, which uses `pools`. The first signal drains the pools: running jobs may finish
/// within `budget`, new ones are refused, so the work fails and ends. The second signal kills
/// at once. In either case, all workers are gone when this returns. `pools` is called late,
/// because the work may start pools of its own.
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
    let _ = tokio::time::timeout(WAIT_AFTER_KILL, all_drained(&all)).await;
    Err(Interrupted { signal, output })
}

async fn all_drained(pools: &[Arc<dyn Supervised>]) {
    for pool in pools {
        pool.drained().await;
    }
}
