//! The limits that a worker sets for itself at the start.

use std::ffi::CString;
use std::io;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};

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

fn set(resource: Resource, limit: u64) -> io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let limit = Some(hard.map_or(limit, |hard| hard.min(limit)));
    let both = Rlimit { current: limit, maximum: limit };
    Ok(rustix::process::setrlimit(resource, both)?)
}
