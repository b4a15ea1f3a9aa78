//! Resource usage of processes, from the kernel.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use isolith_engine::Engine;
use nix::time::ClockId;
use nix::unistd::Pid;
use rustix::param::clock_ticks_per_second;

/// User and system time of this process, its reaped children and the engine's workers. The time of
/// reaped children has a resolution of 10 ms.
pub(crate) fn cpu_time(engine: Option<&Engine>) -> Result<Duration> {
    let mut total = ClockId::CLOCK_PROCESS_CPUTIME_ID.now()?.into();
    total += reaped_children_time()?;
    for pid in engine.map(workers).unwrap_or_default() {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))?;
        total += Duration::from(clock.now()?);
    }
    Ok(total)
}

/// User and system time of reaped children and their descendants.
pub(crate) fn reaped_children_time() -> Result<Duration> {
    times(&fs::read_to_string("/proc/self/stat")?, [16, 17])
}

/// Bytes that this process and its reaped children sent to storage.
pub(crate) fn written_bytes() -> Result<u64> {
    let counters = fs::read_to_string("/proc/self/io")?;
    let line = counters.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(line.context("the kernel does not report written bytes")?.parse()?)
}

/// The proportional set size (PSS) of this process and the engine's workers.
pub(crate) fn memory_bytes(engine: &Engine) -> Result<u64> {
    let mut total = pss_of("self")?;
    for pid in workers(engine) {
        total += pss_of(&pid.to_string())?;
    }
    Ok(total)
}

/// The total size of all files in a folder.
pub(crate) fn disk_bytes(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}

fn workers(engine: &Engine) -> Vec<u32> {
    let pools = engine.pools().into_iter().map(|pool| pool.snapshot());
    pools.flat_map(|pool| pool.workers).filter_map(|worker| worker.pid).collect()
}

fn pss_of(process: &str) -> Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(1024 * kilobytes.context("the kernel does not report the memory")?.parse::<u64>()?)
}

/// The sum of two times in `/proc/PID/stat`. Fields are numbered from 1, as in the manual.
fn times(stat: &str, fields: [usize; 2]) -> Result<Duration> {
    // The second field is a name in parentheses that may contain anything.
    let (_, rest) = stat.rsplit_once(')').context("the name is missing")?;
    let rest: Vec<&str> = rest.split_whitespace().collect();
    let mut ticks = 0;
    for field in fields {
        ticks += rest.get(field - 3).context("a field is missing")?.parse::<u64>()?;
    }
    Ok(Duration::from_secs(ticks) / clock_ticks_per_second() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4 0 0 0 0 120 30 50 5 20 0 1 0 9";
        let tick = Duration::from_secs(1) / clock_ticks_per_second() as u32;
        assert_eq!(times(stat, [14, 15]).unwrap(), 150 * tick);
        assert_eq!(times(stat, [16, 17]).unwrap(), 55 * tick);
    }

    #[test]
    fn usage_of_this_process_is_reported() {
        assert!(cpu_time(None).unwrap() > Duration::ZERO);
        assert!(pss_of("self").unwrap() > 100_000);
        written_bytes().unwrap();
    }
}
