//! What a worker does to itself before it does anything else.

use std::ffi::CString;
use std::io;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};

/// Workers go first when the machine runs out of memory: the front can replace them.
const OOM_SCORE: &str = "500";

pub(crate) fn apply(role: &str, memory_cap: Option<u64>) -> io::Result<()> {
    // A core dump would delay the front's notice of a death by seconds.
    set(Resource::Core, 0)?;
    if let Some(bytes) = memory_cap {
        // The data limit, not the address space: mapped files are not memory.
        set(Resource::Data, bytes)?;
    }
    // Whatever a worker creates is for this user alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // A worker that is stopped when its front dies must wake up to see it. (A
    // deadly signal here would fire when the thread that started us ends.)
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
