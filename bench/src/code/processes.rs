//! Runs processes and measures their usage, including their descendants.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::de::DeserializeOwned;

/// How often memory is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Runs a process until it exits. Descendants count if they have been waited for.
pub(crate) fn run(command: &mut Command) -> Result<(Vec<u8>, Usage)> {
    let (output, used, _) = observe(command, false)?;
    Ok((output, used))
}

/// The same, with the maximum PSS of the process and its descendants.
pub(super) fn run_with_memory(command: &mut Command) -> Result<(Vec<u8>, Usage, u64)> {
    observe(command, true)
}

/// Runs a process that prints a JSON document.
pub(crate) fn report<T: DeserializeOwned>(command: &mut Command) -> Result<(T, Usage)> {
    let (output, used) = run(command)?;
    Ok((serde_json::from_slice(&output)?, used))
}

fn observe(command: &mut Command, memory: bool) -> Result<(Vec<u8>, Usage, u64)> {
    let (started, before) = (Instant::now(), children()?);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let (pid, ended) = (child.id(), AtomicBool::new(!memory));
    let (output, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0;
            while !ended.load(Ordering::Relaxed) {
                peak = peak.max(process_tree(pid).into_iter().filter_map(pss).sum());
                std::thread::sleep(SAMPLE_INTERVAL);
            }
            peak
        });
        let output = child.wait_with_output();
        ended.store(true, Ordering::Relaxed);
        (output, watch.join().unwrap_or(0))
    });
    let output = output?;
    let used = Usage { wall: started.elapsed(), cpu: children()? - before };
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok((output.stdout, used, peak))
}

/// CPU time of reaped children and their descendants.
fn children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let duration = |time: TimeVal| {
        let microseconds = time.tv_usec().unsigned_abs();
        Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(microseconds)
    };
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

/// A process and its descendants.
pub(crate) fn process_tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        at += 1;
    }
    found
}

/// The proportional set size of a process, in bytes.
pub(crate) fn pss(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grandchildren_count() {
        let burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let mut own = Command::new("sh");
        own.args(["-c", burn]);
        let mut below = Command::new("sh");
        below.args(["-c", &format!("sh -c '{burn}'; echo done")]);
        let (_, alone) = run(&mut own).unwrap();
        let (output, nested) = run(&mut below).unwrap();
        assert_eq!(output, b"done\n");
        assert!(nested.cpu > alone.cpu / 4, "{nested:?} {alone:?}");
    }

    #[test]
    fn a_process_tree_contains_its_root() {
        let own = std::process::id();
        assert!(process_tree(own).contains(&own));
        assert!(pss(own).unwrap() > 100_000);
    }
}
