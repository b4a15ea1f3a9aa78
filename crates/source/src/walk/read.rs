//! Reads a single source file.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::modified;
use isolith_folder::Folder;

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// All of the file.
    pub bytes: Vec<u8>,
    /// Modification time in nanoseconds since 1970; 0 if so recent that another change
    /// might get the same time.
    pub modified: i64,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It no longer exists.
    #[error("it is gone")]
    Gone,
    /// It is a pipe, a folder, a device or a link.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is too large.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// Any other error from the system.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Resolution of file times: a more recent modification time does not identify a content.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// Reads a regular file below a folder. Never blocks on a pipe and follows no link: the file
/// may have been replaced since the walk saw it.
///
/// # Errors
/// See [`ReadError`].
pub fn read(folder: &Folder, path: &str, largest: u64) -> Result<Contents, ReadError> {
    let file =
        folder.file_beneath(Path::new(path)).map_err(|error| {
            match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => ReadError::Gone,
                Some(Errno::LOOP | Errno::XDEV | Errno::NXIO) => ReadError::NotAFile,
                _ => ReadError::Io(error),
            }
        })?;
    read_file(&file, largest)
}

/// Reads an open file from its beginning.
///
/// # Errors
/// See [`ReadError`].
pub fn read_file(mut file: &File, largest: u64) -> Result<Contents, ReadError> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    file.rewind()?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(largest)).unwrap_or(0));
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(ReadError::TooLarge(largest));
    }
    // If it is being written to right now, the next run reads it again.
    let settled = file.metadata()?;
    let same = settled.len() == bytes.len() as u64 && modified(&settled) == modified(&metadata);
    let age = settled.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    let certain = same && age.is_some_and(|age| age > CLOCK_TICK);
    Ok(Contents { bytes, modified: if certain { modified(&settled) } else { 0 } })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(path: &Path, largest: u64) -> Result<Contents, ReadError> {
        let folder = Folder::resolve(path.parent().unwrap()).map_err(|_| ReadError::Gone)?;
        super::read(&folder, path.file_name().unwrap().to_str().unwrap(), largest)
    }

    #[test]
    fn a_file_is_read_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.rs");
        fs::write(&path, "fn a() {}").unwrap();
        assert_eq!(read(&path, 9).unwrap().bytes, b"fn a() {}");
        assert!(matches!(read(&path, 8), Err(ReadError::TooLarge(8))));
    }

    #[test]
    fn very_recent_modification_times_are_not_trusted() {
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
    fn only_regular_files_are_read() {
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
