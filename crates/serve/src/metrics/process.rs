//! Figures of the server's own process.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the system says about this process.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessFigures {
    pub(super) resident_bytes: u64,
    pub(super) open_files: u64,
    pub(super) cpu_seconds: f64,
}

impl ProcessFigures {
    pub(super) fn now() -> Self {
        let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: Option<u64> = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Self {
            resident_bytes: pages.unwrap_or(0) * rustix::param::page_size() as u64,
            open_files: fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        }
    }
}

/// Seconds since 1970.
pub(super) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
