//! Files that are kept only up to a limit (crash reports, logs, quarantined segments), and
//! leftovers of crashed processes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isolith_folder::{EntryKind, Folder};
use isolith_segment::is_temporary;
use isolith_store::{StoreFolder, names};

use isolith_types::counted;

use super::finding::{Finding, Health, Repair};
use super::machine::megabytes;

const MAX_REPORTS: usize = 200;
const MAX_LOG_BYTES: u64 = 20 << 20;

/// Unfinished files are leftovers if they were not modified for this long.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// The files found, by kind, oldest first.
struct KeptFiles {
    reports: Vec<KeptFile>,
    logs: Vec<KeptFile>,
    /// Quarantined segments that are not among the newest of their collection.
    outdated_quarantine: Vec<KeptFile>,
    quarantined: usize,
    damaged_truths: Vec<KeptFile>,
    leftovers: Vec<KeptFile>,
}

struct KeptFile {
    folder: PathBuf,
    name: String,
    bytes: u64,
    modified: SystemTime,
}

/// Reports the kept files.
pub(super) fn check(folder: &StoreFolder) -> Finding {
    let files = KeptFiles::list(folder);
    let surplus = files.surplus();
    let mut details = Vec::new();
    if !surplus.is_empty() {
        details.push(format!("{} over the limit", counted(surplus.len(), "file")));
    }
    if !files.leftovers.is_empty() {
        details.push(format!("{} left behind", counted(files.leftovers.len(), "unfinished file")));
    }
    let status = if details.is_empty() { Health::Ok } else { Health::Warn };
    details.push(format!(
        "{} of {MAX_REPORTS} crash reports, {} of {} of logs, {}",
        files.reports.len(),
        megabytes(total(&files.logs)),
        megabytes(MAX_LOG_BYTES),
        counted(files.quarantined, "quarantined segment"),
    ));
    if !files.damaged_truths.is_empty() {
        let bytes = megabytes(total(&files.damaged_truths));
        details.push(format!("files of a damaged database are kept ({bytes})"));
    }
    let finding = Finding::of_problems(status, &details);
    if files.leftovers.is_empty() { finding } else { finding.with(Repair::Leftovers) }
}

/// Removes files that exceed their limit. Returns a description of what was done, or the error of
/// the first file that could not be removed.
pub(super) fn enforce(folder: &StoreFolder) -> io::Result<Vec<String>> {
    let removed = remove_all(&KeptFiles::list(folder).surplus())?;
    Ok(match removed {
        0 => Vec::new(),
        removed => vec![format!("removed {} over the limit", counted(removed, "file"))],
    })
}

/// Removes unfinished files of crashed processes. Returns as [`enforce`] does.
pub(super) fn remove_leftovers(folder: &StoreFolder) -> io::Result<Vec<String>> {
    let files = KeptFiles::list(folder);
    let removed = remove_all(&files.leftovers.iter().collect::<Vec<_>>())?;
    Ok(match removed {
        0 => Vec::new(),
        removed => vec![format!("removed {}", counted(removed, "unfinished file"))],
    })
}

impl KeptFiles {
    fn list(folder: &StoreFolder) -> Self {
        let reports = files_in(&folder.crashes(), names::is_crash_report);
        let quarantine = files_in(&folder.quarantine(), names::is_segment);
        let quarantined = quarantine.len();
        let mut leftovers = files_in(&folder.run(), names::is_unfinished);
        leftovers.extend(files_in(&folder.segments(), is_temporary));
        leftovers.extend(files_in(&folder.crashes(), names::is_unfinished_report));
        leftovers.retain(|file| file.modified.elapsed().is_ok_and(|age| age > LEFTOVER_AGE));
        Self {
            reports,
            logs: files_in(&folder.logs(), names::is_log),
            outdated_quarantine: outdated(quarantine),
            quarantined,
            damaged_truths: files_in(folder.path(), names::is_damaged_truth),
            leftovers,
        }
    }

    fn surplus(&self) -> Vec<&KeptFile> {
        let reports = self.reports.len().saturating_sub(MAX_REPORTS);
        let mut surplus: Vec<&KeptFile> = self.reports.iter().take(reports).collect();
        surplus.extend(&self.outdated_quarantine);
        let mut bytes = total(&self.logs);
        for log in &self.logs {
            if bytes <= MAX_LOG_BYTES {
                break;
            }
            bytes -= log.bytes;
            surplus.push(log);
        }
        surplus
    }
}

/// Quarantined segments that are older than the newest of the same collection, or of the graph.
/// Names are `c<collection>-<generation>-…` and `g-<change>-…`.
fn outdated(files: Vec<KeptFile>) -> Vec<KeptFile> {
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for (source, number) in files.iter().filter_map(|file| origin(&file.name)) {
        let known = newest.entry(source.to_owned()).or_default();
        *known = number.max(*known);
    }
    let old =
        |file: &KeptFile| origin(&file.name).is_none_or(|(source, number)| number < newest[source]);
    files.into_iter().filter(old).collect()
}

fn origin(name: &str) -> Option<(&str, u64)> {
    let mut parts = name.split('-');
    let source = parts.next()?;
    let known = source == "g" || source.strip_prefix('c')?.parse::<u64>().is_ok();
    known.then_some((source, parts.next()?.parse().ok()?))
}

/// The files of a folder whose names match, oldest first. A missing folder has none.
fn files_in(folder: &Path, matches: impl Fn(&str) -> bool) -> Vec<KeptFile> {
    let entries = Folder::open(folder).and_then(|folder| folder.entries()).unwrap_or_default();
    let mut files: Vec<KeptFile> = entries
        .into_iter()
        .filter(|entry| entry.kind != EntryKind::Folder && matches(&entry.name))
        .map(|entry| {
            let isolith_folder::Entry { name, bytes, modified, .. } = entry;
            KeptFile { folder: folder.to_owned(), name, bytes, modified }
        })
        .collect();
    files.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.name.cmp(&b.name)));
    files
}

fn total(files: &[KeptFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

fn remove_all(files: &[&KeptFile]) -> io::Result<usize> {
    let mut removed = 0;
    for file in files {
        match Folder::open(&file.folder).and_then(|folder| folder.remove(&file.name)) {
            Ok(()) => removed += 1,
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("{}: {error}", file.folder.join(&file.name).display());
                return Err(io::Error::new(error.kind(), text));
            }
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> (tempfile::TempDir, StoreFolder) {
        let temp = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(temp.path());
        folder.create().unwrap();
        (temp, folder)
    }

    fn set_age(path: &Path, by: Duration) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn keeps_the_newest_reports_and_logs() {
        let (_temp, folder) = folder();
        for number in 0..203 {
            fs::write(folder.crashes().join(format!("{number:013}-7-0.json")), "{}").unwrap();
        }
        for number in 0..3 {
            let log = folder.logs().join(format!("7-{number}.jsonl"));
            fs::write(&log, vec![b' '; 9 << 20]).unwrap();
            set_age(&log, Duration::from_secs(100 - number));
        }
        assert_eq!(check(&folder).status, Health::Warn);
        assert_eq!(enforce(&folder).unwrap(), ["removed 4 files over the limit"]);
        assert_eq!(check(&folder).status, Health::Ok);
        assert!(
            !folder.logs().join("7-0.jsonl").exists() && folder.logs().join("7-2.jsonl").exists()
        );
        assert_eq!(fs::read_dir(folder.crashes()).unwrap().count(), 200);
        assert!(enforce(&folder).unwrap().is_empty());
    }

    #[test]
    fn keeps_one_quarantined_set_per_collection() {
        let (_temp, folder) = folder();
        for name in [
            "c1-9-base-0000000a.vec",
            "c1-10-base-0000000b.vec",
            "c1-10-base-0000000c.txt",
            "c2-1-delta-0000000d.vec",
        ] {
            fs::write(folder.quarantine().join(name), "").unwrap();
        }
        fs::write(folder.quarantine().join("g-8-0000000e.adj"), "").unwrap();
        fs::write(folder.quarantine().join("g-7-0000000f.adj"), "").unwrap();
        assert_eq!(enforce(&folder).unwrap().len(), 1);
        assert!(!folder.quarantine().join("c1-9-base-0000000a.vec").exists());
        assert!(!folder.quarantine().join("g-7-0000000f.adj").exists());
        assert_eq!(fs::read_dir(folder.quarantine()).unwrap().count(), 4);
    }

    #[test]
    fn removes_only_old_leftovers() {
        let (_temp, folder) = folder();
        let old = folder.segments().join(".tmp-0123456789abcdef");
        let new = folder.segments().join(".tmp-0123456789abcde0");
        let socket = folder.run().join("1-0123456789abcdef.sock");
        for path in [&old, &new, &socket] {
            fs::write(path, "").unwrap();
        }
        set_age(&old, 2 * LEFTOVER_AGE);
        set_age(&socket, 2 * LEFTOVER_AGE);
        let found = check(&folder);
        assert_eq!(found.repairs, [Repair::Leftovers], "{found:?}");
        assert_eq!(remove_leftovers(&folder).unwrap().len(), 1);
        assert!(!old.exists() && new.exists() && socket.exists());
        assert_eq!(check(&folder).status, Health::Ok);
    }
}
