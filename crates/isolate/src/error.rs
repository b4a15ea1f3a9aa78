use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::class::DeathClass;
use crate::pool::Death;
use crate::quarantine::Poison;
use crate::role::Refusal;

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The request cannot be encoded.
    #[error("request cannot be encoded: {0}")]
    BadRequest(String),
    /// The request is over the pool's limit.
    #[error("request of {size} bytes is over the limit of {limit}")]
    RequestTooLarge {
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The worker is well but cannot send this reply.
    #[error("job cannot be answered: {0}")]
    Unanswerable(String),
    /// More jobs are waiting than the pool allows.
    #[error("{waiting} jobs are waiting for a {role} worker already")]
    QueueFull {
        /// The pool's role.
        role: &'static str,
        /// How many wait.
        waiting: usize,
    },
    /// No worker was free in time.
    #[error("no {role} worker was free within {patience:?}")]
    QueueTimeout {
        /// The pool's role.
        role: &'static str,
        /// How long the job was ready to wait.
        patience: Duration,
    },
    /// Workers die too often; the pool rests.
    #[error("{role} workers keep dying (last: {last}); next try in {retry_after:?}")]
    BreakerOpen {
        /// The pool's role.
        role: &'static str,
        /// What the last death was.
        last: String,
        /// When to come again.
        retry_after: Duration,
    },
    /// The pool is stopping.
    #[error("{role} pool is stopping")]
    Draining {
        /// The pool's role.
        role: &'static str,
    },
    /// No worker can be started.
    #[error("{role} worker cannot start: {error}")]
    StartFailed {
        /// The pool's role.
        role: &'static str,
        /// Why.
        error: StartError,
    },
    /// The job's worker died, and trying again was not allowed or did not help.
    #[error("{role} worker died of the job ({class}), {} time(s)", deaths.len())]
    Died {
        /// The pool's role.
        role: &'static str,
        /// The class of the last death.
        class: DeathClass,
        /// All deaths.
        deaths: Vec<Death>,
    },
    /// The job killed two workers by itself and is refused from now on.
    #[error("{role} job killed {} workers by itself ({class}) and is quarantined", deaths.len())]
    Poisoned {
        /// The pool's role.
        role: &'static str,
        /// The class of the last death.
        class: DeathClass,
        /// The hash by which its input is known.
        input_hash: String,
        /// All deaths.
        deaths: Vec<Death>,
    },
    /// The job is known to kill workers and was not tried.
    #[error("job is quarantined: it killed {} workers before ({})", poison.role, poison.class)]
    Quarantined {
        /// What is known about it.
        poison: Poison,
    },
}

impl CallError {
    /// A stable name for programs.
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

/// Why a worker could not be started, in a way that trying again would not cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The role's `warm_up` said no.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The program is not there or may not be executed.
    #[error("program {} cannot be executed: {reason}", program.display())]
    Program {
        /// Its path.
        program: PathBuf,
        /// What the system says.
        reason: String,
    },
}

impl StartError {
    /// Whether `error`, from starting `program`, will be the same next time.
    pub(crate) fn lasting(program: &std::path::Path, error: &io::Error) -> Option<Self> {
        let lasting =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
        let exec_format = error.raw_os_error() == Some(libc::ENOEXEC);
        (lasting || exec_format)
            .then(|| StartError::Program { program: program.to_owned(), reason: error.to_string() })
    }
}
