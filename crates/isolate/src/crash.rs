//! Crash reports: one JSON file per death. The newest are kept; the removed ones are counted.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};

use crate::class::DeathClass;
use crate::supervisor::Measure;

/// Receives crash reports.
pub trait CrashSink: Send + Sync {
    /// Stores `report`. Called on a thread of the runtime, so it must be fast. An error is
    /// logged and counted, and has no other effect.
    ///
    /// # Errors
    /// If the report cannot be stored.
    fn record(&self, report: &CrashReport) -> io::Result<()>;
}

/// The report of a worker's death.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashReport {
    /// When it died, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The class of the death.
    pub class: DeathClass,
    /// How the process ended: the signal's name or the exit code.
    pub end: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The code it exited with.
    pub exit_code: Option<i32>,
    /// Its role.
    pub role: String,
    /// Its process ID; absent if the process could not be started.
    pub pid: Option<u32>,
    /// How long it lived.
    pub age_ms: u64,
    /// The number of jobs it had completed.
    pub jobs_done: u64,
    /// Its resident memory when last sampled.
    pub rss_bytes: Option<u64>,
    /// The job it was running.
    pub job: Option<JobNote>,
    /// Its panic message.
    pub panic: Option<String>,
    /// How it broke the protocol, or why it could not be started.
    pub violation: Option<String>,
    /// The last lines it printed.
    pub output: Vec<String>,
    /// What was done about it.
    pub action: Measure,
}

/// The job in a [`CrashReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobNote {
    /// Its kind, from [`Role::kind`](crate::Role::kind).
    pub kind: String,
    /// The hash of its input.
    pub input_hash: String,
    /// 0 for the first attempt.
    pub attempt: u32,
    /// How long it had been running.
    pub ran_ms: u64,
}

/// A folder of crash reports. Links are not followed, and only files named like reports are
/// removed.
#[derive(Debug)]
pub struct CrashFolder {
    path: PathBuf,
    keep: usize,
    recorded: AtomicU64,
}

/// The folder for crash reports cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot write crash reports to {}: {source}", path.display())]
pub struct CrashFolderError {
    path: PathBuf,
    source: io::Error,
}

impl CrashFolder {
    /// Opens `path`, creating it if necessary, and keeps the newest `keep` reports in it.
    ///
    /// # Errors
    /// If the folder cannot be created or written to.
    pub fn open(path: impl Into<PathBuf>, keep: usize) -> Result<Self, CrashFolderError> {
        let folder = Self { path: path.into(), keep, recorded: AtomicU64::new(0) };
        match folder.probe() {
            Ok(()) => Ok(folder),
            Err(source) => Err(CrashFolderError { path: folder.path, source }),
        }
    }

    fn probe(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        let folder = self.open_folder()?;
        let probe = format!(".probe-{}", std::process::id());
        create_private(&folder, &probe)?;
        Ok(unlinkat(&folder, probe, AtFlags::empty())?)
    }

    /// Opened for each report, because the folder may have been replaced since the last one.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.path, flags, Mode::empty())?)
    }

    /// Removes the oldest reports beyond the limit and counts them. Names sort by time.
    fn prune(&self, folder: &OwnedFd) -> io::Result<()> {
        let mut reports: Vec<String> = Dir::read_from(folder)?
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| is_report(name))
            .collect();
        reports.sort_unstable();
        let surplus = reports.len().saturating_sub(self.keep);
        let mut removed: BTreeMap<DeathClass, u64> = BTreeMap::new();
        for name in &reports[..surplus] {
            let class = read_class(folder, name);
            // If another process removed it first, that process counts it.
            if unlinkat(folder, name, AtFlags::empty()).is_ok()
                && let Some(class) = class
            {
                *removed.entry(class).or_default() += 1;
            }
        }
        if removed.is_empty() { Ok(()) } else { self.count_removed(folder, &removed) }
    }

    /// Appends one line per call; appends from several processes do not mix.
    fn count_removed(
        &self,
        folder: &OwnedFd,
        removed: &BTreeMap<DeathClass, u64>,
    ) -> io::Result<()> {
        let mut line = serde_json::to_vec(removed)?;
        line.push(b'\n');
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(folder, REMOVED_COUNTS, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&line)?;
        if file.metadata()?.len() > MAX_COUNTS_BYTES {
            // Lines that another process appends right now may be lost. That is acceptable:
            // only the counts of removed reports are affected.
            let mut all = serde_json::to_vec(&removed_reports(&self.path))?;
            all.push(b'\n');
            let aside = format!(".removed-{}", std::process::id());
            create_private(folder, &aside)?.write_all(&all)?;
            renameat(folder, aside, folder, REMOVED_COUNTS)?;
        }
        Ok(())
    }
}

/// The file that counts removed reports.
const REMOVED_COUNTS: &str = "removed";

/// Longer reports are not read.
const MAX_REPORT_BYTES: u64 = 4 << 20;

/// When the file of counts grows beyond this, its lines are merged into one.
const MAX_COUNTS_BYTES: u64 = 64 << 10;

/// The number of deaths by class whose reports have been removed from `folder`.
pub fn removed_reports(folder: &Path) -> BTreeMap<DeathClass, u64> {
    let mut options = OpenOptions::new();
    let opened = options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(folder.join(REMOVED_COUNTS));
    let mut text = String::new();
    let read = opened.and_then(|file| file.take(4 * MAX_COUNTS_BYTES).read_to_string(&mut text));
    let mut all = BTreeMap::new();
    if read.is_ok() {
        for line in text.lines() {
            // Skip a damaged line, and use the others.
            let counts: BTreeMap<DeathClass, u64> = serde_json::from_str(line).unwrap_or_default();
            for (class, count) in counts {
                let sum: &mut u64 = all.entry(class).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    all
}

impl CrashSink for CrashFolder {
    fn record(&self, report: &CrashReport) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(report)?;
        // Several workers may die in the same millisecond, here or in another process.
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:013}-{}-{number}", report.unix_ms, std::process::id());
        let folder = self.open_folder()?;
        let aside = format!(".{name}");
        create_private(&folder, &aside)?.write_all(&json)?;
        renameat(&folder, aside, &folder, format!("{name}.json"))?;
        // The report is stored; if pruning fails, the next report prunes again.
        let _ = self.prune(&folder);
        Ok(())
    }
}

fn read_class(folder: &OwnedFd, name: &str) -> Option<DeathClass> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    let mut json = Vec::new();
    file.take(MAX_REPORT_BYTES).read_to_end(&mut json).ok()?;
    let CrashReport { class, .. } = serde_json::from_slice(&json).ok()?;
    Some(class)
}

fn create_private(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?))
}

/// `<ms since 1970>-<process>-<number>.json`.
fn is_report(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".json") else { return false };
    let parts: Vec<&str> = stem.split('-').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    parts.len() == 3 && parts[0].len() >= 13 && parts.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_followed_and_other_files_are_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let outside = scratch.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let link = scratch.path().join("crashes");
        symlink(&outside, &link).unwrap();
        assert!(CrashFolder::open(&link, 1).is_err());
        fs::write(outside.join("package.json"), "{}").unwrap();
        let folder = CrashFolder::open(&outside, 1).unwrap();
        folder.record(&report(1)).unwrap();
        folder.record(&report(2)).unwrap();
        assert!(outside.join("package.json").exists());
        let reports = fs::read_dir(&outside).unwrap().flatten();
        let reports = reports.filter(|entry| is_report(&entry.file_name().to_string_lossy()));
        assert_eq!(reports.count(), 1);
    }

    fn report(unix_ms: u64) -> CrashReport {
        CrashReport {
            unix_ms,
            class: DeathClass::Crash,
            end: "SIGSEGV".into(),
            signal: Some(11),
            exit_code: None,
            role: "test".into(),
            pid: Some(7),
            age_ms: 5,
            jobs_done: 3,
            rss_bytes: None,
            job: None,
            panic: None,
            violation: None,
            output: vec!["last words".into()],
            action: Measure::Retried,
        }
    }

    #[test]
    fn the_newest_reports_are_kept_and_readable() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("crashes");
        let folder = CrashFolder::open(&path, 3).unwrap();
        for unix_ms in [50, 10, 40, 20, 30] {
            folder.record(&report(unix_ms)).unwrap();
        }
        let mut kept: Vec<CrashReport> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
            .collect();
        kept.sort_by_key(|report| report.unix_ms);
        assert_eq!(kept, [report(30), report(40), report(50)]);
        assert_eq!(removed_reports(&path), [(DeathClass::Crash, 2)].into());
    }

    #[test]
    fn deaths_with_removed_reports_are_counted() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = CrashFolder::open(scratch.path(), 2).unwrap();
        // Enough that the counts are merged on the way.
        fs::write(scratch.path().join(REMOVED_COUNTS), "{\"crash\":1}\n".repeat(6_000)).unwrap();
        let classes = [DeathClass::Crash, DeathClass::Timeout].into_iter().cycle();
        for (unix_ms, class) in (0..300).zip(classes) {
            folder.record(&CrashReport { class, ..report(unix_ms) }).unwrap();
        }
        let removed = removed_reports(scratch.path());
        assert_eq!(removed, [(DeathClass::Crash, 6_149), (DeathClass::Timeout, 149)].into());
        assert!(fs::metadata(scratch.path().join(REMOVED_COUNTS)).unwrap().len() < 10_000);
    }
}
