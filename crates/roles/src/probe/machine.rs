//! What the machine gives to a store: room, rights to open files, memory; and who holds
//! the store's locks.

use std::fs;
use std::path::Path;

use isolith_store::{LockHolder, StoreFolder, lock_holders, write_lock_holder};
use rustix::process::{Resource, getrlimit};

use super::finding::{Finding, Health};

/// With less room than this, writing will soon fail.
const LITTLE_ROOM: u64 = 64 << 20;
/// A folder cannot take many more files.
const FEW_FILES: u64 = 1_000;
/// Sockets, pipes and files of a front and its workers.
const FEW_DESCRIPTORS: u64 = 256;
/// A worker with less may not even start.
const LITTLE_MEMORY: u64 = 256 << 20;

/// Whether there is room for what the store may need next: a copy of itself.
pub(super) fn disk(folder: &StoreFolder) -> Finding {
    let room = match rustix::fs::statvfs(folder.path()) {
        Ok(room) => room,
        Err(error) => {
            let detail = format!("{} cannot be measured: {error}", folder.path().display());
            return Finding::new(Health::Failed, detail);
        }
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let used = bytes_below(folder.path());
    let mut problems = Vec::new();
    if free < LITTLE_ROOM {
        problems.push("the disk is nearly full".to_owned());
    } else if free < used {
        problems.push("there is no room for a copy of the store, which a repair needs".to_owned());
    }
    if room.f_files > 0 && room.f_favail < FEW_FILES {
        problems.push(format!("room for {} more files only", room.f_favail));
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.push(format!("{} free, the store has {}", megabytes(free), megabytes(used)));
    Finding::of_problems(status, &problems)
}

/// Whether a process may open enough files and use enough memory.
pub(super) fn limits() -> Finding {
    let mut problems = Vec::new();
    let files = getrlimit(Resource::Nofile).current;
    if files.is_some_and(|files| files < FEW_DESCRIPTORS) {
        problems.push("few open files are allowed (ulimit -n)".to_owned());
    }
    for (resource, name) in [(Resource::As, "-v"), (Resource::Data, "-d")] {
        if let Some(bytes) = getrlimit(resource).current.filter(|bytes| *bytes < LITTLE_MEMORY) {
            problems
                .push(format!("only {} of memory are allowed (ulimit {name})", megabytes(bytes)));
        }
    }
    if let Some(bytes) = getrlimit(Resource::Fsize).current {
        problems.push(format!("files may not pass {} (ulimit -f)", megabytes(bytes)));
    }
    let available = available_memory();
    if available.is_some_and(|bytes| bytes < LITTLE_MEMORY) {
        problems.push("little memory is left".to_owned());
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.push(format!(
        "{} open files, {} of memory available",
        files.map_or("any number of".to_owned(), |files| files.to_string()),
        available.map_or("an unknown amount".to_owned(), megabytes),
    ));
    Finding::of_problems(status, &problems)
}

/// Who holds the store's locks, and whether any of them cannot let go. Workers of the
/// front that asks are left out: they have the store open on its behalf. For the front: a
/// worker may not look at other processes.
pub fn locks(folder: &StoreFolder, asking: u32) -> Finding {
    let mut problems = Vec::new();
    let mut told = Vec::new();
    for (path, what) in [(folder.lock_file(), "in use by"), (folder.builder_lock(), "built by")] {
        let holders = lock_holders(&path).into_iter().map(LockHolder::look_at);
        let holders: Vec<LockHolder> =
            holders.filter(|holder| holder.parent != Some(asking)).collect();
        problems.extend(holders.iter().filter_map(|holder| problem(what, holder)));
        if !holders.is_empty() {
            let names: Vec<String> = holders.iter().map(describe).collect();
            told.push(format!("{what} {}", names.join(", ")));
        }
    }
    if let Some(holder) = write_lock_holder(folder) {
        problems.extend(problem("written to by", &holder));
    }
    if told.is_empty() {
        told.push("nobody holds a lock".to_owned());
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.extend(told);
    Finding::of_problems(status, &problems)
}

fn describe(holder: &LockHolder) -> String {
    let LockHolder { pid, program, parent, .. } = holder;
    match (program.as_str(), parent) {
        ("", _) => format!("process {pid}"),
        (name, Some(parent)) => format!("{name} {pid} of {parent}"),
        (name, None) => format!("{name} {pid}"),
    }
}

fn problem(what: &str, holder: &LockHolder) -> Option<String> {
    holder.is_stopped().then(|| format!("{what} process {}, which is stopped", holder.pid))
}

/// The lengths of all files below a folder.
pub fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let lengths = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    });
    lengths.sum()
}

pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        bytes => format!("{} GB", bytes / 1_000_000_000),
    }
}

fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_measured_with_all_below_it() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("below")).unwrap();
        fs::write(place.path().join("a"), [0; 10]).unwrap();
        fs::write(place.path().join("below/b"), [0; 5]).unwrap();
        assert_eq!(bytes_below(place.path()), 15);
        assert_eq!(bytes_below(&place.path().join("nowhere")), 0);
        let found = disk(&StoreFolder::new(place.path()));
        assert!(found.detail.contains("the store has 1 kB"), "{found:?}");
        let gone = disk(&StoreFolder::new(place.path().join("nowhere")));
        assert_eq!(gone.status, Health::Failed);
    }

    #[test]
    fn holders_of_locks_are_named() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path());
        assert_eq!(locks(&folder, 0), Finding::ok("nobody holds a lock"));
        let file = fs::File::create(folder.lock_file()).unwrap();
        file.lock_shared().unwrap();
        let found = locks(&folder, 0);
        let pid = std::process::id().to_string();
        assert!(found.status == Health::Ok && found.detail.contains(&pid), "{found:?}");
    }

    #[test]
    fn sizes_are_rounded_for_people() {
        let table = [(1, "1 kB"), (5_000_000, "5 MB"), (20_000_000_000, "20 GB")];
        for (bytes, text) in table {
            assert_eq!(megabytes(bytes), text);
        }
    }
}
