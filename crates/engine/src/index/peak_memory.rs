//! How much memory a run uses, front and workers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::open::Engine;

/// Looking costs the kernel a millisecond for each process: a long run is looked at less
/// and less often.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(4);

/// Looks now and then, and keeps the most that it saw.
pub(super) struct PeakMemory {
    peak: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl PeakMemory {
    pub(super) fn watch(engine: &Engine) -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let (seen, engine) = (Arc::clone(&peak), engine.clone());
        let task = tokio::spawn(async move {
            let mut pause = FIRST;
            loop {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f32(1.3).min(LONGEST);
                let workers = engine.worker_pids();
                let own = std::process::id();
                let sum = workers.into_iter().chain([own]).filter_map(pss).sum();
                seen.fetch_max(sum, Ordering::Relaxed);
            }
        });
        Self { peak, task }
    }

    pub(super) fn end(self) -> u64 {
        // A run that was shorter than one look has used this much.
        let least = pss(std::process::id()).unwrap_or(0);
        self.peak.load(Ordering::Relaxed).max(least)
    }
}

impl Drop for PeakMemory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The proportional set size of a process, in bytes.
fn pss(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
