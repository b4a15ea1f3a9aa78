//! What is left of answers that are longer than a page: files without a name, kept for a
//! while. No worker and no transaction is held for them.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use isolith_graph::Datum;
use isolith_store::first_row;
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

/// The rest of one answer.
#[derive(Debug)]
pub(super) struct Spool {
    pub(super) columns: Vec<String>,
    file: File,
    length: u64,
}

/// A place in the rest of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
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
    pub(super) fn token(&self, place: Place) -> Result<String, Failure> {
        let signature = self.signature(place)?;
        Ok(format!("{:x}-{:x}-{signature}", place.spool, place.at))
    }

    /// The place that a token names, if it was given out here.
    pub(super) fn place(&self, token: &str) -> Result<Option<Place>, Failure> {
        let mut parts = token.splitn(3, '-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (Some(spool), Some(at)) = (number(), number()) else { return Ok(None) };
        let place = Place { spool, at };
        Ok((parts.next() == Some(&self.signature(place)?)).then_some(place))
    }

    fn signature(&self, place: Place) -> Result<String, Failure> {
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
    /// Writes rows down, as the store gave them.
    pub(super) fn write(columns: Vec<String>, rows: &[u8]) -> Result<Self, Failure> {
        let write = || {
            // It has no name, and is gone with this process.
            let mut file = tempfile::tempfile()?;
            file.write_all(rows)?;
            Ok(file)
        };
        let file = write().map_err(|error| unkept(&error))?;
        Ok(Self { columns, file, length: rows.len() as u64 })
    }

    /// Rows from a place on, as many as a page takes; and the place after them, if there
    /// is more.
    pub(super) fn read(&self, at: u64, size: PageSize) -> Result<(Vec<Row>, Option<u64>), Failure> {
        let left = self.length.saturating_sub(at);
        let mut reach = (size.bytes as u64).max(LEAST_READ);
        loop {
            let mut bytes = vec![0; usize::try_from(reach.min(left)).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut bytes, at).map_err(|error| unkept(&error))?;
            let (rows, taken) = cut(&bytes, size);
            let end = at + taken as u64;
            if taken > 0 {
                return Ok((rows, (end < self.length).then_some(end)));
            }
            if reach >= left {
                return Err(Failure::new(Code::Failed, "the rest of the answer cannot be read"));
            }
            // The first row alone is longer.
            reach *= 4;
        }
    }
}

/// The values of one row.
pub type Row = Vec<Datum>;

/// The rows at the beginning of `bytes` that make a page, and how many bytes they are: one
/// row at least, unless the first one is not all there.
pub(super) fn cut(bytes: &[u8], size: PageSize) -> (Vec<Row>, usize) {
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
            .with_hint("make room in the folder for temporary files, or ask with LIMIT"),
        _ => Failure::new(Code::Failed, message).with_hint("ask with LIMIT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> Spool {
        Spool::write(vec!["n".to_owned()], &[]).unwrap()
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
        let place = Place { spool: 7, at: 0x1234 };
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
