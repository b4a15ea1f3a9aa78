//! Runs one worker process from start to end. All communication with it happens here.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate_types::Bulk;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Instrument;

use super::output::Output;
use super::shared::{DeathRecord, FinishedJob, Shared};
use crate::class::{Circumstances, End, KillReason, Phase};
use crate::error::StartError;
use crate::linux::area::Area;
use crate::linux::process::{self, Process};
use crate::linux::watch::{Watched, watch};
use crate::linux::{process_memory, socket};
use crate::role::{Refusal, Role};
use crate::settings::PoolSettings;
use crate::supervisor::{JobId, WorkerId};
use crate::wire::{Fill, Frame, FrameKind, FrameReader, Header, PanicNote, Parcel, Progress};
use crate::worker::WORKER_ARGUMENT;

/// The stream ends before the exit status arrives. A worker that still runs after this long has
/// closed its socket itself.
const EXIT_AFTER_EOF: Duration = Duration::from_secs(1);

/// How many frames are read from one worker before other tasks get their turn.
const FRAMES_AT_ONCE: usize = 16;

/// An order from the supervisor to a worker's executor.
#[derive(Debug)]
pub(super) enum Order {
    Run {
        job: JobId,
        parcel: Arc<Parcel>,
        descriptors: Vec<Arc<OwnedFd>>,
        attempt: u32,
        budget: Duration,
    },
    Cancel {
        job: JobId,
    },
    Stop,
    Kill {
        reason: KillReason,
    },
}

/// Starts a worker and follows it until it ends.
pub(super) async fn execute<R: Role>(
    shared: Arc<Shared<R>>,
    id: WorkerId,
    orders: UnboundedReceiver<Order>,
) {
    let executor = tokio::spawn(follow(Arc::clone(&shared), id, orders).in_current_span());
    // If this code itself panics, callers must not wait forever.
    if executor.await.is_err_and(|error| error.is_panic()) {
        shared.executor_panicked(id);
    }
}

async fn follow<R: Role>(shared: Arc<Shared<R>>, id: WorkerId, orders: UnboundedReceiver<Order>) {
    // A start takes a millisecond, so let tasks that are ready go first. It runs on no other
    // thread, because none can be started when the process table is full.
    tokio::task::yield_now().await;
    match Executor::start(&shared, id) {
        Ok(executor) => executor.run(orders).await,
        Err(error) => {
            let lasting = StartError::lasting(&shared.settings.program, &error);
            let reason = format!("cannot start the process: {error}");
            shared.ended(id, DeathRecord::unknown(Phase::Starting, reason, lasting));
        }
    }
}

/// Created anew for every order and every reply, so it sets no timer until it is polled.
async fn grace_after(eof: Option<Instant>) {
    if let Some(at) = eof {
        tokio::time::sleep_until((at + EXIT_AFTER_EOF).into()).await;
    }
}

struct Executor<R: Role> {
    shared: Arc<Shared<R>>,
    id: WorkerId,
    process: Process,
    end: Watched,
    socket: Watched,
    control: OwnedFd,
    /// The shared memory for long requests.
    requests: Area,
    output: Output,
    reader: FrameReader,
    phase: Phase,
    job: Option<JobId>,
    killed: Option<KillReason>,
    panic: Option<String>,
    violation: Option<String>,
    refusal: Option<Refusal>,
    eof: Option<Instant>,
    more_to_read: bool,
    /// Whether it ended without reading everything it was sent.
    unread: bool,
}

impl<R: Role> Executor<R> {
    fn start(shared: &Arc<Shared<R>>, id: WorkerId) -> io::Result<Self> {
        let (control_reader, control) = process::control_pipe()?;
        let requests = Area::create(shared.settings.max_request_bytes)?;
        let replies = Area::create(shared.settings.max_reply_bytes)?;
        let name = format!("{}-worker", R::NAME);
        let arguments = [OsStr::new(WORKER_ARGUMENT), OsStr::new(R::NAME)];
        let PoolSettings { program, environment, .. } = &shared.settings;
        let started = process::start(program, OsStr::new(&name), &arguments, environment)?;
        let pid = started.process.id();
        let hello = shared.hello();
        let descriptors = [control_reader.as_fd(), requests.as_fd(), replies.as_fd()];
        let header =
            Header { descriptors: descriptors.len() as u32, ..hello.header(FrameKind::Hello, 0) };
        // If it is already gone, its exit status tells why.
        let _ = socket::send(&started.socket, &[&header.encode(), hello.inline()], &descriptors);
        let mut reader = FrameReader::new();
        reader.set_area(replies, shared.settings.max_reply_bytes);
        let executor = Self {
            id,
            end: started.process.end()?,
            process: started.process,
            socket: watch(started.socket)?,
            control,
            output: Output::new(started.output)?,
            requests,
            reader,
            phase: Phase::Starting,
            job: None,
            killed: None,
            panic: None,
            violation: None,
            refusal: None,
            eof: None,
            more_to_read: false,
            unread: false,
            shared: Arc::clone(shared),
        };
        shared.spawned(id, pid);
        Ok(executor)
    }

    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        let end = loop {
            let eof = self.eof;
            tokio::select! {
                biased;
                // Orders first: a worker that floods us must not delay its own kill.
                Some(order) = orders.recv() => self.execute_order(order),
                () = tokio::task::yield_now(), if self.more_to_read => self.read_frames(),
                // After a violation, nothing it sends counts; and an unread end of stream would
                // stay readable forever.
                ready = self.socket.readable(), if self.eof.is_none() && self.violation.is_none() => {
                    if let Ok(mut guard) = ready {
                        guard.clear_ready();
                    }
                    self.read_frames();
                }
                ready = self.end.readable() => {
                    if let Ok(mut guard) = ready {
                        guard.clear_ready();
                    }
                    if let Some(end) = self.reap() {
                        break end;
                    }
                }
                () = self.output.keep_reading() => {}
                () = grace_after(eof), if eof.is_some() => {
                    self.violated("it closed its socket");
                    self.eof = Some(Instant::now() + EXIT_AFTER_EOF);
                }
            }
        };
        self.report_end(end);
    }

    fn execute_order(&mut self, order: Order) {
        match order {
            Order::Run { job, parcel, descriptors, attempt, budget } => {
                self.job = Some(job);
                self.phase = Phase::Busy;
                let header = Header {
                    attempt,
                    nanoseconds: u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX),
                    ..parcel.header(FrameKind::Job, job)
                };
                let descriptors: Vec<_> = descriptors.iter().map(|it| it.as_fd()).collect();
                self.send(header, &parcel, &descriptors);
            }
            Order::Cancel { job } => {
                // If the pipe is full, the worker has more cancellations to read than it needs.
                let _ = rustix::io::write(&self.control, &job.to_le_bytes());
            }
            Order::Stop => {
                self.phase = Phase::Stopping;
                if let Ok(nothing) = Parcel::encode(&(), 1024) {
                    self.send(nothing.header(FrameKind::Stop, 0), &nothing, &[]);
                }
            }
            Order::Kill { reason } => self.kill(reason),
        }
    }

    fn send(&mut self, header: Header, parcel: &Parcel, descriptors: &[BorrowedFd<'_>]) {
        let header = Header { descriptors: descriptors.len() as u32, ..header };
        if let Err(error) = parcel.place(&self.requests) {
            return self.violated(&error.to_string());
        }
        let parts = [&header.encode()[..], parcel.inline()];
        match socket::send(self.socket.get_ref(), &parts, descriptors) {
            Ok(()) => {}
            // An empty socket has room for a whole frame.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.violated("it does not read from its socket");
            }
            // It is gone; its exit status tells why.
            Err(_) => self.unread = true,
        }
    }

    /// Reads the available frames, up to `FRAMES_AT_ONCE`.
    fn read_frames(&mut self) {
        self.more_to_read = false;
        for _ in 0..FRAMES_AT_ONCE {
            if self.violation.is_some() {
                return;
            }
            match self.reader.next() {
                Ok(Some(frame)) => {
                    self.take(&frame);
                    // New data will wake us; no need to poll the socket again.
                    if self.reader.is_drained() {
                        return;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => return self.violated(&error.to_string()),
            }
            match self.reader.fill(self.socket.get_ref()) {
                Ok(Fill::Some) => {}
                Ok(Fill::WouldBlock) => return,
                Ok(end @ (Fill::Eof | Fill::Reset)) => {
                    self.unread |= end == Fill::Reset;
                    self.eof = Some(Instant::now());
                    return;
                }
                Err(error) => return self.violated(&error.to_string()),
            }
        }
        self.more_to_read = true;
    }

    fn take(&mut self, frame: &Frame) {
        let about_its_job = self.job == Some(frame.header.job);
        match frame.header.kind {
            FrameKind::Ready if self.phase == Phase::Starting => match frame.decode() {
                Ok(confinement) => {
                    self.phase = Phase::Idle;
                    let rss = process_memory::resident_bytes(self.process.id());
                    self.shared.ready(self.id, rss, confinement);
                }
                Err(error) => self.violated(&error.to_string()),
            },
            FrameKind::Refused if self.phase == Phase::Starting => {
                self.refusal = frame.decode().ok()
            }
            FrameKind::Panic if about_its_job || self.phase == Phase::Starting => {
                self.panic = Some(match frame.decode::<PanicNote>() {
                    Ok(note) => note.message,
                    Err(error) => error.to_string(),
                });
            }
            FrameKind::Progress if about_its_job => match frame.decode::<Progress>() {
                Ok(progress) => self.shared.progressed(frame.header.job, progress),
                Err(error) => self.violated(&error.to_string()),
            },
            FrameKind::Part if about_its_job => match frame.decode::<Bulk>() {
                Ok(part) => self.shared.part(frame.header.job, part.into_bytes()),
                Err(error) => self.violated(&error.to_string()),
            },
            FrameKind::Reply if about_its_job => match frame.decode::<R::Reply>() {
                Ok(reply) => {
                    self.finish(FinishedJob::Reply(
                        reply,
                        Duration::from_nanos(frame.header.nanoseconds),
                    ));
                }
                Err(error) => self.violated(&error.to_string()),
            },
            FrameKind::Unanswerable if about_its_job => match frame.decode::<String>() {
                Ok(reason) => self.finish(FinishedJob::Unanswerable(reason)),
                Err(error) => self.violated(&error.to_string()),
            },
            FrameKind::PassedOn if about_its_job => {
                if let Some(job) = self.job.take() {
                    self.phase = Phase::Idle;
                    self.shared.passed_on(self.id, job);
                }
            }
            kind => self.violated(&format!(
                "it sent {kind:?} for job {} at the wrong time",
                frame.header.job
            )),
        }
    }

    fn finish(&mut self, finish: FinishedJob<R::Reply>) {
        if let Some(job) = self.job.take() {
            self.phase = Phase::Idle;
            self.shared.finished(self.id, job, finish);
        }
    }

    fn violated(&mut self, how: &str) {
        if self.violation.is_none() {
            self.violation = Some(how.to_owned());
        }
        self.kill(KillReason::Violation);
    }

    fn kill(&mut self, reason: KillReason) {
        if self.killed.is_none() {
            self.killed = Some(reason);
            tracing::debug!(role = R::NAME, pid = self.process.id(), ?reason, "kill worker");
        }
        self.process.kill_group();
    }

    /// How the worker ended, if it has. What it sent before its end still counts.
    fn reap(&mut self) -> Option<End> {
        let end = self.process.reap()?;
        // A dead worker sent at most what fits into its socket.
        self.more_to_read = true;
        while self.eof.is_none() && self.violation.is_none() && self.more_to_read {
            self.read_frames();
        }
        self.output.read_last();
        Some(end)
    }

    fn report_end(self, end: End) {
        let torn = self.reader.is_torn();
        let record = DeathRecord {
            end: Some(end),
            undelivered: self.unread && self.job.is_some(),
            circumstances: Circumstances {
                phase: self.phase,
                panicked: self.panic.is_some(),
                violated: self.violation.is_some() || torn,
                killed: self.killed,
                allocator_refused: self.output.allocator_refused(),
                oom_kill: false,
            },
            refusal: self.refusal.map(StartError::Refused),
            panic: self.panic,
            violation: self
                .violation
                .or_else(|| torn.then(|| "it ended in the middle of a frame".to_owned())),
            output: self.output.into_lines(),
        };
        self.shared.ended(self.id, record);
    }
}
