//! Crash reports: one JSON file for each death, the newest kept.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};

use crate::class::DeathClass;
use crate::supervisor::Measure;

/// Takes crash reports.
pub trait CrashSink: Send + Sync {
    /// Keeps `report`, on a thread of the runtime: be quick. An error is logged and
    /// counted; it changes nothing else.
    ///
    /// # Errors
    /// Whatever keeps the report from being kept.
    fn record(&self, report: &CrashReport) -> io::Result<()>;
}

/// What is known about the death of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashReport {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What it died of.
    pub class: DeathClass,
    /// How it ended, for people: a signal's name or an exit code.
    pub end: String,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The code it exited with.
    pub exit_code: Option<i32>,
    /// Its role.
    pub role: String,
    /// Its process; absent if there was none.
    pub pid: Option<u32>,
    /// How long it lived.
    pub age_ms: u64,
    /// How many jobs it had done.
    pub jobs_done: u64,
    /// Its resident memory when last looked at.
    pub rss_bytes: Option<u64>,
    /// The job it was running.
    pub job: Option<JobNote>,
    /// The message of its panic.
    pub panic: Option<String>,
    /// How it broke the protocol, or why it could not be started.
    pub violation: Option<String>,
    /// The last lines that it printed.
    pub output: Vec<String>,
    /// What was done about it.
    pub action: Measure,
}

/// The job in a [`CrashReport`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobNote {
    /// Its kind.
    pub kind: String,
    /// The hash of its input.
    pub input_hash: String,
    /// 0 for the first try.
    pub attempt: u32,
    /// How long it had been running.
    pub ran_ms: u64,
}

/// A folder of crash reports. It is never reached through a link, and only what has a
/// report's name is ever removed from it.
#[derive(Debug)]
pub struct CrashFolder {
    path: PathBuf,
    keep: usize,
    recorded: AtomicU64,
}

/// The folder for crash reports cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("crash reports cannot be written to {}: {source}", path.display())]
pub struct CrashFolderError {
    path: PathBuf,
    source: io::Error,
}

impl CrashFolder {
    /// Opens `path`, making it if need be, and keeps the newest `keep` reports in it.
    ///
    /// # Errors
    /// If the folder cannot be made or written to.
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

    /// Anew each time: the folder may have been replaced since the last report.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.path, flags, Mode::empty())?)
    }

    /// Removes the oldest reports beyond the limit. Names sort by time.
    fn prune(&self, folder: &OwnedFd) -> io::Result<()> {
        let mut reports: Vec<String> = Dir::read_from(folder)?
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| is_report(name))
            .collect();
        reports.sort_unstable();
        let surplus = reports.len().saturating_sub(self.keep);
        for report in &reports[..surplus] {
            // Another process may have been faster.
            let _ = unlinkat(folder, report, AtFlags::empty());
        }
        Ok(())
    }
}

impl CrashSink for CrashFolder {
    fn record(&self, report: &CrashReport) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(report)?;
        // Several may die in a millisecond, here or in another process.
        let number = self.recorded.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:013}-{}-{number}", report.unix_ms, std::process::id());
        let folder = self.open_folder()?;
        let aside = format!(".{name}");
        create_private(&folder, &aside)?.write_all(&json)?;
        renameat(&folder, aside, &folder, format!("{name}.json"))?;
        // The report is there; what is too much goes next time.
        let _ = self.prune(&folder);
        Ok(())
    }
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
    fn a_link_is_not_followed_and_foreign_files_stay() {
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
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
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
    fn the_newest_reports_are_kept_and_can_be_read_back() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("crashes");
        let folder = CrashFolder::open(&path, 3).unwrap();
        for unix_ms in [50, 10, 40, 20, 30] {
            folder.record(&report(unix_ms)).unwrap();
        }
        let mut kept: Vec<CrashReport> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap())
            .collect();
        kept.sort_by_key(|report| report.unix_ms);
        assert_eq!(kept, [report(30), report(40), report(50)]);
    }
}
