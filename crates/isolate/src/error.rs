use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::class::DeathClass;
use crate::pool::Death;
use crate::quarantine::Poison;
use crate::role::Refusal;

/// Why a call got no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The request cannot be encoded.
    #[error("cannot encode the request: {0}")]
    BadRequest(String),
    /// The request is over the pool's limit.
    #[error("request of {size} bytes exceeds the limit of {limit}")]
    RequestTooLarge {
        /// The encoded size, in bytes.
        size: u64,
        /// The pool's limit, in bytes.
        limit: u64,
    },
    /// The worker is healthy but cannot send this reply.
    #[error("cannot answer the job: {0}")]
    Unanswerable(String),
    /// The pool's queue is full.
    #[error("the queue for {role} workers is full ({waiting} waiting)")]
    QueueFull {
        /// The pool's role.
        role: &'static str,
        /// The number of jobs in the queue.
        waiting: usize,
    },
    /// No worker became free in time.
    #[error("no {role} worker became free within {patience:?}")]
    QueueTimeout {
        /// The pool's role.
        role: &'static str,
        /// How long the job was allowed to wait.
        patience: Duration,
    },
    /// The breaker is open because workers keep dying.
    #[error("{role} workers keep dying (last: {last}); next try in {retry_after:?}")]
    BreakerOpen {
        /// The pool's role.
        role: &'static str,
        /// A description of the last death.
        last: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The pool is stopping.
    #[error("{role} pool is stopping")]
    Draining {
        /// The pool's role.
        role: &'static str,
    },
    /// A worker cannot be started, and trying again would not help.
    #[error("cannot start a {role} worker: {error}")]
    StartFailed {
        /// The pool's role.
        role: &'static str,
        /// The cause.
        error: StartError,
    },
    /// The job's worker died, and a retry was not allowed or also failed.
    #[error("{role} worker died while running the job ({class}); deaths: {}", deaths.len())]
    Died {
        /// The pool's role.
        role: &'static str,
        /// The class of the last death.
        class: DeathClass,
        /// All deaths, in order.
        deaths: Vec<Death>,
    },
    /// The job killed two workers by itself and is now quarantined.
    #[error("{role} job killed {} workers ({class}) and is now quarantined", deaths.len())]
    Poisoned {
        /// The pool's role.
        role: &'static str,
        /// The class of the last death.
        class: DeathClass,
        /// The hash that identifies its input.
        input_hash: String,
        /// All deaths, in order.
        deaths: Vec<Death>,
    },
    /// The input is quarantined, so the job was not tried.
    #[error("job is quarantined: it killed {} workers earlier ({})", poison.role, poison.class)]
    Quarantined {
        /// The quarantine's entry for it.
        poison: Poison,
    },
}

impl CallError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            CallError::BadRequest(_) => "bad_request",
            CallError::RequestTooLarge { .. } => "request_too_large",
            CallError::Unanswerable(_) => "unanswerable",
            CallError::QueueFull { .. } => "queue_full",
            CallError::QueueTimeout { .. } => "queue_timeout",
            CallError::BreakerOpen { .. } => "breaker_open",
            CallError::Draining { .. } => "draining",
            CallError::StartFailed { .. } => "start_failure",
            CallError::Died { .. } => "worker_died",
            CallError::Poisoned { .. } => "poisoned",
            CallError::Quarantined { .. } => "quarantined",
        }
    }
}

/// Why a worker could not be started, where trying again would not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The role's `warm_up` returned a refusal.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The program does not exist or cannot be executed.
    #[error("cannot execute {}: {reason}", program.display())]
    Program {
        /// The program's path.
        program: PathBuf,
        /// The operating system's error message.
        reason: String,
    },
}

impl StartError {
    /// The error to report if starting `program` would fail in the same way again; `None` if
    /// `error` may be temporary.
    pub(crate) fn lasting(program: &std::path::Path, error: &io::Error) -> Option<Self> {
        let lasting =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
        let exec_format = error.raw_os_error() == Some(libc::ENOEXEC);
        (lasting || exec_format)
            .then(|| StartError::Program { program: program.to_owned(), reason: error.to_string() })
    }
}
