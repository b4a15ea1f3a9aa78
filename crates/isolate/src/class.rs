//! Classifies the deaths of workers.
//!
//! One pure function from what was observed to a class. The class decides the reaction, so a
//! wrong one has consequences: the tests cover the whole table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a worker ended without being told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathClass {
    /// A signal raised by the worker's own code: SIGSEGV, SIGBUS, SIGABRT …
    Crash,
    /// A Rust panic.
    Panic,
    /// It hit its memory cap, or the kernel killed it because memory ran out.
    OutOfMemory,
    /// It was killed from outside.
    Killed,
    /// It was killed at its deadline.
    Timeout,
    /// It sent something invalid, or exited in the middle of a job.
    Protocol,
    /// It exited with an error code.
    Exit,
    /// It ended before it was ready for its first job.
    StartFailure,
}

impl DeathClass {
    /// All classes, in the order of the documentation.
    pub const ALL: [DeathClass; 8] = [
        DeathClass::Crash,
        DeathClass::Panic,
        DeathClass::OutOfMemory,
        DeathClass::Killed,
        DeathClass::Timeout,
        DeathClass::Protocol,
        DeathClass::Exit,
        DeathClass::StartFailure,
    ];

    /// The name used in JSON, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            DeathClass::Crash => "crash",
            DeathClass::Panic => "panic",
            DeathClass::OutOfMemory => "out_of_memory",
            DeathClass::Killed => "killed",
            DeathClass::Timeout => "timeout",
            DeathClass::Protocol => "protocol",
            DeathClass::Exit => "exit",
            DeathClass::StartFailure => "start_failure",
        }
    }

    /// Whether the running job is to blame.
    pub fn blames_job(self) -> bool {
        !matches!(self, DeathClass::Killed | DeathClass::StartFailure)
    }
}

impl fmt::Display for DeathClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a process ended, according to the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The status was lost.
    Unknown,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exited(code) => write!(f, "exit code {code}"),
            End::Signaled(signal) => match signal_name(signal) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {signal}"),
            },
            End::Unknown => f.write_str("unknown end"),
        }
    }
}

/// What the worker was doing when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Idle,
    Busy,
    /// It had been told to stop.
    Stopping,
}

/// Why the supervisor killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KillReason {
    /// The job's deadline, or that of the warm-up, had passed.
    Deadline,
    /// It did not stop in time when told to.
    StopGrace,
    /// It broke the protocol.
    Violation,
    /// Its job was cancelled, and it did not return in time.
    Cancelled,
    /// The pool is stopping.
    Shutdown,
}

/// What is known about an end besides the exit status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    pub phase: Phase,
    /// A panic frame had arrived.
    pub panicked: bool,
    /// An invalid frame had arrived.
    pub violated: bool,
    /// The supervisor had killed it.
    pub killed: Option<KillReason>,
    /// Its output shows that its allocator was refused memory.
    pub allocator_refused: bool,
    /// The kernel had recently killed a process because memory ran out.
    pub oom_kill: bool,
}

/// The class of a death; `None` for an orderly end.
pub(crate) fn classify(end: End, seen: &Circumstances) -> Option<DeathClass> {
    if matches!(seen.killed, Some(KillReason::Shutdown | KillReason::Cancelled)) {
        return None;
    }
    if seen.phase == Phase::Starting {
        return Some(DeathClass::StartFailure);
    }
    if seen.phase == Phase::Stopping && end == End::Exited(0) {
        return None;
    }
    Some(match end {
        End::Signaled(signal) => classify_signal(signal, seen),
        End::Exited(_) if seen.panicked => DeathClass::Panic,
        End::Exited(101) => DeathClass::Panic,
        End::Exited(_) if seen.violated => DeathClass::Protocol,
        End::Exited(0) if seen.phase == Phase::Busy => DeathClass::Protocol,
        End::Exited(_) => DeathClass::Exit,
        End::Unknown if seen.violated => DeathClass::Protocol,
        End::Unknown => DeathClass::Killed,
    })
}

fn classify_signal(signal: i32, seen: &Circumstances) -> DeathClass {
    match signal {
        libc::SIGKILL => match seen.killed {
            Some(KillReason::Deadline | KillReason::StopGrace) => DeathClass::Timeout,
            Some(KillReason::Violation) => DeathClass::Protocol,
            _ if seen.oom_kill => DeathClass::OutOfMemory,
            _ if seen.violated => DeathClass::Protocol,
            _ => DeathClass::Killed,
        },
        libc::SIGTERM | libc::SIGHUP | libc::SIGINT => DeathClass::Killed,
        libc::SIGABRT if seen.allocator_refused => DeathClass::OutOfMemory,
        _ => DeathClass::Crash,
    }
}

/// Whether a line of output is the Rust runtime's message about a failed allocation.
pub(crate) fn is_allocator_refusal(line: &str) -> bool {
    line.starts_with("memory allocation of ") && line.contains(" bytes failed")
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGSYS => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::DeathClass::*;
    use super::*;

    const BUSY: Circumstances = Circumstances {
        phase: Phase::Busy,
        panicked: false,
        violated: false,
        killed: None,
        allocator_refused: false,
        oom_kill: false,
    };

    #[test]
    fn classes_of_ends_during_a_job() {
        let table = [
            (End::Signaled(libc::SIGSEGV), Crash),
            (End::Signaled(libc::SIGBUS), Crash),
            (End::Signaled(libc::SIGILL), Crash),
            (End::Signaled(libc::SIGFPE), Crash),
            (End::Signaled(libc::SIGABRT), Crash),
            (End::Signaled(libc::SIGSYS), Crash),
            (End::Signaled(libc::SIGXCPU), Crash),
            (End::Signaled(libc::SIGTRAP), Crash),
            (End::Signaled(libc::SIGRTMAX()), Crash),
            (End::Signaled(libc::SIGKILL), Killed),
            (End::Signaled(libc::SIGTERM), Killed),
            (End::Signaled(libc::SIGHUP), Killed),
            (End::Signaled(libc::SIGINT), Killed),
            (End::Exited(0), Protocol),
            (End::Exited(101), Panic),
            (End::Exited(1), Exit),
            // A shell's exit code for a signal is not a signal.
            (End::Exited(139), Exit),
            (End::Unknown, Killed),
        ];
        for (end, class) in table {
            assert_eq!(classify(end, &BUSY), Some(class), "{end}");
        }
    }

    #[test]
    fn circumstances_change_the_class() {
        let kill = End::Signaled(libc::SIGKILL);
        let abort = End::Signaled(libc::SIGABRT);
        let segv = End::Signaled(libc::SIGSEGV);
        let by_us = |reason| Circumstances { killed: Some(reason), ..BUSY };
        let table = [
            (kill, by_us(KillReason::Deadline), Some(Timeout)),
            (kill, by_us(KillReason::StopGrace), Some(Timeout)),
            (kill, by_us(KillReason::Violation), Some(Protocol)),
            (kill, by_us(KillReason::Shutdown), None),
            (kill, by_us(KillReason::Cancelled), None),
            // It crashed by itself just before our signal arrived.
            (segv, by_us(KillReason::Deadline), Some(Crash)),
            (kill, Circumstances { oom_kill: true, ..BUSY }, Some(OutOfMemory)),
            // An out-of-memory kill elsewhere does not explain our own deadline kill.
            (kill, Circumstances { oom_kill: true, ..by_us(KillReason::Deadline) }, Some(Timeout)),
            (abort, Circumstances { allocator_refused: true, ..BUSY }, Some(OutOfMemory)),
            (segv, Circumstances { allocator_refused: true, ..BUSY }, Some(Crash)),
            (End::Exited(101), Circumstances { panicked: true, ..BUSY }, Some(Panic)),
            (End::Exited(3), Circumstances { panicked: true, ..BUSY }, Some(Panic)),
            (End::Exited(3), Circumstances { violated: true, ..BUSY }, Some(Protocol)),
            (segv, Circumstances { violated: true, ..BUSY }, Some(Crash)),
            (End::Exited(0), Circumstances { phase: Phase::Idle, ..BUSY }, Some(Exit)),
            (kill, Circumstances { phase: Phase::Idle, ..BUSY }, Some(Killed)),
            (End::Exited(0), Circumstances { phase: Phase::Stopping, ..BUSY }, None),
            (segv, Circumstances { phase: Phase::Stopping, ..BUSY }, Some(Crash)),
            (End::Exited(0), Circumstances { phase: Phase::Starting, ..BUSY }, Some(StartFailure)),
            (segv, Circumstances { phase: Phase::Starting, ..BUSY }, Some(StartFailure)),
            (kill, Circumstances { phase: Phase::Starting, ..BUSY }, Some(StartFailure)),
        ];
        for (end, seen, class) in table {
            assert_eq!(classify(end, &seen), class, "{end} {seen:?}");
        }
    }

    #[test]
    fn a_failed_allocation_is_recognised_in_the_output() {
        assert!(is_allocator_refusal("memory allocation of 1048576 bytes failed"));
        assert!(!is_allocator_refusal("the memory allocation of last week failed"));
    }

    #[test]
    fn names_match_the_serialized_form() {
        for class in DeathClass::ALL {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{}\"", class.name()));
        }
    }
}
