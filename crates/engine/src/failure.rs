//! Converts failed calls into public failures.

use std::path::Path;

use isolate::{CallError, Death, DeathClass, End};
use isolith_types::{Code, DeathNote, Failure, Hint};

/// Converts the error of a call.
pub fn of_call(error: &CallError) -> Failure {
    let (code, hint): (_, Hint) = match error {
        CallError::BadRequest(_) => (Code::Failed, "".into()),
        CallError::Unanswerable(_) => (Code::TooLarge, "ask for less at once".into()),
        CallError::RequestTooLarge { .. } => (Code::TooLarge, "split the input".into()),
        CallError::QueueFull { .. } => (Code::QueueFull, "the system is busy; try again".into()),
        CallError::QueueTimeout { .. } => (Code::Timeout, "the system is busy; try again".into()),
        CallError::BreakerOpen { .. } => (Code::BreakerOpen, "wait, then try again".into()),
        CallError::Draining { .. } => (Code::Draining, "".into()),
        CallError::StartFailed { .. } => (Code::StartFailure, "".into()),
        CallError::Died { class: DeathClass::Timeout, .. } => {
            (Code::Timeout, "raise the timeout or reduce the work".into())
        }
        CallError::Died { .. } => (Code::WorkerDied, "".into()),
        CallError::Poisoned { .. } | CallError::Quarantined { .. } => {
            (Code::Quarantined, Hint::InspectQuarantine)
        }
    };
    let failure = Failure::new(code, error.to_string()).with_hint(hint);
    match error {
        CallError::Died { deaths, .. } | CallError::Poisoned { deaths, .. } => {
            deaths.last().map(note).map_or(failure.clone(), |note| failure.with_death(note))
        }
        _ => failure,
    }
}

/// The public description of a death.
fn note(death: &Death) -> DeathNote {
    let (signal, exit_code) = match death.end {
        End::Signaled(signal) => (Some(signal), None),
        End::Exited(code) => (None, Some(code)),
        End::Unknown => (None, None),
    };
    DeathNote { class: death.class.to_string(), signal, exit_code, worker_pid: death.pid }
}

/// The store was replaced by another one while it was open.
pub(crate) fn replaced(store: &Path) -> Failure {
    let message = format!("the store in {} was replaced while it was open", store.display());
    Failure::new(Code::StoreReplaced, message).with_hint("try again: another store is there now")
}

/// Whether a worker found a different store than it was started for.
pub(crate) fn is_another_store(failure: &Failure) -> bool {
    matches!(failure.code, Code::StoreReplaced | Code::StoreForeign | Code::NoStore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_temporary_and_a_crash_is_not() {
        let died = |class| CallError::Died { role: "parse", class, deaths: Vec::new() };
        assert_eq!(of_call(&died(DeathClass::Timeout)).code.exit_status(), 75);
        assert_eq!(of_call(&died(DeathClass::Crash)).code.exit_status(), 70);
    }
}
