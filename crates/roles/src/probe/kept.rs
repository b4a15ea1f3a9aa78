//! What a store keeps beside its records, and how much of it may be.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isolith_folder::{EntryKind, Folder};
use isolith_segment::is_temporary;
use isolith_store::{StoreFolder, names};

use super::finding::{Cure, Finding, Health};
use super::machine::megabytes;

/// Crash reports that are kept.
const MOST_REPORTS: usize = 200;
/// Bytes of logs that are kept.
const MOST_LOG_BYTES: u64 = 20 << 20;

/// What nobody has touched for so long is no longer being made.
const LEFT_FOR: Duration = Duration::from_secs(3600);

/// What is there, by kind, the oldest first.
struct Stock {
    reports: Vec<Item>,
    logs: Vec<Item>,
    /// Sets of quarantined segments: one for each collection may stay, the newest.
    outdated_quarantine: Vec<Item>,
    quarantined: usize,
    damaged_truths: Vec<Item>,
    leftovers: Vec<Item>,
}

struct Item {
    /// The folder that it is in.
    folder: PathBuf,
    name: String,
    bytes: u64,
    modified: SystemTime,
}

/// Shows what is kept.
pub(super) fn check(folder: &StoreFolder) -> Finding {
    let stock = Stock::take(folder);
    let surplus = stock.surplus();
    let mut told = Vec::new();
    if !surplus.is_empty() {
        told.push(format!("{} files are more than may be kept", surplus.len()));
    }
    if !stock.leftovers.is_empty() {
        told.push(format!("{} files were left behind half made", stock.leftovers.len()));
    }
    let status = if told.is_empty() { Health::Ok } else { Health::Warn };
    told.push(format!(
        "{} crash reports of {MOST_REPORTS}, {} of logs of {}, {} quarantined segments",
        stock.reports.len(),
        megabytes(total(&stock.logs)),
        megabytes(MOST_LOG_BYTES),
        stock.quarantined,
    ));
    if !stock.damaged_truths.is_empty() {
        let bytes = megabytes(total(&stock.damaged_truths));
        told.push(format!("files of a damaged truth are kept beside it ({bytes})"));
    }
    let finding = Finding::of_problems(status, &told);
    if stock.leftovers.is_empty() { finding } else { finding.with(Cure::Leftovers) }
}

/// Removes what is over its limit. Returns what was done.
///
/// # Errors
/// The first file that could not be removed.
pub(super) fn enforce(folder: &StoreFolder) -> io::Result<Vec<String>> {
    let removed = remove_all(&Stock::take(folder).surplus())?;
    Ok(match removed {
        0 => Vec::new(),
        removed => vec![format!("removed {removed} files that were more than may be kept")],
    })
}

/// Removes what a process left behind when it died. Returns what was done.
///
/// # Errors
/// The first file that could not be removed.
pub(super) fn remove_leftovers(folder: &StoreFolder) -> io::Result<Vec<String>> {
    let stock = Stock::take(folder);
    let removed = remove_all(&stock.leftovers.iter().collect::<Vec<_>>())?;
    Ok(match removed {
        0 => Vec::new(),
        removed => vec![format!("removed {removed} files that were left behind half made")],
    })
}

impl Stock {
    fn take(folder: &StoreFolder) -> Self {
        let reports = items(&folder.crashes(), names::is_crash_report);
        let quarantine = items(&folder.quarantine(), names::is_segment);
        let quarantined = quarantine.len();
        let mut leftovers = items(&folder.run(), names::is_unfinished);
        leftovers.extend(items(&folder.segments(), is_temporary));
        leftovers.extend(items(&folder.crashes(), names::is_unfinished_report));
        leftovers.retain(|item| item.modified.elapsed().is_ok_and(|age| age > LEFT_FOR));
        Self {
            reports,
            logs: items(&folder.logs(), names::is_log),
            outdated_quarantine: outdated(quarantine),
            quarantined,
            damaged_truths: items(folder.path(), names::is_damaged_truth),
            leftovers,
        }
    }

    fn surplus(&self) -> Vec<&Item> {
        let reports = self.reports.len().saturating_sub(MOST_REPORTS);
        let mut surplus: Vec<&Item> = self.reports.iter().take(reports).collect();
        surplus.extend(&self.outdated_quarantine);
        let mut bytes = total(&self.logs);
        for log in &self.logs {
            if bytes <= MOST_LOG_BYTES {
                break;
            }
            bytes -= log.bytes;
            surplus.push(log);
        }
        surplus
    }
}

/// Quarantined files that are older than the newest ones made from the same. Names are
/// `c<collection>-<generation>-…`, and `g-<change>-…` for the graph.
fn outdated(files: Vec<Item>) -> Vec<Item> {
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    for (source, number) in files.iter().filter_map(|item| origin(&item.name)) {
        let known = newest.entry(source.to_owned()).or_default();
        *known = number.max(*known);
    }
    let old =
        |item: &Item| origin(&item.name).is_none_or(|(source, number)| number < newest[source]);
    files.into_iter().filter(old).collect()
}

fn origin(name: &str) -> Option<(&str, u64)> {
    let mut parts = name.split('-');
    let source = parts.next()?;
    let known = source == "g" || source.strip_prefix('c')?.parse::<u64>().is_ok();
    known.then_some((source, parts.next()?.parse().ok()?))
}

/// The files of a folder that have such names, the oldest first. A folder that is not there
/// has none.
fn items(folder: &Path, ours: impl Fn(&str) -> bool) -> Vec<Item> {
    let entries = Folder::open(folder).and_then(|folder| folder.entries()).unwrap_or_default();
    let mut items: Vec<Item> = entries
        .into_iter()
        .filter(|entry| entry.kind != EntryKind::Folder && ours(&entry.name))
        .map(|entry| {
            let isolith_folder::Entry { name, bytes, modified, .. } = entry;
            Item { folder: folder.to_owned(), name, bytes, modified }
        })
        .collect();
    items.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.name.cmp(&b.name)));
    items
}

fn total(items: &[Item]) -> u64 {
    items.iter().map(|item| item.bytes).sum()
}

fn remove_all(items: &[&Item]) -> io::Result<usize> {
    let mut removed = 0;
    for item in items {
        match Folder::open(&item.folder).and_then(|folder| folder.remove(&item.name)) {
            Ok(()) => removed += 1,
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("{}: {error}", item.folder.join(&item.name).display());
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
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path());
        folder.create().unwrap();
        (place, folder)
    }

    fn age(path: &Path, by: Duration) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn the_newest_reports_and_logs_stay() {
        let (_place, folder) = folder();
        for number in 0..203 {
            fs::write(folder.crashes().join(format!("{number:013}-7-0.json")), "{}").unwrap();
        }
        for number in 0..3 {
            let log = folder.logs().join(format!("7-{number}.jsonl"));
            fs::write(&log, vec![b' '; 9 << 20]).unwrap();
            age(&log, Duration::from_secs(100 - number));
        }
        assert_eq!(check(&folder).status, Health::Warn);
        assert_eq!(enforce(&folder).unwrap(), ["removed 4 files that were more than may be kept"]);
        assert_eq!(check(&folder).status, Health::Ok);
        assert!(
            !folder.logs().join("7-0.jsonl").exists() && folder.logs().join("7-2.jsonl").exists()
        );
        assert_eq!(fs::read_dir(folder.crashes()).unwrap().count(), 200);
        assert!(enforce(&folder).unwrap().is_empty());
    }

    #[test]
    fn one_quarantined_set_stays_for_each_collection() {
        let (_place, folder) = folder();
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
    fn only_what_is_old_was_left_behind() {
        let (_place, folder) = folder();
        let old = folder.segments().join(".tmp-0123456789abcdef");
        let new = folder.segments().join(".tmp-0123456789abcde0");
        let socket = folder.run().join("1-0123456789abcdef.sock");
        for path in [&old, &new, &socket] {
            fs::write(path, "").unwrap();
        }
        age(&old, 2 * LEFT_FOR);
        age(&socket, 2 * LEFT_FOR);
        let found = check(&folder);
        assert_eq!(found.cures, [Cure::Leftovers], "{found:?}");
        assert_eq!(remove_leftovers(&folder).unwrap().len(), 1);
        assert!(!old.exists() && new.exists() && socket.exists());
        assert_eq!(check(&folder).status, Health::Ok);
    }
}
