//! The remaining rows of answers longer than a page, in unnamed temporary files that expire.
//! They occupy no worker and no transaction.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use isolith_graph::Datum;
use isolith_protocol::first_row;
use isolith_types::{Code, Failure};

use super::pages::PageSize;

/// How long an answer is kept after it was last used.
pub(super) const LIFETIME: Duration = Duration::from_secs(300);

/// Maximum number of answers kept at the same time; the least recently used one makes room.
const MAX_SPOOLS: usize = 32;

/// Minimum number of bytes to read at once.
const MIN_READ: u64 = 4 << 10;

/// All stored answers.
#[derive(Debug, Default)]
pub(crate) struct Spools {
    /// Signs tokens, so that only tokens issued here are valid.
    secret: OnceLock<[u8; 32]>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    last_number: u64,
    spools: Vec<(u64, Instant, Arc<Spool>)>,
}

/// The rest of one answer: a file with the rows sent ahead of the reply, followed by the rows
/// of the reply that did not fit on the first page. The latter are returned first.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) columns: Vec<String>,
    rest: Rest,
    /// The number of bytes that came with the reply.
    head: u64,
}

/// The rows sent ahead of a reply, in a file.
#[derive(Debug)]
pub(super) struct Rest {
    file: File,
    length: u64,
}

/// Receives the rows sent ahead of a reply and writes them to a file.
#[derive(Debug, Default)]
pub(super) struct IncomingRows(Mutex<ReceivedRows>);

#[derive(Debug, Default)]
struct ReceivedRows {
    attempt: u32,
    rest: Option<Rest>,
    failed: Option<Failure>,
}

/// Maximum size of these rows; the store refuses longer answers.
const MAX_REST_BYTES: u64 = 64 << 20;

/// A position in a stored answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpoolPosition {
    pub(super) spool: u64,
    pub(super) at: u64,
}

impl Spools {
    /// Stores an answer and returns its number.
    pub(super) fn keep(&self, spool: Spool, now: Instant) -> u64 {
        let mut kept = self.kept();
        kept.sweep(now);
        if kept.spools.len() >= MAX_SPOOLS {
            let oldest = kept.spools.iter().enumerate().min_by_key(|(_, (_, used, _))| *used);
            if let Some((at, _)) = oldest {
                kept.spools.swap_remove(at);
            }
        }
        kept.last_number += 1;
        let number = kept.last_number;
        kept.spools.push((number, now, Arc::new(spool)));
        number
    }

    /// A stored answer, whose lifetime starts again.
    pub(super) fn find(&self, number: u64, now: Instant) -> Option<Arc<Spool>> {
        let mut kept = self.kept();
        kept.sweep(now);
        let (_, used, spool) = kept.spools.iter_mut().find(|(it, ..)| *it == number)?;
        *used = now;
        Some(Arc::clone(spool))
    }

    /// Drops expired answers, and returns the remaining lifetime of this one.
    pub(super) fn remaining(&self, number: u64, now: Instant) -> Option<Duration> {
        let mut kept = self.kept();
        kept.sweep(now);
        let (_, used, _) = kept.spools.iter().find(|(it, ..)| *it == number)?;
        Some(LIFETIME.saturating_sub(now.duration_since(*used)))
    }

    /// The token for a position.
    pub(super) fn token(&self, position: SpoolPosition) -> Result<String, Failure> {
        let signature = self.signature(position)?;
        Ok(format!("{:x}-{:x}-{signature}", position.spool, position.at))
    }

    /// The position of a token, if it was issued here.
    pub(super) fn position(&self, token: &str) -> Result<Option<SpoolPosition>, Failure> {
        let mut parts = token.splitn(3, '-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (Some(spool), Some(at)) = (number(), number()) else { return Ok(None) };
        let position = SpoolPosition { spool, at };
        Ok((parts.next() == Some(&self.signature(position)?)).then_some(position))
    }

    fn signature(&self, position: SpoolPosition) -> Result<String, Failure> {
        let secret = match self.secret.get() {
            Some(secret) => secret,
            None => {
                let fresh = random().map_err(|error| spool_failure(&error))?;
                self.secret.get_or_init(|| fresh)
            }
        };
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(&position.spool.to_le_bytes()).update(&position.at.to_le_bytes());
        Ok(hasher.finalize().to_hex()[..32].to_owned())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn sweep(&mut self, now: Instant) {
        self.spools.retain(|(_, used, _)| now.duration_since(*used) < LIFETIME);
    }
}

impl Spool {
    /// Stores rows of a reply, to be returned before those that were sent ahead of it.
    pub(super) fn write(
        columns: Vec<String>,
        rows: &[u8],
        rest: Option<Rest>,
    ) -> Result<Self, Failure> {
        let write = || {
            let rest = rest.map_or_else(Rest::new, Ok)?;
            rest.file.write_all_at(rows, rest.length)?;
            Ok(rest)
        };
        let rest = write().map_err(|error| spool_failure(&error))?;
        Ok(Self { columns, rest, head: rows.len() as u64 })
    }

    /// The offset of a position in the file, and the number of contiguous bytes from there.
    fn locate(&self, at: u64) -> (u64, u64) {
        if at < self.head {
            return (self.rest.length + at, self.head - at);
        }
        let at = at - self.head;
        (at, self.rest.length.saturating_sub(at))
    }

    fn length(&self) -> u64 {
        self.head + self.rest.length
    }

    /// A page of rows from a position on, and the position after them if there are more.
    pub(super) fn read(
        &self,
        at: u64,
        size: PageSize,
    ) -> Result<(Vec<GraphRow>, Option<u64>), Failure> {
        let (offset, left) = self.locate(at);
        let mut reach = (size.bytes as u64).max(MIN_READ);
        loop {
            let mut bytes = vec![0; usize::try_from(reach.min(left)).unwrap_or(usize::MAX)];
            let file = &self.rest.file;
            file.read_exact_at(&mut bytes, offset).map_err(|error| spool_failure(&error))?;
            let (rows, taken) = first_page(&bytes, size);
            let end = at + taken as u64;
            if taken > 0 {
                return Ok((rows, (end < self.length()).then_some(end)));
            }
            if reach >= left {
                return Err(Failure::new(
                    Code::Failed,
                    "the stored rest of the answer cannot be decoded",
                ));
            }
            // The first row alone is longer.
            reach *= 4;
        }
    }
}

impl Rest {
    fn new() -> io::Result<Self> {
        // Unnamed: it disappears with this process.
        Ok(Self { file: tempfile::tempfile()?, length: 0 })
    }

    /// The whole content.
    pub(super) fn read_all(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, 0).map_err(|error| spool_failure(&error))?;
        Ok(bytes)
    }
}

impl IncomingRows {
    /// Appends a part. A new attempt discards the parts of the previous one.
    pub(super) fn take(&self, attempt: u32, part: &[u8]) {
        let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if received.attempt != attempt {
            *received = ReceivedRows { attempt, ..ReceivedRows::default() };
        }
        if received.failed.is_none()
            && let Err(failure) = received.write(part)
        {
            received.failed = Some(failure);
            received.rest = None;
        }
    }

    /// The received rows, if they have the length that the reply states.
    pub(super) fn finish(&self, length: u64) -> Result<Option<Rest>, Failure> {
        let mut received = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = received.failed.take() {
            return Err(failure);
        }
        let rest = received.rest.take();
        if rest.as_ref().map_or(0, |rest| rest.length) != length {
            return Err(Failure::new(Code::Failed, "the rest of the answer is incomplete"));
        }
        Ok(rest)
    }
}

impl ReceivedRows {
    fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        let rest = match &mut self.rest {
            Some(rest) => rest,
            empty => empty.insert(Rest::new().map_err(|error| spool_failure(&error))?),
        };
        if rest.length + part.len() as u64 > MAX_REST_BYTES {
            return Err(Failure::new(Code::TooLarge, "the answer is too long"));
        }
        rest.file.write_all_at(part, rest.length).map_err(|error| spool_failure(&error))?;
        rest.length += part.len() as u64;
        Ok(())
    }
}

/// The values of one row.
pub type GraphRow = Vec<Datum>;

/// The first rows in `bytes`, at most a page, and their length in bytes. At least one row,
/// unless the first one is incomplete.
pub(super) fn first_page(bytes: &[u8], size: PageSize) -> (Vec<GraphRow>, usize) {
    let (mut rows, mut taken) = (Vec::new(), 0);
    while rows.len() < size.rows && taken < bytes.len() {
        let Ok((row, after)) = first_row(&bytes[taken..]) else { break };
        let end = bytes.len() - after.len();
        if end > size.bytes && taken > 0 {
            break;
        }
        rows.push(row);
        taken = end;
    }
    (rows, taken)
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn spool_failure(error: &io::Error) -> Failure {
    let message = format!("cannot store the rest of the answer: {error}");
    match error.kind() {
        ErrorKind::StorageFull => Failure::new(Code::DiskFull, message)
            .with_hint("free space in the folder for temporary files, or add LIMIT to the query"),
        _ => Failure::new(Code::Failed, message).with_hint("add LIMIT to the query"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> Spool {
        Spool::write(vec!["n".to_owned()], &[], None).unwrap()
    }

    #[test]
    fn rows_of_the_reply_precede_rows_sent_ahead_of_it() {
        let rows = |numbers: std::ops::Range<i64>| -> Vec<u8> {
            numbers.flat_map(|n| postcard::to_stdvec(&vec![Datum::Integer(n)]).unwrap()).collect()
        };
        let incoming = IncomingRows::default();
        incoming.take(0, &rows(7..9));
        let (first, second) = (rows(5..8), rows(8..300));
        incoming.take(1, &first);
        incoming.take(1, &second);
        assert!(incoming.finish(1).is_err(), "the length differs");
        incoming.take(1, &first);
        incoming.take(1, &second);
        let rest = incoming.finish((first.len() + second.len()) as u64).unwrap();
        let spool = Spool::write(Vec::new(), &rows(0..5), rest).unwrap();
        let (mut found, mut next) = (Vec::new(), Some(0));
        while let Some(at) = next {
            let (page, after) = spool.read(at, PageSize { rows: 7, bytes: 1 << 20 }).unwrap();
            found.extend(page.into_iter().flatten());
            next = after;
        }
        assert_eq!(found, (0..300).map(Datum::Integer).collect::<Vec<_>>());
    }

    #[test]
    fn unused_answers_expire() {
        let (spools, start) = (Spools::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let number = spools.keep(spool(), start);
        assert!(spools.find(number, at(299)).is_some());
        assert_eq!(spools.remaining(number, at(300)), Some(Duration::from_secs(299)));
        assert!(spools.find(number, at(598)).is_some(), "it was used in between");
        assert!(spools.remaining(number, at(898)).is_none());
        assert!(spools.find(number, at(898)).is_none());
        assert!(spools.kept().spools.is_empty(), "the file is closed");
    }

    #[test]
    fn the_least_recently_used_answer_makes_room() {
        let (spools, start) = (Spools::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let numbers: Vec<u64> = (0..32).map(|it| spools.keep(spool(), at(it))).collect();
        assert!(spools.find(numbers[0], at(40)).is_some());
        spools.keep(spool(), at(41));
        assert!(spools.find(numbers[1], at(42)).is_none());
        assert!(spools.find(numbers[0], at(42)).is_some());
        assert_eq!(spools.kept().spools.len(), MAX_SPOOLS);
    }

    #[test]
    fn only_issued_tokens_are_valid() {
        let spools = Spools::default();
        let position = SpoolPosition { spool: 7, at: 0x1234 };
        let token = spools.token(position).unwrap();
        assert!(token.starts_with("7-1234-"), "{token}");
        assert_eq!(spools.position(&token).unwrap(), Some(position));
        assert_eq!(Spools::default().position(&token).unwrap(), None, "from before a restart");
        for wrong in ["", "7", "7-1234", "7-1235", "é-1-2", "7-1234-00", "--"] {
            assert_eq!(spools.position(wrong).unwrap(), None, "{wrong}");
        }
        let moved = token.replace("7-1234-", "7-1235-");
        assert_eq!(spools.position(&moved).unwrap(), None);
    }
}
