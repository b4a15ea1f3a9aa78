//! Summarizes the crash reports of workers.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::{CrashReport, DeathClass, removed_reports};
use isolith_folder::{EntryKind, Folder};
use isolith_store::names::is_crash_report;

use isolith_types::counted;

use super::finding::{Finding, Health};

/// Number of deaths within [`RECENT`] that cause a warning.
const DEATHS_TO_WARN: usize = 3;
const RECENT: Duration = Duration::from_secs(600);

/// Maximum size of a report; longer files were not written by Isolith.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// Maximum number of reports to read: twice the number that is kept.
const MAX_REPORTS: usize = 400;

/// The recorded deaths of a store's workers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrashHistory {
    /// Number of deaths by class, including those whose reports were deleted.
    pub by_class: BTreeMap<DeathClass, u64>,
    /// Number of deaths within the last ten minutes.
    pub recent: usize,
    /// Number of deaths within the last day.
    pub last_day: usize,
    /// The most recent report.
    pub newest: Option<CrashReport>,
    /// Number of reports that cannot be read.
    pub unreadable: u64,
}

/// The reports in a store's `crashes/` by file name, the newest first. A missing folder has none.
pub fn crash_reports(folder: &Path) -> impl Iterator<Item = (String, CrashReport)> + use<> {
    newest_reports(folder).filter_map(|(name, report)| Some((name, report?)))
}

/// File names of reports and what is in them, the newest first; `None` if one cannot be read.
fn newest_reports(folder: &Path) -> impl Iterator<Item = (String, Option<CrashReport>)> + use<> {
    let opened = Folder::open(folder).ok();
    let entries = opened.as_ref().and_then(|folder| folder.entries().ok()).unwrap_or_default();
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File && is_crash_report(&entry.name))
        .map(|entry| entry.name)
        .collect();
    // Names sort by time.
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.into_iter().take(MAX_REPORTS).map(move |name| {
        let report = opened.as_ref().and_then(|folder| read_report(folder, &name));
        (name, report)
    })
}

impl CrashHistory {
    /// Reads the reports in a store's `crashes/`. A missing folder has none.
    pub fn read(folder: &Path) -> Self {
        let now = unix_ms();
        // Deleted reports are still counted.
        let mut history = Self { by_class: removed_reports(folder), ..Self::default() };
        for (name, report) in newest_reports(folder) {
            match report {
                Some(report) => history.add(report, now),
                // Deleted in the meantime, or incomplete.
                None => history.unreadable += u64::from(folder.join(name).exists()),
            }
        }
        history
    }

    fn add(&mut self, report: CrashReport, now: u64) {
        let age = Duration::from_millis(now.saturating_sub(report.unix_ms));
        self.recent += usize::from(age <= RECENT);
        self.last_day += usize::from(age <= Duration::from_secs(24 * 3600));
        *self.by_class.entry(report.class).or_default() += 1;
        if self.newest.as_ref().is_none_or(|newest| newest.unix_ms < report.unix_ms) {
            self.newest = Some(report);
        }
    }

    /// The total number of deaths.
    pub fn total(&self) -> u64 {
        self.by_class.values().sum()
    }

    /// A warning, if several workers died recently.
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
            let (deaths, last_day) = (counted(history.total(), "death"), history.last_day);
            parts.push(format!("{deaths} ({}), {last_day} in the last day", classes.join(", ")));
            parts.push(describe(newest));
        }
    }
    if history.unreadable > 0 {
        parts.push(format!("cannot read {}", counted(history.unreadable, "crash report")));
    }
    let quiet = history.warning().is_none() && history.unreadable == 0;
    Finding::new(if quiet { Health::Ok } else { Health::Warn }, parts.join("; "))
}

fn describe(report: &CrashReport) -> String {
    let age = Duration::from_millis(unix_ms().saturating_sub(report.unix_ms));
    let job = report.job.as_ref().map_or(String::new(), |job| format!(" ({})", job.kind));
    format!("last: {}{job}, {}, {} ago", report.role, report.end, rounded(age))
}

/// A duration in its largest unit.
fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn read_report(folder: &Folder, name: &str) -> Option<CrashReport> {
    let mut text = Vec::new();
    folder.file(name).ok()?.take(MAX_REPORT_BYTES).read_to_end(&mut text).ok()?;
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
    fn counts_deaths_by_class_and_age() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(check(temp.path()), Finding::ok("no worker has died"));
        let folder = CrashFolder::open(temp.path(), 200).unwrap();
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        folder.record(&report(DeathClass::Crash, hours(50))).unwrap();
        folder.record(&report(DeathClass::Crash, hours(2))).unwrap();
        folder.record(&report(DeathClass::Timeout, hours(0))).unwrap();
        let history = CrashHistory::read(temp.path());
        assert_eq!((history.total(), history.last_day, history.recent), (3, 2, 1));
        assert_eq!(history.by_class[&DeathClass::Crash], 2);
        assert_eq!(check(temp.path()).status, Health::Ok);
        folder.record(&report(DeathClass::Panic, hours(0))).unwrap();
        folder.record(&report(DeathClass::Panic, hours(0))).unwrap();
        let found = check(temp.path());
        assert_eq!(found.status, Health::Warn);
        assert!(found.detail.contains("3 workers died in the last 10 minutes"), "{found:?}");
    }

    #[test]
    fn counts_deleted_reports() {
        let temp = tempfile::tempdir().unwrap();
        let folder = CrashFolder::open(temp.path(), 200).unwrap();
        for _ in 0..230 {
            folder.record(&report(DeathClass::Crash, Duration::ZERO)).unwrap();
        }
        let history = CrashHistory::read(temp.path());
        assert_eq!((history.total(), history.unreadable), (230, 0));
    }

    #[test]
    fn warns_of_unreadable_reports() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("0000000000001-7-0.json"), "{").unwrap();
        let found = check(temp.path());
        assert_eq!(found.status, Health::Warn);
        assert!(found.detail.contains("cannot read 1 crash report"), "{found:?}");
    }

    #[test]
    fn rounds_durations_to_one_unit() {
        let table = [(5, "5 s"), (300, "5 min"), (10_000, "2 h"), (1_000_000, "11 days")];
        for (seconds, text) in table {
            assert_eq!(rounded(Duration::from_secs(seconds)), text);
        }
    }
}
