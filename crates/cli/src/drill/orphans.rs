use std::collections::HashSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// A killed process takes a moment to go.
const GRACE: Duration = Duration::from_secs(2);

/// Counts what the workers of `role` leave behind after [`GRACE`]: processes of their groups, and
/// zombies among our children.
pub(super) fn count(role: &str, workers: &[u32]) -> io::Result<usize> {
    let groups: HashSet<u32> = workers.iter().copied().collect();
    let until = Instant::now() + GRACE;
    loop {
        let left = count_now(role, &groups)?;
        if left == 0 || Instant::now() > until {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn count_now(role: &str, groups: &HashSet<u32>) -> io::Result<usize> {
    let own = std::process::id();
    let mut orphans = 0;
    for entry in fs::read_dir("/proc")? {
        // Processes may start and exit during the scan.
        let Ok(stat) = entry.and_then(|entry| fs::read_to_string(entry.path().join("stat"))) else {
            continue;
        };
        let Some(process) = Process::parse(&stat) else {
            continue;
        };
        // Ids are reused, so the name must match too.
        let of_worker = groups.contains(&process.group) && process.name == role;
        let ours = process.parent == own;
        // We reap our workers, which lead their groups. Other zombies belong to whoever adopted
        // them, even if that is us as process 1.
        let is_left = !process.is_zombie || (ours && process.id == process.group);
        if (ours || of_worker) && is_left {
            orphans += 1;
        }
    }
    Ok(orphans)
}

#[derive(Debug, PartialEq, Eq)]
struct Process<'a> {
    id: u32,
    name: &'a str,
    is_zombie: bool,
    parent: u32,
    group: u32,
}

impl<'a> Process<'a> {
    /// From `/proc/PID/stat`, in which the name in parentheses may hold anything.
    fn parse(stat: &'a str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (id, name) = before.split_once('(')?;
        let id = id.trim().parse().ok()?;
        let mut fields = after.split_whitespace();
        let is_zombie = fields.next()? == "Z";
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { id, name, is_zombie, parent, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_any_character() {
        let stat = "77 (a ) (b) c) S 12 34 34 0 -1 4194560";
        let expected =
            Process { id: 77, name: "a ) (b) c", is_zombie: false, parent: 12, group: 34 };
        assert_eq!(Process::parse(stat), Some(expected));
        assert_eq!(Process::parse(""), None);
    }

    #[test]
    fn a_leftover_child_is_counted() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        assert!(count("drill", &[]).unwrap() >= 1);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
