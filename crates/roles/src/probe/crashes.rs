//! What workers died of, from the reports that their fronts left.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::{CrashReport, DeathClass, removed_reports};
use isolith_folder::{EntryKind, Folder};
use isolith_store::names::is_crash_report;

use super::finding::{Finding, Health};

/// This many deaths in so short a time are worth a warning.
const DEATHS_TO_WARN: usize = 3;
/// The time in which they are counted.
const DEATHS_WITHIN: Duration = Duration::from_secs(600);

/// A report is a page of text; what is longer was not written by us.
const LONGEST_REPORT: u64 = 1 << 20;

/// Reports that are read at most: twice what is kept.
const MOST_REPORTS: usize = 400;

/// The deaths that are remembered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrashHistory {
    /// How many of each class, those among them of which no report is left.
    pub by_class: BTreeMap<DeathClass, u64>,
    /// How many within the last ten minutes.
    pub recent: usize,
    /// How many within the last day.
    pub last_day: usize,
    /// The last one.
    pub newest: Option<CrashReport>,
    /// Reports that make no sense.
    pub unreadable: u64,
}

impl CrashHistory {
    /// Reads the reports in a store's `crashes/`. A folder that is not there holds none.
    pub fn read(folder: &Path) -> Self {
        let opened = Folder::open(folder).ok();
        let entries = opened.as_ref().and_then(|folder| folder.entries().ok()).unwrap_or_default();
        let mut names: Vec<String> = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::File && is_crash_report(&entry.name))
            .map(|entry| entry.name)
            .collect();
        // Names sort by time.
        names.sort_unstable();
        let now = unix_ms();
        // Reports are kept up to a number, counts of all of them.
        let mut history = Self { by_class: removed_reports(folder), ..Self::default() };
        for name in names.iter().rev().take(MOST_REPORTS) {
            match opened.as_ref().and_then(|folder| read_report(folder, name)) {
                Some(report) => history.add(report, now),
                // Gone since it was listed, or never whole.
                None => history.unreadable += u64::from(folder.join(name).exists()),
            }
        }
        history
    }

    fn add(&mut self, report: CrashReport, now: u64) {
        let age = Duration::from_millis(now.saturating_sub(report.unix_ms));
        self.recent += usize::from(age <= DEATHS_WITHIN);
        self.last_day += usize::from(age <= Duration::from_secs(24 * 3600));
        *self.by_class.entry(report.class).or_default() += 1;
        if self.newest.as_ref().is_none_or(|newest| newest.unix_ms < report.unix_ms) {
            self.newest = Some(report);
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.by_class.values().sum()
    }

    /// What to warn of, if so many died so shortly ago.
    pub fn warning(&self) -> Option<String> {
        (self.recent >= DEATHS_TO_WARN)
            .then(|| format!("{} workers died in the last 10 minutes", self.recent))
    }
}

pub(super) fn check(folder: &Path) -> Finding {
    let history = CrashHistory::read(folder);
    let mut parts = Vec::new();
    parts.extend(history.warning());
    match &history.newest {
        None => parts.push("no worker has died".to_owned()),
        Some(newest) => {
            let classes: Vec<String> =
                history.by_class.iter().map(|(class, count)| format!("{count} {class}")).collect();
            parts.push(format!(
                "{} deaths ({}), {} in the last day",
                history.total(),
                classes.join(", "),
                history.last_day
            ));
            parts.push(describe(newest));
        }
    }
    if history.unreadable > 0 {
        parts.push(format!("{} reports cannot be read", history.unreadable));
    }
    let quiet = history.warning().is_none() && history.unreadable == 0;
    Finding::new(if quiet { Health::Ok } else { Health::Warn }, parts.join("; "))
}

fn describe(report: &CrashReport) -> String {
    let age = Duration::from_millis(unix_ms().saturating_sub(report.unix_ms));
    let job = report.job.as_ref().map_or(String::new(), |job| format!(" at {}", job.kind));
    format!("last: {}{job}, {}, {} ago", report.role, report.end, roughly(age))
}

/// A duration in its largest unit.
pub(super) fn roughly(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn read_report(folder: &Folder, name: &str) -> Option<CrashReport> {
    let mut text = Vec::new();
    folder.file(name).ok()?.take(LONGEST_REPORT).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use isolate::{CrashFolder, CrashSink, Measure};

    use super::*;

    fn report(class: DeathClass, age: Duration) -> CrashReport {
        CrashReport {
            unix_ms: unix_ms() - u64::try_from(age.as_millis()).unwrap(),
            class,
            end: "SIGSEGV".into(),
            signal: Some(11),
            exit_code: None,
            role: "store-reader".into(),
            pid: Some(7),
            age_ms: 5,
            jobs_done: 3,
            rss_bytes: None,
            job: None,
            panic: None,
            violation: None,
            output: Vec::new(),
            action: Measure::Retried,
        }
    }

    #[test]
    fn deaths_are_counted_by_class_and_age() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(check(place.path()), Finding::ok("no worker has died"));
        let folder = CrashFolder::open(place.path(), 200).unwrap();
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        folder.record(&report(DeathClass::Crash, hours(50))).unwrap();
        folder.record(&report(DeathClass::Crash, hours(2))).unwrap();
        folder.record(&report(DeathClass::Timeout, hours(0))).unwrap();
        let history = CrashHistory::read(place.path());
        assert_eq!((history.total(), history.last_day, history.recent), (3, 2, 1));
        assert_eq!(history.by_class[&DeathClass::Crash], 2);
        assert_eq!(check(place.path()).status, Health::Ok);
        folder.record(&report(DeathClass::Panic, hours(0))).unwrap();
        folder.record(&report(DeathClass::Panic, hours(0))).unwrap();
        let found = check(place.path());
        assert_eq!(found.status, Health::Warn);
        assert!(found.detail.contains("3 workers died in the last 10 minutes"), "{found:?}");
    }

    #[test]
    fn counts_do_not_end_where_reports_do() {
        let place = tempfile::tempdir().unwrap();
        let folder = CrashFolder::open(place.path(), 200).unwrap();
        for _ in 0..230 {
            folder.record(&report(DeathClass::Crash, Duration::ZERO)).unwrap();
        }
        let history = CrashHistory::read(place.path());
        assert_eq!((history.total(), history.unreadable), (230, 0));
    }

    #[test]
    fn a_report_that_makes_no_sense_is_said() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("0000000000001-7-0.json"), "{").unwrap();
        let found = check(place.path());
        assert_eq!(found.status, Health::Warn);
        assert!(found.detail.contains("1 reports cannot be read"), "{found:?}");
    }

    #[test]
    fn durations_have_one_unit() {
        let table = [(5, "5 s"), (300, "5 min"), (10_000, "2 h"), (1_000_000, "11 days")];
        for (seconds, text) in table {
            assert_eq!(roughly(Duration::from_secs(seconds)), text);
        }
    }
}
