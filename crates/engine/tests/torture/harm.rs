//! Faults that are injected into processes and files.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Minimum time between crashes in one process. A crash counts against the running job, and two
/// make it poison, as intended. Truncated files count as well: they may crash the readers of all
/// processes that have them mapped.
const BETWEEN_CRASHES: Duration = Duration::from_secs(3);

/// The size of a damaged page.
const PAGE: u64 = 4096;

/// Worker processes seen so far: PID and start time, which together are unique.
#[derive(Default)]
pub(crate) struct Workers {
    seen: BTreeSet<(i32, u64)>,
}

/// Injects faults, and counts them.
pub(crate) struct Harm {
    pub(crate) random: Rng,
    pub(crate) workers: Workers,
    /// When a worker of a process, or of any process, last crashed.
    crashed: HashMap<Option<i32>, Instant>,
    pub(crate) worker_kills: u64,
    pub(crate) crashes: u64,
    pub(crate) damaged_files: u64,
}

/// How a file is damaged.
#[derive(Debug, Clone, Copy)]
enum Injury {
    /// Changes some bytes, for processes that open it from now on.
    Spoilt,
    /// Changes some bytes, also for processes that have it mapped.
    SpoiltInPlace,
    Cut,
    Removed,
}

impl Harm {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            workers: Workers::default(),
            crashed: HashMap::new(),
            worker_kills: 0,
            crashes: 0,
            damaged_files: 0,
        }
    }

    /// Kills a worker of this process, if it has any.
    pub(crate) fn kill_a_worker(&mut self, front: i32) -> io::Result<()> {
        let children = children_of(front)?;
        self.workers.seen.extend(children.iter().copied());
        if children.is_empty() {
            return Ok(());
        }
        let (worker, _) = children[self.random.usize(..children.len())];
        if self.random.u32(..8) == 0 && self.may_crash(front) {
            let signals = [Signal::SEGV, Signal::BUS, Signal::ABORT, Signal::ILL];
            let signal = signals[self.random.usize(..signals.len())];
            // The first of some signals only removes the handler of Rust's runtime.
            let killed = send(front, worker, signal)?;
            std::thread::sleep(Duration::from_millis(2));
            let _ = send(front, worker, signal)?;
            if killed {
                self.crashed.insert(Some(front), Instant::now());
                self.crashes += 1;
            }
        } else if send(front, worker, Signal::KILL)? {
            self.worker_kills += 1;
        }
        Ok(())
    }

    /// Damages a segment, if there is one.
    pub(crate) fn damage_a_segment(&mut self, store: &Path, aside: &Path) -> io::Result<()> {
        let mut files: Vec<PathBuf> = fs::read_dir(store.join("segments"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "vec" || it == "txt"))
            .filter(|path| path.file_name().is_some_and(|it| it.as_encoded_bytes()[0] != b'.'))
            .collect();
        files.sort();
        if files.is_empty() {
            return Ok(());
        }
        let file = &files[self.random.usize(..files.len())];
        let injury = match self.random.u32(..4) {
            0 => Injury::Spoilt,
            1 => Injury::SpoiltInPlace,
            2 if self.may_cut() => Injury::Cut,
            _ => Injury::Removed,
        };
        match self.injure(file, injury, aside) {
            Ok(()) => {
                self.damaged_files += 1;
                if matches!(injury, Injury::Cut) {
                    self.crashed.insert(None, Instant::now());
                }
                Ok(())
            }
            // A fold has replaced it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn injure(&mut self, file: &Path, injury: Injury, aside: &Path) -> io::Result<()> {
        match injury {
            Injury::Removed => fs::remove_file(file),
            Injury::Cut => {
                let file = File::options().write(true).open(file)?;
                let length = file.metadata()?.len();
                file.set_len(self.random.u64(..length.max(1)))
            }
            Injury::SpoiltInPlace => {
                self.spoil(&File::options().read(true).write(true).open(file)?)
            }
            Injury::Spoilt => {
                fs::copy(file, aside)?;
                self.spoil(&File::options().read(true).write(true).open(aside)?)?;
                fs::rename(aside, file)
            }
        }
    }

    /// Changes some bytes, or overwrites a page.
    fn spoil(&mut self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if self.random.bool() {
            let at = self.random.u64(..length.max(1)) / PAGE * PAGE;
            let blot = vec![self.random.u8(..); PAGE.min(length - at) as usize];
            return file.write_all_at(&blot, at);
        }
        for _ in 0..self.random.u32(1..=4) {
            let (at, mut byte) = (self.random.u64(..length.max(1)), [0]);
            if file.read_at(&mut byte, at)? == 1 {
                file.write_all_at(&[byte[0] ^ self.random.u8(1..)], at)?;
            }
        }
        Ok(())
    }

    fn may_crash(&self, front: i32) -> bool {
        let last = [Some(front), None].into_iter().filter_map(|who| self.crashed.get(&who)).max();
        last.is_none_or(|last| last.elapsed() > BETWEEN_CRASHES)
    }

    /// A job that crashed once is retried without segments, so only another truncation
    /// matters.
    fn may_cut(&self) -> bool {
        self.crashed.get(&None).is_none_or(|last| last.elapsed() > BETWEEN_CRASHES)
    }
}

impl Workers {
    /// The number of them that still exist after a moment.
    pub(crate) fn left(&self) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let alive = |(pid, started): &&(i32, u64)| {
                stat(*pid).is_some_and(|stat| stat.started == *started && stat.state != b'Z')
            };
            let left = self.seen.iter().filter(alive).count() as u64;
            if left == 0 || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a signal to a child of `front`, and to no other process.
fn send(front: i32, worker: i32, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(worker) else { return Ok(false) };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(false) };
    // The PID may have been reused before it was opened.
    if stat(worker).is_none_or(|stat| stat.parent != front || stat.state == b'Z') {
        return Ok(false);
    }
    match pidfd_send_signal(&descriptor, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn children_of(front: i32) -> io::Result<Vec<(i32, u64)>> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) = stat(pid)
            && stat.parent == front
            && stat.state != b'Z'
        {
            children.push((pid, stat.started));
        }
    }
    children.sort_unstable();
    Ok(children)
}

struct Stat {
    state: u8,
    parent: i32,
    started: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Stat {
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}
