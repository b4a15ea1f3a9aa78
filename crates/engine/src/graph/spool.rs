//! What is left of answers that are longer than a page: files without a name, kept for a
//! while. No worker and no transaction is held for them.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use isolith_graph::Datum;
use isolith_protocol::first_row;
use isolith_types::{Code, Failure};

use super::pages::PageSize;

/// How long an answer is kept that nobody asks for.
pub(super) const LIFE: Duration = Duration::from_secs(300);

/// Answers that are kept at the same time; for one more, the one that was asked for least
/// recently goes.
const MOST: usize = 32;

/// The least that is read of a file at once.
const LEAST_READ: u64 = 4 << 10;

/// All answers that are kept.
#[derive(Debug, Default)]
pub(crate) struct Spools {
    /// Signs tokens, so that only those mean something that were given out here.
    secret: OnceLock<[u8; 32]>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    given: u64,
    spools: Vec<(u64, Instant, Arc<Spool>)>,
}

/// The rest of one answer: a file with the rows that came ahead of the reply, and behind them
/// those of the reply that did not fit on the first page. These come first.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) columns: Vec<String>,
    rest: Rest,
    /// How many bytes of the reply are in it.
    head: u64,
}

/// Rows that came ahead of a reply.
#[derive(Debug)]
pub(super) struct Rest {
    file: File,
    length: u64,
}

/// Rows that come ahead of a reply, on their way into a file.
#[derive(Debug, Default)]
pub(super) struct Arriving(Mutex<Arrived>);

#[derive(Debug, Default)]
struct Arrived {
    attempt: u32,
    rest: Option<Rest>,
    failed: Option<Failure>,
}

/// No worker has more to say: a store refuses answers that are longer.
const LONGEST_REST: u64 = 64 << 20;

/// A place in the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpoolPosition {
    pub(super) spool: u64,
    pub(super) at: u64,
}

impl Spools {
    /// Keeps an answer: its number.
    pub(super) fn keep(&self, spool: Spool, now: Instant) -> u64 {
        let mut kept = self.kept();
        kept.sweep(now);
        if kept.spools.len() >= MOST {
            let oldest = kept.spools.iter().enumerate().min_by_key(|(_, (_, used, _))| *used);
            if let Some((at, _)) = oldest {
                kept.spools.swap_remove(at);
            }
        }
        kept.given += 1;
        let number = kept.given;
        kept.spools.push((number, now, Arc::new(spool)));
        number
    }

    /// An answer that is kept, and is from now on for as long again.
    pub(super) fn find(&self, number: u64, now: Instant) -> Option<Arc<Spool>> {
        let mut kept = self.kept();
        kept.sweep(now);
        let (_, used, spool) = kept.spools.iter_mut().find(|(it, ..)| *it == number)?;
        *used = now;
        Some(Arc::clone(spool))
    }

    /// How long an answer is still kept, after all that are not any more are gone.
    pub(super) fn left(&self, number: u64, now: Instant) -> Option<Duration> {
        let mut kept = self.kept();
        kept.sweep(now);
        let (_, used, _) = kept.spools.iter().find(|(it, ..)| *it == number)?;
        Some(LIFE.saturating_sub(now.duration_since(*used)))
    }

    /// What a client is given for a place.
    pub(super) fn token(&self, place: SpoolPosition) -> Result<String, Failure> {
        let signature = self.signature(place)?;
        Ok(format!("{:x}-{:x}-{signature}", place.spool, place.at))
    }

    /// The place that a token names, if it was given out here.
    pub(super) fn place(&self, token: &str) -> Result<Option<SpoolPosition>, Failure> {
        let mut parts = token.splitn(3, '-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (Some(spool), Some(at)) = (number(), number()) else { return Ok(None) };
        let place = SpoolPosition { spool, at };
        Ok((parts.next() == Some(&self.signature(place)?)).then_some(place))
    }

    fn signature(&self, place: SpoolPosition) -> Result<String, Failure> {
        let secret = match self.secret.get() {
            Some(secret) => secret,
            None => {
                let fresh = random().map_err(|error| unkept(&error))?;
                self.secret.get_or_init(|| fresh)
            }
        };
        let mut hasher = blake3::Hasher::new_keyed(secret);
        hasher.update(&place.spool.to_le_bytes()).update(&place.at.to_le_bytes());
        Ok(hasher.finalize().to_hex()[..32].to_owned())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn sweep(&mut self, now: Instant) {
        self.spools.retain(|(_, used, _)| now.duration_since(*used) < LIFE);
    }
}

impl Spool {
    /// Writes rows of a reply down, in front of those that came before it.
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
        let rest = write().map_err(|error| unkept(&error))?;
        Ok(Self { columns, rest, head: rows.len() as u64 })
    }

    /// Where a place is in the file, and how many bytes follow one another from there.
    fn find(&self, at: u64) -> (u64, u64) {
        if at < self.head {
            return (self.rest.length + at, self.head - at);
        }
        let at = at - self.head;
        (at, self.rest.length.saturating_sub(at))
    }

    fn length(&self) -> u64 {
        self.head + self.rest.length
    }

    /// Rows from a place on, as many as a page takes; and the place after them, if there
    /// is more.
    pub(super) fn read(
        &self,
        at: u64,
        size: PageSize,
    ) -> Result<(Vec<GraphRow>, Option<u64>), Failure> {
        let (place, left) = self.find(at);
        let mut reach = (size.bytes as u64).max(LEAST_READ);
        loop {
            let mut bytes = vec![0; usize::try_from(reach.min(left)).unwrap_or(usize::MAX)];
            let file = &self.rest.file;
            file.read_exact_at(&mut bytes, place).map_err(|error| unkept(&error))?;
            let (rows, taken) = cut(&bytes, size);
            let end = at + taken as u64;
            if taken > 0 {
                return Ok((rows, (end < self.length()).then_some(end)));
            }
            if reach >= left {
                return Err(Failure::new(Code::Failed, "the rest of the answer cannot be read"));
            }
            // The first row alone is longer.
            reach *= 4;
        }
    }
}

impl Rest {
    fn new() -> io::Result<Self> {
        // It has no name, and is gone with this process.
        Ok(Self { file: tempfile::tempfile()?, length: 0 })
    }

    /// All of it.
    pub(super) fn read_all(&self) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; usize::try_from(self.length).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, 0).map_err(|error| unkept(&error))?;
        Ok(bytes)
    }
}

impl Arriving {
    /// Writes a part down, behind those that came before it in the same attempt.
    pub(super) fn take(&self, attempt: u32, part: &[u8]) {
        let mut arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if arrived.attempt != attempt {
            *arrived = Arrived { attempt, ..Arrived::default() };
        }
        if arrived.failed.is_none()
            && let Err(failure) = arrived.write(part)
        {
            arrived.failed = Some(failure);
            arrived.rest = None;
        }
    }

    /// What has arrived, if it is as long as the reply says.
    pub(super) fn finish(&self, length: u64) -> Result<Option<Rest>, Failure> {
        let mut arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = arrived.failed.take() {
            return Err(failure);
        }
        let rest = arrived.rest.take();
        if rest.as_ref().map_or(0, |rest| rest.length) != length {
            return Err(Failure::new(Code::Failed, "the rest of the answer is not complete"));
        }
        Ok(rest)
    }
}

impl Arrived {
    fn write(&mut self, part: &[u8]) -> Result<(), Failure> {
        let rest = match &mut self.rest {
            Some(rest) => rest,
            empty => empty.insert(Rest::new().map_err(|error| unkept(&error))?),
        };
        if rest.length + part.len() as u64 > LONGEST_REST {
            return Err(Failure::new(Code::TooLarge, "the answer is too long to be kept"));
        }
        rest.file.write_all_at(part, rest.length).map_err(|error| unkept(&error))?;
        rest.length += part.len() as u64;
        Ok(())
    }
}

/// The values of one row.
pub type GraphRow = Vec<Datum>;

/// The rows at the beginning of `bytes` that make a page, and how many bytes they are: one
/// row at least, unless the first one is not all there.
pub(super) fn cut(bytes: &[u8], size: PageSize) -> (Vec<GraphRow>, usize) {
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

fn unkept(error: &io::Error) -> Failure {
    let message = format!("the rest of the answer cannot be kept: {error}");
    match error.kind() {
        ErrorKind::StorageFull => Failure::new(Code::DiskFull, message)
            .with_hint("make room in the folder for temporary files, or add LIMIT to the query"),
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
    fn rows_of_the_reply_come_before_those_that_came_ahead_of_it() {
        let rows = |numbers: std::ops::Range<i64>| -> Vec<u8> {
            numbers.flat_map(|n| postcard::to_stdvec(&vec![Datum::Integer(n)]).unwrap()).collect()
        };
        let arriving = Arriving::default();
        arriving.take(0, &rows(7..9));
        let (first, second) = (rows(5..8), rows(8..300));
        arriving.take(1, &first);
        arriving.take(1, &second);
        assert!(arriving.finish(1).is_err(), "not as long as it should be");
        arriving.take(1, &first);
        arriving.take(1, &second);
        let rest = arriving.finish((first.len() + second.len()) as u64).unwrap();
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
    fn what_nobody_asks_for_goes() {
        let (spools, start) = (Spools::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let number = spools.keep(spool(), start);
        assert!(spools.find(number, at(299)).is_some());
        assert_eq!(spools.left(number, at(300)), Some(Duration::from_secs(299)));
        assert!(spools.find(number, at(598)).is_some(), "it was used meanwhile");
        assert!(spools.left(number, at(898)).is_none());
        assert!(spools.find(number, at(898)).is_none());
        assert!(spools.kept().spools.is_empty(), "the file is closed");
    }

    #[test]
    fn of_too_many_the_least_used_goes() {
        let (spools, start) = (Spools::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let numbers: Vec<u64> = (0..32).map(|it| spools.keep(spool(), at(it))).collect();
        assert!(spools.find(numbers[0], at(40)).is_some());
        spools.keep(spool(), at(41));
        assert!(spools.find(numbers[1], at(42)).is_none());
        assert!(spools.find(numbers[0], at(42)).is_some());
        assert_eq!(spools.kept().spools.len(), MOST);
    }

    #[test]
    fn only_tokens_that_were_given_mean_something() {
        let spools = Spools::default();
        let place = SpoolPosition { spool: 7, at: 0x1234 };
        let token = spools.token(place).unwrap();
        assert!(token.starts_with("7-1234-"), "{token}");
        assert_eq!(spools.place(&token).unwrap(), Some(place));
        assert_eq!(Spools::default().place(&token).unwrap(), None, "from before a restart");
        for wrong in ["", "7", "7-1234", "7-1235", "é-1-2", "7-1234-00", "--"] {
            assert_eq!(spools.place(wrong).unwrap(), None, "{wrong}");
        }
        let moved = token.replace("7-1234-", "7-1235-");
        assert_eq!(spools.place(&moved).unwrap(), None);
    }
}
