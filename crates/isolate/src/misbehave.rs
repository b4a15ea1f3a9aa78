//! Real faults for drills and tests: a role calls [`Fault::commit`], and the worker process
//! really crashes, hangs or sends garbage. The supervisor is not told.

pub mod hostile;

use std::hint::black_box;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use isolate_types::Bulk;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};

use crate::class::DeathClass;
use crate::linux::{process, socket};
use crate::role::Context;
use crate::wire::{FrameKind, Header, Parcel, Placement, Progress};

/// Something that goes wrong in a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A write to an address that is not mapped.
    Segfault,
    /// A read from mapped memory beyond the end of its file.
    BusError,
    /// SIGILL.
    IllegalInstruction,
    /// SIGFPE.
    ArithmeticError,
    /// `abort()`, as from a failed C assertion.
    Abort,
    /// SIGKILL, as from an administrator.
    Kill,
    /// SIGTERM, as from an administrator.
    Terminate,
    /// A Rust panic.
    Panic,
    /// A panic while another one unwinds.
    DoublePanic,
    /// Infinite recursion.
    StackOverflow,
    /// Exit code 0 in the middle of a job.
    ExitZero,
    /// Another exit code in the middle of a job.
    ExitCode,
    /// Allocates until it hits the memory cap.
    OutOfMemory,
    /// Sleeps forever.
    Hang,
    /// Computes forever.
    BusyLoop,
    /// SIGSTOP.
    Stop,
    /// Sends bytes that are not a frame.
    Garbage,
    /// Sends half a frame, then exits.
    TornFrame,
    /// Announces a payload of exabytes.
    GiantLength,
    /// Answers a job that it was not given.
    WrongJob,
    /// Sends its own memory instead of using the front's, and truncates it.
    UnsealedMemfd,
    /// Sends progress without end and never a reply.
    Flood,
    /// Closes its socket and keeps running.
    ClosedSocket,
    /// Forks a child that keeps the socket open, then aborts.
    Grandchild,
    /// Aborts before it is ready.
    DeathBeforeReady,
    /// Takes a long time to become ready.
    SlowStart,
    /// Closes its standard output and continues.
    ClosedStdout,
    /// Prints megabytes to its standard output and continues.
    PrintedStdout,
}

/// The exit code of [`Fault::ExitCode`].
const EXIT_CODE: i32 = 3;

/// How long [`Fault::SlowStart`] takes.
const SLOW_START: Duration = Duration::from_millis(300);

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 28] = [
        Fault::Segfault,
        Fault::BusError,
        Fault::IllegalInstruction,
        Fault::ArithmeticError,
        Fault::Abort,
        Fault::Kill,
        Fault::Terminate,
        Fault::Panic,
        Fault::DoublePanic,
        Fault::StackOverflow,
        Fault::ExitZero,
        Fault::ExitCode,
        Fault::OutOfMemory,
        Fault::Hang,
        Fault::BusyLoop,
        Fault::Stop,
        Fault::Garbage,
        Fault::TornFrame,
        Fault::GiantLength,
        Fault::WrongJob,
        Fault::UnsealedMemfd,
        Fault::Flood,
        Fault::ClosedSocket,
        Fault::Grandchild,
        Fault::DeathBeforeReady,
        Fault::SlowStart,
        Fault::ClosedStdout,
        Fault::PrintedStdout,
    ];

    /// The expected class of the death; `None` if no worker should die.
    pub fn expected(self) -> Option<DeathClass> {
        Some(match self {
            Fault::Segfault
            | Fault::BusError
            | Fault::IllegalInstruction
            | Fault::ArithmeticError
            | Fault::Abort
            | Fault::DoublePanic
            | Fault::StackOverflow
            | Fault::Grandchild => DeathClass::Crash,
            Fault::Kill | Fault::Terminate => DeathClass::Killed,
            Fault::Panic => DeathClass::Panic,
            Fault::ExitCode => DeathClass::Exit,
            Fault::OutOfMemory => DeathClass::OutOfMemory,
            Fault::Hang | Fault::BusyLoop | Fault::Stop | Fault::Flood => DeathClass::Timeout,
            Fault::ExitZero
            | Fault::Garbage
            | Fault::TornFrame
            | Fault::GiantLength
            | Fault::WrongJob
            | Fault::UnsealedMemfd
            | Fault::ClosedSocket => DeathClass::Protocol,
            Fault::DeathBeforeReady => DeathClass::StartFailure,
            Fault::SlowStart | Fault::ClosedStdout | Fault::PrintedStdout => return None,
        })
    }

    /// Whether it happens in `warm_up`, not in a job.
    pub fn is_at_start(self) -> bool {
        matches!(self, Fault::DeathBeforeReady | Fault::SlowStart)
    }

    /// Whether only a deadline ends it.
    pub fn needs_deadline(self) -> bool {
        self.expected() == Some(DeathClass::Timeout)
    }

    /// A short description for people.
    pub fn describe(self) -> &'static str {
        match self {
            Fault::Segfault => "SIGSEGV",
            Fault::BusError => "SIGBUS",
            Fault::IllegalInstruction => "SIGILL",
            Fault::ArithmeticError => "SIGFPE",
            Fault::Abort => "SIGABRT",
            Fault::Kill => "SIGKILL from outside",
            Fault::Terminate => "SIGTERM from outside",
            Fault::Panic => "panic",
            Fault::DoublePanic => "double panic",
            Fault::StackOverflow => "stack overflow",
            Fault::ExitZero => "exit 0 in mid-job",
            Fault::ExitCode => "exit 3 in mid-job",
            Fault::OutOfMemory => "out of memory",
            Fault::Hang => "hang",
            Fault::BusyLoop => "busy loop",
            Fault::Stop => "SIGSTOP",
            Fault::Garbage => "garbage on the wire",
            Fault::TornFrame => "torn frame",
            Fault::GiantLength => "giant length",
            Fault::WrongJob => "answer to another job",
            Fault::UnsealedMemfd => "unsealed memfd",
            Fault::Flood => "flood of progress",
            Fault::ClosedSocket => "closed socket",
            Fault::Grandchild => "forked grandchild",
            Fault::DeathBeforeReady => "death before ready",
            Fault::SlowStart => "slow start",
            Fault::ClosedStdout => "closed stdout",
            Fault::PrintedStdout => "printing to stdout",
        }
    }

    /// Commits the fault in `warm_up`. Returns only after [`Fault::SlowStart`].
    pub fn commit_at_start(self) {
        match self {
            Fault::SlowStart => std::thread::sleep(SLOW_START),
            _ => std::process::abort(),
        }
    }

    /// Commits the fault in a job. Returns only if the worker survives.
    pub fn commit(self, context: &Context<'_>) {
        match self {
            Fault::Segfault => segfault(),
            Fault::BusError => bus_error(),
            Fault::IllegalInstruction => raise(libc::SIGILL),
            Fault::ArithmeticError => raise(libc::SIGFPE),
            Fault::Abort => std::process::abort(),
            Fault::Kill => raise(libc::SIGKILL),
            Fault::Terminate => raise(libc::SIGTERM),
            Fault::Panic => panic_now("a panic on purpose"),
            Fault::DoublePanic => double_panic(),
            Fault::StackOverflow => {
                black_box(overflow(0));
            }
            Fault::ExitZero => process::exit_now(0),
            Fault::ExitCode => process::exit_now(EXIT_CODE),
            Fault::OutOfMemory => exhaust_memory(),
            Fault::Hang => hang(),
            Fault::BusyLoop => loop {
                std::hint::spin_loop();
            },
            Fault::Stop => raise(libc::SIGSTOP),
            Fault::Garbage => {
                let _ = socket::send(context.socket(), &[&[0xA5; 300]], &[]);
                hang();
            }
            Fault::TornFrame => torn_frame(context),
            Fault::GiantLength => giant_length(context),
            Fault::WrongJob => wrong_job(context),
            Fault::UnsealedMemfd => unsealed_memfd(context),
            Fault::Flood => flood(context),
            Fault::ClosedSocket => {
                let _ = rustix::net::shutdown(context.socket(), rustix::net::Shutdown::Both);
                hang();
            }
            Fault::Grandchild => grandchild(),
            Fault::DeathBeforeReady | Fault::SlowStart => {}
            Fault::ClosedStdout => close_stdout(),
            Fault::PrintedStdout => {
                for line in 0..20_000 {
                    println!("line {line} of what a chatty library prints about its work");
                }
            }
        }
    }
}

/// A valid reply, to be corrupted.
fn reply(context: &Context<'_>, bulk: usize) -> Option<(Header, Parcel)> {
    let parcel = Parcel::encode(&Bulk::from(vec![7; bulk]), u64::MAX).ok()?;
    Some((parcel.header(FrameKind::Reply, context.job), parcel))
}

fn flood(context: &Context<'_>) {
    let note = Progress { done: 1, total: None, note: String::new() };
    let Ok(parcel) = Parcel::encode(&note, u64::MAX) else { return };
    let header = parcel.header(FrameKind::Progress, context.job).encode();
    while socket::send(context.socket(), &[&header, parcel.inline()], &[]).is_ok() {}
}

fn torn_frame(context: &Context<'_>) {
    if let Some((header, parcel)) = reply(context, 1000) {
        let half = &parcel.inline()[..500];
        let _ = socket::send(context.socket(), &[&header.encode(), half], &[]);
    }
    process::exit_now(0);
}

fn giant_length(context: &Context<'_>) {
    if let Some((header, _)) = reply(context, 16) {
        let giant = Header { placement: Placement::Inline, slabs_len: u64::MAX / 2, ..header };
        let _ = socket::send(context.socket(), &[&giant.encode()], &[]);
    }
    hang();
}

fn wrong_job(context: &Context<'_>) {
    if let Some((header, parcel)) = reply(context, 16) {
        let other = Header { job: context.job + 1, ..header };
        let _ = socket::send(context.socket(), &[&other.encode(), parcel.inline()], &[]);
    }
    hang();
}

fn unsealed_memfd(context: &Context<'_>) {
    if let (Some((header, _)), Some(fd)) = (reply(context, 200_000), memfd(200_000)) {
        let _ = socket::send(context.socket(), &[&header.encode()], &[fd.as_fd()]);
        let _ = rustix::fs::ftruncate(&fd, 0);
    }
    hang();
}

/// Memory without seals, created by the worker.
fn memfd(size: u64) -> Option<OwnedFd> {
    let fd = rustix::fs::memfd_create("misbehave", MemfdFlags::CLOEXEC).ok()?;
    rustix::fs::ftruncate(&fd, size).ok()?;
    Some(fd)
}

fn hang() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

#[allow(clippy::panic)]
fn panic_now(message: &str) {
    panic!("{message}");
}

fn double_panic() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic_now("a second panic on purpose");
        }
    }
    let _guard = PanicsWhenDropped;
    panic_now("a first panic on purpose");
}

#[allow(unconditional_recursion)]
fn overflow(depth: u64) -> u64 {
    let frame = black_box([depth; 512]);
    overflow(depth + 1) + frame[1]
}

fn exhaust_memory() {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(black_box(Vec::with_capacity(16 << 20)));
    }
}

#[allow(unsafe_code)]
fn segfault() {
    let nowhere = std::ptr::without_provenance_mut::<u8>(16);
    // SAFETY: none; the crash is the point. The first page is never mapped.
    unsafe { nowhere.write_volatile(1) };
}

#[allow(unsafe_code)]
fn bus_error() {
    use rustix::mm::{MapFlags, ProtFlags};
    let Some(fd) = memfd(4096) else { return };
    // SAFETY: a new mapping at an address chosen by the kernel affects nothing else. The read
    // beyond the end of the truncated file is the intended fault.
    unsafe {
        let Ok(page) =
            rustix::mm::mmap(std::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &fd, 0)
        else {
            return;
        };
        let _ = rustix::fs::ftruncate(&fd, 0);
        black_box(page.cast::<u8>().read_volatile());
    }
}

#[allow(unsafe_code)]
fn raise(signal: i32) {
    // SAFETY: sends a signal to this process; its effect is the intended one.
    unsafe {
        libc::kill(libc::getpid(), signal);
    }
    // Another thread may receive it a moment later.
    hang();
}

#[allow(unsafe_code)]
fn grandchild() {
    // SAFETY: the child makes only calls that are allowed after a fork.
    unsafe {
        if libc::fork() == 0 {
            loop {
                libc::pause();
            }
        }
    }
    std::process::abort();
}

#[allow(unsafe_code)]
fn close_stdout() {
    // SAFETY: nothing in a worker relies on this descriptor being open.
    unsafe {
        libc::close(libc::STDOUT_FILENO);
    }
}
