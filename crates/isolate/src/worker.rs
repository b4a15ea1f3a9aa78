//! The worker's side: from `main` to the job loop.

use std::any::Any;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolate_types::Bulk;
use isolate_types::for_isolate::issue;
use serde::Serialize;

use crate::linux::area::Area;
use crate::linux::confine::confine;
use crate::linux::files::RuledFolder;
use crate::linux::{limits, process, socket};
use crate::role::{Context, Refusal, Role};
use crate::sandbox::Confinement;
use crate::wire::{
    Fill, Frame, FrameKind, FrameReader, Header, Hello, INLINE_LIMIT, PanicNote, Parcel, Progress,
    WireError,
};

/// The hidden argument that makes the program run as a worker.
pub(crate) const WORKER_ARGUMENT: &str = "--isolate-worker";

/// The limit of every message but a reply, so that it fits on the socket: only a reply may use
/// the shared area, which the front reads next.
const SMALL_MESSAGE_LIMIT: u64 = INLINE_LIMIT as u64;

/// How much of a part goes into one frame; with its length it must fit on the socket.
const MAX_PART_BYTES: usize = INLINE_LIMIT - 64;

/// Progress is sent at most this often.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// The exit code of a worker that panicked, as in any Rust program.
const EXIT_PANIC: i32 = 101;
/// The exit code of a worker that could not start, or received something invalid from its
/// front.
const EXIT_CANNOT_START: i32 = 78;

/// A role that the program can run as a worker; see [`role`].
#[derive(Debug, Clone, Copy)]
pub struct RoleEntry {
    name: &'static str,
    run: fn(Greeting) -> !,
}

/// The entry for role `R`, to pass to [`worker_main`].
pub fn role<R: Role>() -> RoleEntry {
    RoleEntry { name: R::NAME, run: run::<R> }
}

/// Call this first in `main`, before there is a thread, a runtime (so not within
/// `#[tokio::main]`) or an open file. In a process that was started as a worker, it closes
/// inherited descriptors, runs the worker and never returns. Otherwise it returns at once.
pub fn worker_main(roles: &[RoleEntry]) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(WORKER_ARGUMENT)) {
        return;
    }
    let Greeting { link, reader, hello, control } = match greet() {
        Ok(greeted) => greeted,
        Err(error) => {
            eprintln!("this argument is for worker processes only: {error}");
            process::exit_now(EXIT_CANNOT_START);
        }
    };
    if let Err(error) = limits::apply(&hello.role, hello.memory_cap) {
        eprintln!("cannot set limits: {error}");
        process::exit_now(EXIT_CANNOT_START);
    }
    match roles.iter().find(|entry| entry.name == hello.role) {
        Some(entry) => (entry.run)(Greeting { link, reader, hello, control }),
        None => {
            eprintln!("this program has no role {:?}", hello.role);
            process::exit_now(EXIT_CANNOT_START);
        }
    }
}

/// What a worker has after the front's first message.
struct Greeting {
    link: Link,
    reader: FrameReader,
    hello: Hello,
    control: OwnedFd,
}

/// Receives the front's first message.
fn greet() -> io::Result<Greeting> {
    let socket = process::take_stdin_socket()?;
    let mut reader = FrameReader::new();
    reader.accept_descriptors();
    let frame = receive(&socket, &mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let hello: Hello = frame.decode().map_err(io::Error::other)?;
    let descriptors: Result<[OwnedFd; 3], _> = frame.descriptors.try_into();
    let [control, requests, replies] = descriptors.map_err(|_| io::ErrorKind::InvalidData)?;
    reader.set_area(Area::received(requests), hello.max_request_bytes);
    let link = Link::new(socket, Area::received(replies));
    Ok(Greeting { link, reader, hello, control })
}

fn run<R: Role>(greeting: Greeting) -> ! {
    let Greeting { link, reader, hello, control } = greeting;
    let settings: R::Settings = match postcard::from_bytes(&hello.settings) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("cannot decode the settings: {error}");
            process::exit_now(EXIT_CANNOT_START);
        }
    };
    let (confinement, folder) = match confine(&R::sandbox(&settings)) {
        Ok(confined) => confined,
        Err(refusal) => refuse(&link, &refusal),
    };
    // Threads started from here on are confined, too.
    let cancelled_job = match watch_front(control) {
        Ok(cancelled_job) => cancelled_job,
        Err(error) => {
            eprintln!("cannot start the thread that watches the front: {error}");
            process::exit_now(EXIT_CANNOT_START);
        }
    };
    print_panics_briefly();
    let warmed = catch(|| R::warm_up(settings, issue()));
    let role = match warmed {
        Ok(Ok(role)) => role,
        Ok(Err(refusal)) => refuse(&link, &refusal),
        Err(message) => {
            let _ = link.send(FrameKind::Panic, 0, 0, &PanicNote { message }, SMALL_MESSAGE_LIMIT);
            process::exit_now(EXIT_PANIC);
        }
    };
    let max_reply_bytes = hello.max_reply_bytes;
    let worker = Worker { link, role, folder, cancelled_job, max_reply_bytes };
    worker.serve(reader, &confinement)
}

fn refuse(link: &Link, refusal: &Refusal) -> ! {
    let _ = link.send(FrameKind::Refused, 0, 0, refusal, SMALL_MESSAGE_LIMIT);
    process::exit_now(EXIT_CANNOT_START)
}

struct Worker<R> {
    link: Link,
    role: R,
    folder: Option<RuledFolder>,
    cancelled_job: Arc<AtomicU64>,
    max_reply_bytes: u64,
}

impl<R: Role> Worker<R> {
    fn serve(mut self, mut reader: FrameReader, confinement: &Confinement) -> ! {
        let _ = self.link.send(FrameKind::Ready, 0, 0, confinement, SMALL_MESSAGE_LIMIT);
        loop {
            match receive(&self.link.socket, &mut reader) {
                Ok(Some(frame)) if frame.header.kind == FrameKind::Job => self.job(frame),
                Ok(Some(frame)) if frame.header.kind == FrameKind::Stop => break,
                // The front is gone.
                Ok(None) => process::kill_own_group(),
                Ok(Some(frame)) => {
                    eprintln!("unexpected {:?} frame from the front", frame.header.kind);
                    process::exit_now(EXIT_CANNOT_START);
                }
                Err(error) => {
                    eprintln!("cannot read from the front: {error}");
                    process::exit_now(EXIT_CANNOT_START);
                }
            }
        }
        drop(self.role);
        let _ = io::stdout().flush();
        process::exit_now(0)
    }

    fn job(&mut self, frame: Frame) {
        let Header { job, attempt, nanoseconds, .. } = frame.header;
        let request = match frame.decode() {
            Ok(request) => request,
            Err(error) => return self.unanswerable(job, &error),
        };
        let context = Context {
            link: Some(&self.link),
            folder: self.folder.as_ref(),
            passed_on: AtomicBool::new(false),
            cpu_limited: AtomicBool::new(false),
            cancelled_job: &self.cancelled_job,
            job,
            attempt,
            started: Instant::now(),
            budget: Duration::from_nanos(nanoseconds),
            descriptors: &frame.descriptors,
        };
        let role = &mut self.role;
        let outcome = catch(|| role.handle(request, &context));
        let ran = context.started.elapsed();
        let passed_on = context.passed_on.load(Ordering::Relaxed);
        if context.cpu_limited.load(Ordering::Relaxed) {
            // Lifting a limit within the hard limit cannot fail.
            let _ = limits::limit_cpu(None);
        }
        // Close the job's descriptors before anyone learns that it is done.
        drop(frame);
        match outcome {
            Ok(_) if passed_on => {
                let _ = self.link.send(FrameKind::PassedOn, job, 0, &(), SMALL_MESSAGE_LIMIT);
            }
            Ok(reply) => {
                let ran = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
                if let Err(error) =
                    self.link.send(FrameKind::Reply, job, ran, &reply, self.max_reply_bytes)
                {
                    self.unanswerable(job, &error);
                }
            }
            Err(message) => {
                let _ = self.link.send(
                    FrameKind::Panic,
                    job,
                    0,
                    &PanicNote { message },
                    SMALL_MESSAGE_LIMIT,
                );
                // After a panic, the role's state cannot be trusted with another job.
                process::exit_now(EXIT_PANIC);
            }
        }
    }

    fn unanswerable(&self, job: u64, error: &WireError) {
        let _ = self.link.send(
            FrameKind::Unanswerable,
            job,
            0,
            &error.to_string(),
            SMALL_MESSAGE_LIMIT,
        );
    }
}

fn receive(socket: &OwnedFd, reader: &mut FrameReader) -> io::Result<Option<Frame>> {
    loop {
        if let Some(frame) = reader.next().map_err(io::Error::other)? {
            return Ok(Some(frame));
        }
        if matches!(reader.fill(socket)?, Fill::Eof | Fill::Reset) {
            return Ok(None);
        }
    }
}

/// The worker's sending side of the connection to the front.
#[derive(Debug)]
pub(crate) struct Link {
    socket: OwnedFd,
    replies: Area,
    last_progress: Mutex<Option<Instant>>,
}

impl Link {
    fn new(socket: OwnedFd, replies: Area) -> Self {
        Self { socket, replies, last_progress: Mutex::new(None) }
    }

    #[cfg(feature = "misbehave")]
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    fn send<T: Serialize>(
        &self,
        kind: FrameKind,
        job: u64,
        nanoseconds: u64,
        message: &T,
        limit: u64,
    ) -> Result<(), WireError> {
        let parcel = Parcel::encode(message, limit)?;
        parcel.place(&self.replies)?;
        let header = Header { nanoseconds, ..parcel.header(kind, job) };
        let sent = socket::send(&self.socket, &[&header.encode(), parcel.inline()], &[]);
        if sent.is_err() {
            // The front is gone; the lifeline is about to end this process.
            process::kill_own_group();
        }
        Ok(())
    }

    pub(crate) fn part(&self, job: u64, bytes: &[u8]) {
        for piece in bytes.chunks(MAX_PART_BYTES) {
            let piece = Bulk::from(piece.to_vec());
            let _ = self.send(FrameKind::Part, job, 0, &piece, SMALL_MESSAGE_LIMIT);
        }
    }

    pub(crate) fn progress(&self, job: u64, note: impl FnOnce() -> Progress) {
        let mut last = self.last_progress.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|at| at.elapsed() < PROGRESS_INTERVAL) {
            return;
        }
        *last = Some(Instant::now());
        let _ = self.send(FrameKind::Progress, job, 0, &note(), SMALL_MESSAGE_LIMIT);
    }
}

/// Starts the lifeline: the thread that ends this worker when its front is gone, whatever the
/// role is doing. It also records cancelled jobs; the returned value is the ID of the last one.
fn watch_front(control: OwnedFd) -> io::Result<Arc<AtomicU64>> {
    let cancelled_job = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&cancelled_job);
    std::thread::Builder::new().name("lifeline".into()).stack_size(64 << 10).spawn(move || {
        process::block_signals();
        let mut job = [0; 8];
        while let Ok(8) = rustix::io::retry_on_intr(|| rustix::io::read(&control, &mut job)) {
            noted.store(u64::from_le_bytes(job), Ordering::Relaxed);
        }
        process::kill_own_group();
    })?;
    Ok(cancelled_job)
}

/// Prints location and message only: for a second panic the default hook would print a
/// backtrace even if it is disabled, while the caller waits.
fn print_panics_briefly() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("panicked at {place}: {}", panic_message(panic.payload()));
    }));
}

/// Runs `work`; if it panics, returns the message.
fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| panic_message(&*payload))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "panic without a text message".to_owned()
    }
}
