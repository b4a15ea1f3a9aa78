//! All operating system calls: the only module to rewrite for another platform.

pub(crate) mod area;
mod calls;
pub(crate) mod confine;
pub(crate) mod files;
pub(crate) mod limits;
pub(crate) mod process;
pub(crate) mod process_memory;
pub(crate) mod socket;
pub(crate) mod watch;
