//! The limits that a worker sets for itself at the start.

use std::ffi::CString;
use std::io;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::time::{ClockId, clock_gettime};

/// When the machine runs out of memory, workers are killed first: the front can replace them.
const OOM_SCORE: &str = "500";

pub(crate) fn apply(role: &str, memory_cap: Option<u64>) -> io::Result<()> {
    // A core dump would delay the detection of a death by seconds.
    set(Resource::Core, 0)?;
    if let Some(bytes) = memory_cap {
        // Not the address space: mapped files do not count as memory.
        set(Resource::Data, bytes)?;
    }
    // Files that a worker creates are accessible to this user only.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // A stopped worker must wake up when its front dies. (SIGKILL would not do: it is sent when
    // the thread that started the worker ends.)
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    if let Ok(name) = CString::new(role) {
        let _ = rustix::thread::set_name(&name);
    }
    Ok(())
}

/// Lets the kernel end this process with SIGXCPU after this much more CPU time, to the second;
/// `None` lifts the limit.
pub(crate) fn limit_cpu(more: Option<Duration>) -> io::Result<()> {
    let hard = rustix::process::getrlimit(Resource::Cpu).maximum;
    let limit = more.map(|more| {
        let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
        u64::try_from(used).unwrap_or(0).saturating_add(more.as_secs().max(1)).saturating_add(1)
    });
    let current = match (limit, hard) {
        (Some(limit), Some(hard)) => Some(limit.min(hard)),
        (limit, hard) => limit.or(hard),
    };
    Ok(rustix::process::setrlimit(Resource::Cpu, Rlimit { current, maximum: hard })?)
}

fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let limit = Some(hard.map_or(limit, |hard| hard.min(limit)));
    let both = Rlimit { current: limit, maximum: limit };
    Ok(rustix::process::setrlimit(resource, both)?)
}
