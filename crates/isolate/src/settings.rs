use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::linux::process::SELF;

/// How a pool runs its workers. The defaults suit a server; a one-shot command
/// wants no spares (they already default to none) and one worker.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// How many jobs run at the same time.
    pub workers: usize,
    /// How many warm workers stand by beyond the busy ones, so that a job whose
    /// worker died is answered at once.
    pub spares: usize,
    /// The most memory (RLIMIT_DATA) that one worker may use.
    pub memory_cap: Option<u64>,
    /// How long one try of a job may run before its worker is killed.
    pub job_deadline: Duration,
    /// How long a job may wait for a worker.
    pub queue_patience: Duration,
    /// How long a worker may take from its start until it is ready.
    pub start_deadline: Duration,
    /// How long a worker that was told to stop, or that its job is cancelled, may take.
    pub stop_grace: Duration,
    /// Replace a worker after so many jobs.
    pub recycle_after: Option<u64>,
    /// Stop workers that had nothing to do for so long, spares included.
    pub idle_stop: Option<Duration>,
    /// How many jobs may wait for a worker.
    pub queue_bound: usize,
    /// The largest request that is sent.
    pub max_request_bytes: u64,
    /// The largest reply that is accepted.
    pub max_reply_bytes: u64,
    /// When a job is tried again.
    pub retry: RetryPolicy,
    /// How fast dead workers are replaced.
    pub restart: RestartPolicy,
    /// When the pool stops trying.
    pub breaker: BreakerPolicy,
    /// How long a job that killed its workers is refused.
    pub quarantine_for: Duration,
    /// What tells this build from another: with a new one, quarantined jobs get
    /// another chance. By default it is made from the program's file.
    pub build: Option<String>,
    /// The program to start as a worker; by default the running one.
    pub program: PathBuf,
    /// All variables of the workers' environment, but for one that turns backtraces off.
    /// Nothing of the front's own environment, which may hold secrets, reaches a worker.
    pub environment: Vec<(OsString, OsString)>,
    /// The seed of the restart jitter; by default random.
    pub seed: u64,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            workers: 1,
            spares: 0,
            memory_cap: None,
            job_deadline: Duration::from_secs(30),
            queue_patience: Duration::from_secs(30),
            start_deadline: Duration::from_secs(10),
            stop_grace: Duration::from_secs(2),
            recycle_after: None,
            idle_stop: Some(Duration::from_secs(300)),
            queue_bound: 1024,
            max_request_bytes: 64 << 20,
            max_reply_bytes: 64 << 20,
            retry: RetryPolicy::default(),
            restart: RestartPolicy::default(),
            breaker: BreakerPolicy::default(),
            quarantine_for: Duration::from_secs(7 * 24 * 3600),
            build: None,
            program: PathBuf::from(SELF),
            environment: Vec::new(),
            seed: fastrand::u64(..),
        }
    }
}

/// When a job is tried again on another worker.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// How many workers a job may kill before it is given up (and, from the second
    /// on, quarantined). One means: never try again.
    pub strikes: u32,
    /// How often a job is tried again because somebody else killed its worker.
    pub outside_kills: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { strikes: 2, outside_kills: 10 }
    }
}

/// How fast dead workers are replaced: the first at once, the next ones after
/// `first_delay`, doubling up to `longest_delay`, until none has died for
/// `healthy_after`.
#[derive(Debug, Clone)]
pub struct RestartPolicy {
    /// The delay before the second replacement in a row.
    pub first_delay: Duration,
    /// The longest delay.
    pub longest_delay: Duration,
    /// After so long without a death, the next one is the first again.
    pub healthy_after: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(30),
            healthy_after: Duration::from_secs(60),
        }
    }
}

/// When a pool stops starting workers for a while and refuses jobs.
#[derive(Debug, Clone)]
pub struct BreakerPolicy {
    /// More deaths than this within `window` open the breaker.
    pub deaths: usize,
    /// The time in which deaths are counted.
    pub window: Duration,
    /// How long the breaker stays open the first time. Each failed trial doubles
    /// it, up to `longest_cooldown`.
    pub cooldown: Duration,
    /// The longest time for which it stays open.
    pub longest_cooldown: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            deaths: 5,
            window: Duration::from_secs(10),
            cooldown: Duration::from_secs(5),
            longest_cooldown: Duration::from_secs(60),
        }
    }
}
