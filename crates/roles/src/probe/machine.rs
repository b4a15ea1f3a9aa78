//! Checks of disk space, resource limits and lock holders.

use std::fs;
use std::path::Path;

use isolith_store::{LockHolder, StoreFolder, lock_holders, write_lock_holder};
use rustix::process::{Resource, getrlimit};

use isolith_types::counted;

use super::finding::{Finding, Health};

/// Below this, writes will fail soon.
const MIN_FREE_BYTES: u64 = 64 << 20;
const MIN_FREE_INODES: u64 = 1_000;
/// For the sockets, pipes and files of a front and its workers.
const MIN_DESCRIPTORS: u64 = 256;
/// With less, a worker may not start.
const MIN_MEMORY: u64 = 256 << 20;

/// Checks that there is space for a copy of the store, which a repair needs.
pub(super) fn disk(folder: &StoreFolder) -> Finding {
    let disk = match rustix::fs::statvfs(folder.path()) {
        Ok(disk) => disk,
        Err(error) => {
            let path = folder.path().display();
            let detail = format!("cannot get the free disk space for {path}: {error}");
            return Finding::new(Health::Failed, detail);
        }
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let used = bytes_below(folder.path());
    let mut problems = Vec::new();
    if free < MIN_FREE_BYTES {
        problems.push("the disk is nearly full".to_owned());
    } else if free < used {
        problems.push("not enough space for a copy of the store, which a repair needs".to_owned());
    }
    if disk.f_files > 0 && disk.f_favail < MIN_FREE_INODES {
        problems.push(format!("only {} can be created", counted(disk.f_favail, "more file")));
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.push(format!("{} free, the store uses {}", megabytes(free), megabytes(used)));
    Finding::of_problems(status, &problems)
}

/// Checks that processes may open enough files and use enough memory.
pub(super) fn limits() -> Finding {
    let mut problems = Vec::new();
    let files = getrlimit(Resource::Nofile).current;
    if files.is_some_and(|files| files < MIN_DESCRIPTORS) {
        problems.push("the limit of open files is low (ulimit -n)".to_owned());
    }
    for (resource, name) in [(Resource::As, "-v"), (Resource::Data, "-d")] {
        if let Some(bytes) = getrlimit(resource).current.filter(|bytes| *bytes < MIN_MEMORY) {
            problems.push(format!("memory is limited to {} (ulimit {name})", megabytes(bytes)));
        }
    }
    if let Some(bytes) = getrlimit(Resource::Fsize).current {
        problems.push(format!("file size is limited to {} (ulimit -f)", megabytes(bytes)));
    }
    let available = available_memory();
    if available.is_some_and(|bytes| bytes < MIN_MEMORY) {
        problems.push("little memory is available".to_owned());
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.push(format!(
        "{} open files, {} of memory available",
        files.map_or("any number of".to_owned(), |files| files.to_string()),
        available.map_or("an unknown amount".to_owned(), megabytes),
    ));
    Finding::of_problems(status, &problems)
}

/// Reports who holds the store's locks, and warns of holders that are stopped. Workers of process
/// `front` are left out. Must run in the front, because workers cannot inspect other processes.
pub fn locks(folder: &StoreFolder, front: u32) -> Finding {
    let mut problems = Vec::new();
    let mut holders_found = Vec::new();
    for (path, action) in
        [(folder.lock_file(), "in use by"), (folder.builder_lock(), "segments being built by")]
    {
        let holders = lock_holders(&path).into_iter().map(LockHolder::look_at);
        let holders: Vec<LockHolder> =
            holders.filter(|holder| holder.parent != Some(front)).collect();
        problems.extend(holders.iter().filter_map(|holder| problem(action, holder)));
        if !holders.is_empty() {
            let names: Vec<String> = holders.iter().map(describe).collect();
            holders_found.push(format!("{action} {}", names.join(", ")));
        }
    }
    if let Some(holder) = write_lock_holder(folder) {
        problems.extend(problem("being written by", &holder));
    }
    if holders_found.is_empty() {
        holders_found.push("no process holds a lock".to_owned());
    }
    let status = if problems.is_empty() { Health::Ok } else { Health::Warn };
    problems.extend(holders_found);
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

fn problem(action: &str, holder: &LockHolder) -> Option<String> {
    holder.is_stopped().then(|| format!("{action} process {}, which is stopped", holder.pid))
}

/// The total size of all files below a folder.
pub fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    });
    sizes.sum()
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
    fn disk_usage_includes_subfolders() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("below")).unwrap();
        fs::write(temp.path().join("a"), [0; 10]).unwrap();
        fs::write(temp.path().join("below/b"), [0; 5]).unwrap();
        assert_eq!(bytes_below(temp.path()), 15);
        assert_eq!(bytes_below(&temp.path().join("missing")), 0);
        let found = disk(&StoreFolder::new(temp.path()));
        assert!(found.detail.contains("the store uses 1 kB"), "{found:?}");
        let missing = disk(&StoreFolder::new(temp.path().join("missing")));
        assert_eq!(missing.status, Health::Failed);
    }

    #[test]
    fn names_lock_holders() {
        let temp = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(temp.path());
        assert_eq!(locks(&folder, 0), Finding::ok("no process holds a lock"));
        let file = fs::File::create(folder.lock_file()).unwrap();
        file.lock_shared().unwrap();
        let found = locks(&folder, 0);
        let pid = std::process::id().to_string();
        assert!(found.status == Health::Ok && found.detail.contains(&pid), "{found:?}");
    }

    #[test]
    fn rounds_sizes() {
        let table = [(1, "1 kB"), (5_000_000, "5 MB"), (20_000_000_000, "20 GB")];
        for (bytes, text) in table {
            assert_eq!(megabytes(bytes), text);
        }
    }
}
