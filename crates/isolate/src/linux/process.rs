//! Worker processes: start, signal, wait.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use super::socket;
use super::watch::{Watched, watch};
use crate::class::End;

/// The running program, even if its file has been replaced or removed.
pub(crate) const SELF: &str = "/proc/self/exe";

/// How long dropping a [`Process`] waits for the killed process to end.
const REAP_ON_DROP: Duration = Duration::from_millis(500);

/// A worker process and the front's ends of its connections.
#[derive(Debug)]
pub(crate) struct Started {
    pub process: Process,
    /// Frames, both ways.
    pub socket: OwnedFd,
    /// The worker's standard output and standard error.
    pub output: OwnedFd,
}

/// Starts `program` as the leader of its own process group, with a socket as its standard input
/// and with only this environment.
///
/// Nothing here may keep the standard library from using `posix_spawn`: no `pre_exec`, no bare
/// program name, no pidfd by flag. A fork would copy the page tables of a large front.
pub(crate) fn start(
    program: &Path,
    name: &OsStr,
    arguments: &[&OsStr],
    environment: &[(OsString, OsString)],
) -> io::Result<Started> {
    let (ours, theirs) = socket::pair()?;
    socket::set_nonblocking(&ours)?;
    let (output, printed) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    socket::set_nonblocking(&output)?;

    let child = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        // Resolving symbols for a backtrace takes longer than the rest of a panic, and the
        // caller waits.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::from(printed.try_clone()?))
        .stderr(Stdio::from(printed))
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&child);
    // The pid is still valid: only we wait for the child.
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            Ok(Started { process: Process { pid, pidfd, reaped: false }, socket: ours, output })
        }
        Err(error) => {
            let mut child = child;
            let _ = child.kill();
            let _ = child.wait();
            Err(error.into())
        }
    }
}

/// A child process: killed with its whole group and reaped when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    pidfd: OwnedFd,
    reaped: bool,
}

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// A descriptor that becomes readable when the process ends.
    pub(crate) fn end(&self) -> io::Result<Watched> {
        watch(self.pidfd.try_clone()?)
    }

    /// Kills the process and everything it forked. Until it is reaped, neither its pid nor the
    /// process group can be reused.
    pub(crate) fn kill_group(&self) {
        if !self.reaped {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }

    /// How it ended, if it has. Kills the rest of its group before the pid can be reused.
    pub(crate) fn reap(&mut self) -> Option<End> {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), peek) {
            Ok(None) => return None,
            Ok(Some(_)) => self.kill_group(),
            Err(_) => {
                // Someone else reaped it, so how it ended is unknown.
                self.reaped = true;
                return Some(End::Unknown);
            }
        }
        let take = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), take);
        self.reaped = true;
        let Ok(Some(status)) = status else {
            return Some(End::Unknown);
        };
        Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End::Exited(code),
            (None, Some(signal)) => End::Signaled(signal),
            (None, None) => End::Unknown,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill_group();
        let until = Instant::now() + REAP_ON_DROP;
        while self.reap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A pipe whose reading end goes to another process.
pub(crate) fn control_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    socket::set_nonblocking(&writer)?;
    Ok((reader, writer))
}

/// Called first in a worker: moves the socket away from standard input, where a library could
/// read it, and keeps it from being inherited.
pub(crate) fn take_stdin_socket() -> io::Result<OwnedFd> {
    close_inherited();
    unblock_signals();
    let stdin = rustix::stdio::stdin();
    if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(stdin)?.st_mode).is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "standard input is not the socket of a front",
        ));
    }
    let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(socket)
}

/// Closes descriptors that the front itself had inherited and passed on unknowingly; one of
/// them could keep someone else's pipe open.
#[allow(unsafe_code)]
fn close_inherited() {
    // SAFETY: nothing in this process has opened a descriptor yet. Old kernels do not have the
    // call; then the descriptors stay open.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
    }
}

/// A front that handles signals in one thread blocks them in all others, and its children
/// inherit the mask: a worker would ignore SIGTERM.
fn unblock_signals() {
    set_signal_mask(libc::sigemptyset);
}

/// For a worker's own threads: signals go to the thread that runs the role.
pub(crate) fn block_signals() {
    set_signal_mask(libc::sigfillset);
}

#[allow(unsafe_code)]
fn set_signal_mask(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) {
    // SAFETY: `fill` is one of the two functions above, which initialise the set, and the old
    // mask is not requested.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        fill(&raw mut mask);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
    }
}

/// Called in a worker whose front is gone: kills it and everything it started.
pub(crate) fn kill_own_group() -> ! {
    if rustix::process::getpgrp() == rustix::process::getpid() {
        let _ = rustix::process::kill_current_process_group(Signal::KILL);
    }
    exit_now(1)
}

/// Exits without running destructors of libraries, which may hang or crash.
#[allow(unsafe_code)]
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// Makes sure that the exit statuses of children are kept. A program started with SIGCHLD
/// ignored would never learn how its workers died.
#[allow(unsafe_code)]
pub(crate) fn keep_exit_statuses() {
    // SAFETY: a zeroed `sigaction` is valid, it is only read back, and SIG_DFL
    // is a valid disposition for SIGCHLD.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut current) == 0
            && current.sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
