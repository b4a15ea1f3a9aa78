use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use crate::class::is_allocator_refusal;
use crate::linux::watch::{Watched, watch};

/// How much of a worker's output is kept for its crash report.
const MAX_LINES: usize = 40;
const MAX_LINE_BYTES: usize = 500;

/// How much is read from a pipe that another process may still be filling.
const LAST_READ_LIMIT: usize = 1 << 20;

/// What a worker prints to standard output and standard error. It is read as it comes, so that
/// the worker never blocks; only the last lines are kept.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Watched,
    open: bool,
    lines: VecDeque<String>,
    partial: Vec<u8>,
}

impl Output {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self { pipe: watch(pipe)?, open: true, lines: VecDeque::new(), partial: Vec::new() })
    }

    /// Reads forever; the future is cancelled by dropping it.
    pub(super) async fn keep_reading(&mut self) {
        while self.open {
            let Ok(mut guard) = self.pipe.readable().await else {
                break;
            };
            let mut chunk = [0; 4096];
            match guard.try_io(|pipe| Ok(rustix::io::read(pipe, &mut chunk)?)) {
                Ok(Ok(0) | Err(_)) => self.open = false,
                Ok(Ok(count)) => self.take(&chunk[..count]),
                Err(_would_block) => {}
            }
        }
        std::future::pending::<()>().await;
    }

    /// Reads what is left after the worker's end.
    pub(super) fn read_last(&mut self) {
        let mut chunk = [0; 4096];
        let mut total = 0;
        while let Ok(count @ 1..) = rustix::io::read(self.pipe.get_ref(), &mut chunk) {
            self.take(&chunk[..count]);
            total += count;
            if total > LAST_READ_LIMIT {
                break;
            }
        }
        self.end_line();
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.end_line();
            } else if self.partial.len() < MAX_LINE_BYTES {
                self.partial.push(byte);
            }
        }
    }

    fn end_line(&mut self) {
        if self.partial.is_empty() {
            return;
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        let line = String::from_utf8_lossy(&self.partial).into_owned();
        tracing::trace!(line, "worker printed");
        self.lines.push_back(line);
        self.partial.clear();
    }

    pub(super) fn allocator_refused(&self) -> bool {
        self.lines.iter().any(|line| is_allocator_refusal(line))
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
