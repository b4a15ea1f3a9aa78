//! Reading one file of the code.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::modified;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// All of the file.
    pub bytes: Vec<u8>,
    /// When it was changed: nanoseconds since 1970. 0 if that was so shortly ago that
    /// another change might leave the same time.
    pub modified: i64,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there any more.
    #[error("it is gone")]
    Gone,
    /// It is a pipe, a folder, a device or a link.
    #[error("it is no regular file")]
    NotAFile,
    /// It is too large.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A time of change that is closer to now than this does not tell two contents apart.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Reads a file, unless it is anything but a regular one. Pipes are neither waited for
/// nor are links followed: what the walk saw may have been replaced since.
///
/// # Errors
/// Why it was not read.
pub fn read(path: &Path, largest: u64) -> Result<Contents, ReadError> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(largest)).unwrap_or(0));
    (&file).take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(ReadError::TooLarge(largest));
    }
    // If it is written to at this moment, the next run has another look.
    let settled = file.metadata()?;
    let same = settled.len() == bytes.len() as u64 && modified(&settled) == modified(&metadata);
    let age = settled.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    let certain = same && age.is_some_and(|age| age > CLOCK_TICK);
    Ok(Contents { bytes, modified: if certain { modified(&settled) } else { 0 } })
}

fn open(path: &Path) -> Result<File, ReadError> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => ReadError::Gone,
            Some(libc::ELOOP | libc::ENXIO) => ReadError::NotAFile,
            _ => ReadError::Io(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_read_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.rs");
        fs::write(&path, "fn a() {}").unwrap();
        assert_eq!(read(&path, 9).unwrap().bytes, b"fn a() {}");
        assert!(matches!(read(&path, 8), Err(ReadError::TooLarge(8))));
    }

    #[test]
    fn the_age_of_a_fresh_file_is_not_trusted() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.rs");
        fs::write(&path, "x").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let future = SystemTime::now() + Duration::from_secs(60);
        file.set_modified(future).unwrap();
        assert_eq!(read(&path, 9).unwrap().modified, 0);
        let past = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        file.set_modified(past).unwrap();
        assert_eq!(read(&path, 9).unwrap().modified, 60_000_000_000);
    }

    #[test]
    fn nothing_but_regular_files_is_read() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        symlink("/etc/passwd", at("link")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for name in ["pipe", "link", "folder"] {
            assert!(matches!(read(&at(name), 9), Err(ReadError::NotAFile)), "{name}");
        }
        assert!(matches!(read(&at("nothing"), 9), Err(ReadError::Gone)));
        assert!(matches!(read(&at("pipe/below"), 9), Err(ReadError::Gone)));
    }
}
