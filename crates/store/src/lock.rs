use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use isolith_folder::{Folder, open_file};
use isolith_protocol::StoreError;
use rustix::fs::{FlockOperation, flock};

use crate::deadline::Deadline;
use crate::folder::io_failure;

/// An OS lock on a file, released when its process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock shared, waiting for an exclusive holder until the deadline. `None` where
    /// locking is impossible: in a read-only folder without a lock file.
    pub(crate) fn shared(path: &Path, deadline: &Deadline) -> Result<Option<Self>, StoreError> {
        let file = match open_lock_file(path) {
            Ok(file) => file,
            Err(error) if is_unwritable(&error) => match open_file(path) {
                Ok(file) => file,
                Err(_) => return Ok(None),
            },
            Err(error) => return Err(io_failure(path, "open", &error)),
        };
        wait_for(&file, path, FlockOperation::NonBlockingLockShared, deadline)?;
        Ok(Some(Self { _file: file }))
    }

    /// Takes the lock exclusively, without waiting.
    pub(crate) fn exclusive_now(path: &Path) -> Result<Self, StoreError> {
        let file = open_lock_file(path).map_err(|error| io_failure(path, "open", &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(held(path)),
            Err(error) => Err(io_failure(path, "lock", &error.into())),
        }
    }

    /// Takes the lock exclusively, waiting until the deadline.
    pub(crate) fn exclusive(path: &Path, deadline: &Deadline) -> Result<Self, StoreError> {
        let file = open_lock_file(path).map_err(|error| io_failure(path, "open", &error))?;
        wait_for(&file, path, FlockOperation::NonBlockingLockExclusive, deadline)?;
        Ok(Self { _file: file })
    }
}

/// The processes that hold an OS lock on the file, as far as the system reports them.
pub fn lock_holders(path: &Path) -> Vec<u32> {
    holders_of(path, LockKind::Whole)
}

/// The kind of lock to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// On the whole file (`flock`), shared or exclusive.
    Whole,
    /// A write lock (`fcntl`) on a range that includes this byte.
    Posix(u64),
}

/// The processes that hold this kind of lock on the file.
pub(crate) fn holders_of(path: &Path, kind: LockKind) -> Vec<u32> {
    let (Ok(metadata), Ok(locks)) = (std::fs::metadata(path), locks_of_the_system()) else {
        return Vec::new();
    };
    let device = metadata.dev();
    let device = format!("{:02x}:{:02x}", rustix::fs::major(device), rustix::fs::minor(device));
    holders_in(&locks, kind, &device, metadata.ino())
}

/// Reads `/proc/locks` with a single large read: between small reads the kernel continues by line
/// number, so a released lock could hide another one.
fn locks_of_the_system() -> io::Result<String> {
    let mut locks = String::with_capacity(64 << 10);
    File::open("/proc/locks")?.read_to_string(&mut locks)?;
    Ok(locks)
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    let nameless = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(nameless)?;
    Folder::open(path.parent().ok_or_else(nameless)?)?.file_or_create(name)
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn wait_for(
    file: &File,
    path: &Path,
    how: FlockOperation,
    deadline: &Deadline,
) -> Result<(), StoreError> {
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                if !deadline.wait_a_moment() {
                    return Err(held(path));
                }
            }
            Err(error) => return Err(io_failure(path, "lock", &error.into())),
        }
    }
}

fn held(path: &Path) -> StoreError {
    StoreError::LockHeld { path: path.to_path_buf(), holders: lock_holders(path) }
}

impl LockKind {
    fn is_of(self, how: &str, access: &str, range: (&str, &str)) -> bool {
        let (first, last) = range;
        match self {
            Self::Whole => how == "FLOCK",
            Self::Posix(byte) => {
                how == "POSIX"
                    && access == "WRITE"
                    && first.parse::<u64>().is_ok_and(|first| first <= byte)
                    && (last == "EOF" || last.parse::<u64>().is_ok_and(|last| byte <= last))
            }
        }
    }
}

/// Lines look like `1: FLOCK  ADVISORY  READ 10406 fe:00:10010626 0 EOF`. Some filesystems report
/// a different device there than to `stat`, so only the inode is compared if nothing matches
/// both.
fn holders_in(locks: &str, kind: LockKind, device: &str, inode: u64) -> Vec<u32> {
    let found = |exact: bool| {
        let mut pids: Vec<u32> = locks
            .lines()
            .filter_map(|line| {
                let words: Vec<_> = line.split_whitespace().collect();
                let [_, how, _, access, pid, place, first, last] = words[..] else { return None };
                if !kind.is_of(how, access, (first, last)) {
                    return None;
                }
                let (on, number) = place.rsplit_once(':')?;
                let same = number.parse() == Ok(inode) && (!exact || on == device);
                same.then(|| pid.parse().ok()).flatten()
            })
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    let exact = found(true);
    if exact.is_empty() { found(false) } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_parsed_from_proc_locks() {
        let locks = "1: FLOCK  ADVISORY  READ 10406 fe:00:77 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 10407 fe:00:77 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 12 fe:01:77 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 10406 fe:00:77 0 EOF\n";
        assert_eq!(holders_in(locks, LockKind::Whole, "fe:00", 77), [10406]);
        assert_eq!(holders_in(locks, LockKind::Whole, "00:2a", 77), [12, 10406]);
        assert_eq!(holders_in(locks, LockKind::Whole, "fe:00", 78), [0_u32; 0]);
        let locks = "1: POSIX  ADVISORY  READ 7 fe:00:77 123 123\n\
                     2: POSIX  ADVISORY  WRITE 8 fe:00:77 121 121\n\
                     3: -> POSIX  ADVISORY  WRITE 9 fe:00:77 120 120\n\
                     4: POSIX  ADVISORY  WRITE 10 fe:00:77 120 120\n";
        assert_eq!(holders_in(locks, LockKind::Posix(120), "fe:00", 77), [10]);
        assert_eq!(holders_in(locks, LockKind::Posix(123), "fe:00", 77), [0_u32; 0]);
        assert_eq!(holders_in(locks, LockKind::Whole, "fe:00", 77), [0_u32; 0]);
    }

    #[test]
    fn shared_holders_block_an_exclusive_lock_and_are_reported() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let soon = Deadline::at(Some(std::time::Instant::now()));
        let one = Lock::shared(&path, &soon).unwrap();
        let other = Lock::shared(&path, &soon).unwrap();
        let StoreError::LockHeld { holders, .. } = Lock::exclusive_now(&path).unwrap_err() else {
            panic!("another error")
        };
        assert_eq!(holders, [std::process::id()]);
        drop((one, other));
        let alone = Lock::exclusive_now(&path).unwrap();
        assert!(matches!(Lock::shared(&path, &soon), Err(StoreError::LockHeld { .. })));
        drop(alone);
        Lock::exclusive(&path, &soon).unwrap();
    }
}
