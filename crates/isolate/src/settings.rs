use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::linux::process::SELF;

/// How a pool runs its workers. The default is one worker and no spares; a server usually wants
/// more.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The maximum number of jobs that run at the same time.
    pub workers: usize,
    /// The number of idle, warm workers kept ready beyond the busy ones, so that a job whose
    /// worker died can be retried at once.
    pub spares: usize,
    /// The maximum memory (RLIMIT_DATA) of a worker, in bytes.
    pub memory_cap: Option<u64>,
    /// How long one attempt of a job may run before its worker is killed.
    pub job_deadline: Duration,
    /// How long a job may wait for a worker.
    pub queue_patience: Duration,
    /// How long a worker may take to become ready.
    pub start_deadline: Duration,
    /// How long a worker may take to stop, or to return from a cancelled job, before it is
    /// killed.
    pub stop_grace: Duration,
    /// Replace a worker after this many jobs.
    pub recycle_after: Option<u64>,
    /// Stop workers, including spares, that have been idle for this long.
    pub idle_stop: Option<Duration>,
    /// The maximum number of jobs that wait for a worker.
    pub queue_bound: usize,
    /// The maximum size of a request.
    pub max_request_bytes: u64,
    /// The maximum size of a reply.
    pub max_reply_bytes: u64,
    /// When a job is retried.
    pub retry: RetryPolicy,
    /// How fast dead workers are replaced.
    pub restart: RestartPolicy,
    /// When the pool stops starting workers and refuses jobs.
    pub breaker: BreakerPolicy,
    /// How long a job that killed its workers stays quarantined.
    pub quarantine_for: Duration,
    /// Identifies the build: quarantined jobs get another chance with a new one. By default it
    /// is derived from the program's file.
    pub build: Option<String>,
    /// The program to start as a worker; by default, the running one.
    pub program: PathBuf,
    /// The workers' whole environment, except for a variable that turns backtraces off. Nothing
    /// is inherited from the front, whose environment may hold secrets.
    pub environment: Vec<(OsString, OsString)>,
    /// The seed of the restart jitter; random by default.
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

/// When a job is retried on another worker.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// How many workers a job may kill before it is given up (and, from the second on,
    /// quarantined). With 1, it is never retried.
    pub strikes: u32,
    /// How often a job is retried because its worker was killed from outside.
    pub outside_kills: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { strikes: 2, outside_kills: 10 }
    }
}

/// How fast dead workers are replaced: the first at once, the next after `first_delay`,
/// doubling up to `longest_delay`, until there was no death for `healthy_after`.
#[derive(Debug, Clone)]
pub struct RestartPolicy {
    /// The delay before the second replacement in a row.
    pub first_delay: Duration,
    /// The maximum delay.
    pub longest_delay: Duration,
    /// After this long without a death, the next one counts as the first again.
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

/// When a pool stops starting workers and refuses jobs for a while.
#[derive(Debug, Clone)]
pub struct BreakerPolicy {
    /// More deaths than this within `window` open the breaker.
    pub deaths: usize,
    /// The period over which deaths are counted.
    pub window: Duration,
    /// How long the breaker stays open the first time. Each failed trial doubles
    /// it, up to `longest_cooldown`.
    pub cooldown: Duration,
    /// The longest time the breaker stays open.
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
