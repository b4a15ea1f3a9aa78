//! What a doctor says.

use isolith_roles::Health;
use isolith_types::{Code, Failure};
use serde::Serialize;

/// The state of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoctorReport {
    /// Whether everything works; there may be warnings.
    pub ok: bool,
    /// What was looked at.
    pub checks: Vec<CheckReport>,
    /// What was done about it, in sentences.
    pub repaired: Vec<String>,
    /// What kept a repair from being done.
    pub error: Option<Failure>,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The check's name.
    pub name: &'static str,
    /// How bad it is.
    pub status: Health,
    /// What was seen, for people.
    pub detail: String,
    /// How long it took.
    pub seconds: f64,
}

impl DoctorReport {
    pub(super) fn new(
        checks: Vec<CheckReport>,
        repaired: Vec<String>,
        error: Option<Failure>,
    ) -> Self {
        let ok = error.is_none() && checks.iter().all(|check| check.status <= Health::Warn);
        Self { ok, checks, repaired, error }
    }

    /// The worst that any check found.
    pub fn worst(&self) -> Health {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Health::Ok)
    }

    /// The exit status of a command that ends with this report.
    pub fn exit_status(&self) -> u8 {
        match &self.error {
            // Nothing can be said for sure before the others have let go.
            Some(error) if error.code == Code::LockHeld => error.code.exit_status(),
            _ if self.worst() == Health::Corrupt => Code::Corrupt.exit_status(),
            Some(error) => error.code.exit_status(),
            None if self.ok => 0,
            None => Code::Failed.exit_status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_follow_the_contract() {
        let report = |statuses: &[Health], error: Option<Code>| {
            let checks = statuses.iter().map(|status| CheckReport {
                name: "check",
                status: *status,
                detail: String::new(),
                seconds: 0.0,
            });
            let error = error.map(|code| Failure::new(code, ""));
            DoctorReport::new(checks.collect(), Vec::new(), error)
        };
        let table = [
            (&[Health::Ok, Health::Warn][..], None, true, 0),
            (&[Health::Failed, Health::Ok], None, false, 1),
            (&[Health::Failed, Health::Corrupt], None, false, 74),
            (&[Health::Corrupt], Some(Code::LockHeld), false, 75),
            (&[Health::Corrupt], Some(Code::DiskFull), false, 74),
            (&[Health::Warn], Some(Code::ReadOnly), false, 1),
        ];
        for (statuses, error, ok, exit) in table {
            let report = report(statuses, error);
            assert_eq!((report.ok, report.exit_status()), (ok, exit), "{report:?}");
        }
    }
}
