//! The report of a doctor run.

use isolith_roles::{Check, Health};
use isolith_store::Loss;
use isolith_types::{Code, Failure};
use serde::Serialize;

/// The state of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoctorReport {
    /// Whether everything works and this run lost nothing; there may be warnings.
    pub ok: bool,
    /// The results of the checks.
    pub checks: Vec<CheckReport>,
    /// The repairs that were made, in sentences.
    pub repaired: Vec<String>,
    /// Data that a salvage in this run could not recover unchanged.
    pub lost: Vec<Loss>,
    /// Why a repair failed.
    pub error: Option<Failure>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The check's name.
    pub name: &'static str,
    /// The severity.
    pub status: Health,
    /// A human-readable description.
    pub detail: String,
    /// How long it took.
    pub seconds: f64,
}

impl DoctorReport {
    pub(super) fn new(
        checks: Vec<CheckReport>,
        repaired: Vec<String>,
        lost: Vec<Loss>,
        error: Option<Failure>,
    ) -> Self {
        let sound = checks.iter().all(|check| check.status <= Health::Warn);
        let ok = error.is_none() && lost.is_empty() && sound;
        Self { ok, checks, repaired, lost, error }
    }

    /// Whether data was lost to damage, now or in an earlier salvage.
    pub fn has_losses(&self) -> bool {
        let told_before =
            |check: &CheckReport| check.name == Check::Losses.name() && check.status != Health::Ok;
        !self.lost.is_empty() || self.checks.iter().any(told_before)
    }

    /// The first check that found damage to the data itself, not only to derived files.
    pub fn damaged_data(&self) -> Option<&CheckReport> {
        let derived = [Check::Generations, Check::Segments, Check::SelfQueries].map(Check::name);
        let is_bad =
            |check: &&CheckReport| check.status > Health::Warn && !derived.contains(&check.name);
        self.checks.iter().find(is_bad)
    }

    /// The worst severity of all checks.
    pub fn worst(&self) -> Health {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Health::Ok)
    }

    /// The exit status of a command that ends with this report.
    pub fn exit_status(&self) -> u8 {
        match &self.error {
            // The result is uncertain while other processes use the store.
            Some(error) if error.code == Code::LockHeld => error.code.exit_status(),
            _ if self.worst() == Health::Corrupt => Code::Corrupt.exit_status(),
            Some(error) => error.code.exit_status(),
            // Corruption was found and not fully repaired.
            None if !self.lost.is_empty() => Code::Corrupt.exit_status(),
            None if self.ok => 0,
            None => Code::Failed.exit_status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use isolith_store::Extent;

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
            DoctorReport::new(checks.collect(), Vec::new(), Vec::new(), error)
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
            assert!(!report.has_losses());
        }
    }

    #[test]
    fn a_run_that_lost_something_is_not_ok() {
        let loss = Loss {
            table: "entity".to_owned(),
            extent: Extent::Partial,
            rows: 1,
            ids: vec!["ada".to_owned()],
            reason: "their types are lost".to_owned(),
        };
        let report = DoctorReport::new(Vec::new(), Vec::new(), vec![loss], None);
        assert_eq!((report.ok, report.exit_status(), report.has_losses()), (false, 74, true));
    }
}
