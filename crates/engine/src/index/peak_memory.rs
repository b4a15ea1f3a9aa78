//! Measures the peak memory of a run, front and workers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::open::Engine;

/// A measurement costs the kernel a millisecond per process, so its interval grows during a long
/// run.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
const MAX_INTERVAL: Duration = Duration::from_secs(4);

/// Samples memory periodically and keeps the maximum.
pub(super) struct PeakMemory {
    peak: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl PeakMemory {
    pub(super) fn watch(engine: &Engine) -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let (seen, engine) = (Arc::clone(&peak), engine.clone());
        let task = tokio::spawn(async move {
            let mut pause = FIRST_INTERVAL;
            loop {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f32(1.3).min(MAX_INTERVAL);
                let workers = engine.worker_pids();
                let own = std::process::id();
                let sum = workers.into_iter().chain([own]).filter_map(pss).sum();
                seen.fetch_max(sum, Ordering::Relaxed);
            }
        });
        Self { peak, task }
    }

    pub(super) fn end(self) -> u64 {
        // The run may have ended before the first sample.
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
