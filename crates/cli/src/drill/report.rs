use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use isolate::misbehave::Fault;
use isolate::{DeathClass, Measure};
use serde::Serialize;

/// The outcome of one fault.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) fault: Fault,
    /// The classes that the supervisor reported.
    pub(super) classes: Vec<DeathClass>,
    /// The job got no answer, or an answer without its effect.
    pub(super) lost: bool,
    /// The effect took place twice, or the job was started more often than its crashes explain.
    pub(super) duplicated: bool,
    /// Time from the fault to the answer.
    pub(super) recovery: Option<Duration>,
    /// The workers that died.
    pub(super) pids: Vec<u32>,
}

impl Verdict {
    pub(super) fn misclassified(&self) -> bool {
        self.classes != self.fault.expected().into_iter().collect::<Vec<_>>()
    }
}

/// The outcome of one fault, as a line of JSON.
#[derive(Debug, Serialize)]
pub(super) struct FaultLine {
    fault: Fault,
    title: &'static str,
    /// The classes that the supervisor reported, and the one that it should.
    classes: Vec<DeathClass>,
    expected: Option<DeathClass>,
    /// Whether it was classified correctly, and the job had one effect.
    passed: bool,
    lost: bool,
    duplicated: bool,
    recovery_ms: Option<f64>,
}

impl From<&Verdict> for FaultLine {
    fn from(verdict: &Verdict) -> Self {
        let Verdict { fault, classes, lost, duplicated, recovery, pids: _ } = verdict;
        Self {
            fault: *fault,
            title: fault.describe(),
            classes: classes.clone(),
            expected: fault.expected(),
            passed: !(verdict.misclassified() || *lost || *duplicated),
            lost: *lost,
            duplicated: *duplicated,
            recovery_ms: recovery.map(milliseconds),
        }
    }
}

/// The outcome of a drill.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    seed: u64,
    injected: usize,
    misclassified: usize,
    lost: usize,
    duplicated: usize,
    orphans: usize,
    slowest_recovery_ms: f64,
    by_kind: Vec<FaultSummary>,
}

#[derive(Debug, Serialize)]
struct FaultSummary {
    kind: Fault,
    #[serde(skip)]
    title: &'static str,
    injected: usize,
    classified_as: String,
    action: String,
    /// Median.
    recovery_ms: f64,
    slowest_recovery_ms: f64,
}

impl Report {
    pub(super) fn new(
        seed: u64,
        verdicts: &[Verdict],
        measures: &HashMap<u32, Measure>,
        orphans: usize,
    ) -> Self {
        let count = |what: fn(&Verdict) -> bool| verdicts.iter().filter(|v| what(v)).count();
        let by_kind: Vec<FaultSummary> = Fault::ALL
            .into_iter()
            .filter_map(|fault| FaultSummary::new(fault, verdicts, measures))
            .collect();
        Self {
            seed,
            injected: verdicts.len(),
            misclassified: count(Verdict::misclassified),
            lost: count(|verdict| verdict.lost),
            duplicated: count(|verdict| verdict.duplicated),
            orphans,
            slowest_recovery_ms: by_kind
                .iter()
                .map(|kind| kind.slowest_recovery_ms)
                .fold(0.0, f64::max),
            by_kind,
        }
    }

    pub(super) fn passed(&self) -> bool {
        [self.misclassified, self.lost, self.duplicated, self.orphans] == [0; 4]
    }
}

impl FaultSummary {
    fn new(fault: Fault, verdicts: &[Verdict], measures: &HashMap<u32, Measure>) -> Option<Self> {
        let mine: Vec<&Verdict> = verdicts.iter().filter(|v| v.fault == fault).collect();
        let mut times: Vec<Duration> = mine.iter().filter_map(|v| v.recovery).collect();
        times.sort_unstable();
        let classes = mine.iter().flat_map(|v| v.classes.iter()).map(|class| class.name());
        let actions = mine.iter().flat_map(|v| v.pids.iter()).filter_map(|pid| measures.get(pid));
        let idle_action = match fault.expected() {
            Some(_) => "replaced",
            None => "none needed",
        };
        (!mine.is_empty()).then(|| Self {
            kind: fault,
            title: fault.describe(),
            injected: mine.len(),
            classified_as: distinct(classes, "none"),
            action: distinct(actions.map(|measure| action_name(*measure)), idle_action),
            recovery_ms: times
                .get(times.len().saturating_sub(1) / 2)
                .copied()
                .map_or(0.0, milliseconds),
            slowest_recovery_ms: times.last().copied().map_or(0.0, milliseconds),
        })
    }
}

fn action_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Retried => "retried",
        Measure::RetriedAlone => "retried alone",
        Measure::Quarantined => "quarantined",
        Measure::GaveUp => "given up",
        Measure::Dropped => "dropped",
        Measure::Replaced => "replaced",
    }
}

/// The different names, or `none` if there are none.
fn distinct<'a>(names: impl Iterator<Item = &'a str>, none: &str) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", HEADER)?;
        for kind in &self.by_kind {
            writeln!(
                f,
                "{:<22}{:>9}  {:<14} {:<14}{:>12}{:>12}",
                kind.title,
                kind.injected,
                kind.classified_as,
                kind.action,
                format!("{:.2} ms", kind.recovery_ms),
                format!("{:.2} ms", kind.slowest_recovery_ms),
            )?;
        }
        writeln!(f)?;
        writeln!(f, "injected          {:>9}   (seed {})", self.injected, self.seed)?;
        writeln!(f, "misclassified     {:>9}", self.misclassified)?;
        writeln!(f, "jobs lost         {:>9}", self.lost)?;
        writeln!(f, "jobs duplicated   {:>9}", self.duplicated)?;
        writeln!(f, "orphans           {:>9}", self.orphans)?;
        writeln!(f, "slowest recovery  {:>9.2} ms", self.slowest_recovery_ms)
    }
}

const HEADER: &str =
    "fault                  injected  classified as  done about it       median     slowest";

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(fault: Fault, classes: &[DeathClass]) -> Verdict {
        Verdict {
            fault,
            classes: classes.to_vec(),
            lost: false,
            duplicated: false,
            recovery: Some(Duration::from_micros(1500)),
            pids: vec![4],
        }
    }

    fn report(verdicts: &[Verdict], orphans: usize) -> Report {
        Report::new(7, verdicts, &HashMap::from([(4, Measure::Retried)]), orphans)
    }

    #[test]
    fn a_clean_drill_passes() {
        let clean = [
            verdict(Fault::Segfault, &[DeathClass::Crash]),
            Verdict { pids: vec![], ..verdict(Fault::ClosedStdout, &[]) },
        ];
        let report = report(&clean, 0);
        assert!(report.passed());
        insta::assert_snapshot!("report", report.to_string());
        insta::assert_snapshot!("report_json", serde_json::to_string_pretty(&report).unwrap());
    }

    #[test]
    fn a_drill_with_any_problem_fails() {
        let good = verdict(Fault::Segfault, &[DeathClass::Crash]);
        let spoilt = [
            vec![verdict(Fault::Segfault, &[DeathClass::Killed])],
            vec![verdict(Fault::Segfault, &[])],
            vec![verdict(Fault::Segfault, &[DeathClass::Crash, DeathClass::Crash])],
            vec![Verdict { lost: true, ..good.clone() }],
            vec![Verdict { duplicated: true, ..good.clone() }],
        ];
        for verdicts in spoilt {
            assert!(!report(&verdicts, 0).passed(), "{verdicts:?}");
        }
        assert!(!report(&[good], 1).passed());
    }
}
