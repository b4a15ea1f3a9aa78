//! Memory use of processes, and out-of-memory kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The resident memory of a running process.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Returns freed memory that the allocator has kept to the system. Call it after large
/// allocations in a process that keeps running.
#[cfg_attr(target_env = "gnu", allow(unsafe_code))]
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer and may be called from any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// An out-of-memory kill explains deaths that are noticed within this time after it.
const OOM_KILL_WINDOW: Duration = Duration::from_secs(2);

/// Watches for out-of-memory kills, in our own cgroup if the kernel counts them there.
#[derive(Debug)]
pub(crate) struct OomKills {
    file: PathBuf,
    seen: u64,
    last: Option<Instant>,
}

impl OomKills {
    pub(crate) fn watch() -> Self {
        let file = counter_file(Path::new("/"));
        let seen = count_in(&file);
        Self { file, seen, last: None }
    }

    /// Samples the counter. Called regularly, so that an old kill does not explain a new death.
    pub(crate) fn sample(&mut self) {
        let now = count_in(&self.file);
        if now > self.seen {
            self.last = Some(Instant::now());
        }
        self.seen = now;
    }

    /// Whether a kill happened recently.
    pub(crate) fn happened_recently(&mut self) -> bool {
        self.sample();
        self.last.is_some_and(|at| at.elapsed() < OOM_KILL_WINDOW)
    }
}

/// The most specific file that counts `oom_kill`s: that of our cgroup (version 2, then version
/// 1), otherwise that of the whole machine.
fn counter_file(root: &Path) -> PathBuf {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let candidates = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        let group = group.trim_start_matches('/');
        if controllers.is_empty() {
            Some(root.join("sys/fs/cgroup").join(group).join("memory.events"))
        } else if controllers.split(',').any(|name| name == "memory") {
            Some(root.join("sys/fs/cgroup/memory").join(group).join("memory.oom_control"))
        } else {
            None
        }
    });
    let mut found = candidates.filter(|file| read_count(file).is_some());
    found.next().unwrap_or_else(|| root.join("proc/vmstat"))
}

fn count_in(file: &Path) -> u64 {
    read_count(file).unwrap_or(0)
}

/// All three files have lines with a name, a space and a number.
fn read_count(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_counter_is_used() {
        let v2 = ("0::/a/b\n", "sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\n");
        let v1 = (
            "5:cpu:/\n4:memory:/x\n0::/\n",
            "sys/fs/cgroup/memory/x/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        );
        let none = ("0::/\n", "proc/vmstat", "nr_free 1\noom_kill 2\n");
        for (groups, counter, text) in [v2, v1, none] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("proc/self")).unwrap();
            fs::write(root.path().join("proc/self/cgroup"), groups).unwrap();
            let file = root.path().join(counter);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();

            assert_eq!(counter_file(root.path()), file);
            let mut kills = OomKills { file: file.clone(), seen: 2, last: None };
            assert!(!kills.happened_recently());
            fs::write(&file, "oom_kill 3\n").unwrap();
            assert!(kills.happened_recently());
            kills.last = Instant::now().checked_sub(OOM_KILL_WINDOW);
            assert!(!kills.happened_recently(), "an old kill does not count");
        }
    }

    #[test]
    fn resident_memory_of_this_process_can_be_read() {
        let bytes = resident_bytes(std::process::id()).unwrap();
        assert!(bytes > 100_000);
    }
}
