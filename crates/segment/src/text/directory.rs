//! Where tantivy finds its files: in the scratch folder of a build, or in a finished segment.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::Directory;
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, FileHandle, TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

use super::bytes;
use crate::Container;

/// Prefix of the names of sections that contain tantivy files.
const SECTION_PREFIX: &str = "index.";

/// The section of the tantivy file with this extension.
pub(super) fn section_name(extension: &str) -> String {
    format!("{SECTION_PREFIX}{extension}")
}

/// The folder of a build. Its files are temporary, so nothing is synced.
#[derive(Debug, Clone)]
pub(super) struct ScratchDirectory {
    folder: PathBuf,
}

impl ScratchDirectory {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl Directory for ScratchDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let opened = File::open(self.folder.join(path));
        match opened.and_then(|file| bytes::scratch_file(&file)) {
            Ok(bytes) => Ok(Arc::new(bytes)),
            Err(error) => Err(read_error(error, path)),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        fs::remove_file(self.folder.join(path)).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                DeleteError::FileDoesNotExist(path.into())
            } else {
                DeleteError::IoError { io_error: Arc::new(error), filepath: path.into() }
            }
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        fs::exists(self.folder.join(path)).map_err(|error| read_error(error, path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(self.folder.join(path)) {
            Ok(file) => Ok(BufWriter::new(Box::new(ScratchFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(OpenWriteError::FileAlreadyExists(path.into()))
            }
            Err(error) => Err(OpenWriteError::wrap_io_error(error, path.into())),
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        fs::read(self.folder.join(path)).map_err(|error| read_error(error, path))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.folder.join(path))?.write_all(data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

struct ScratchFile(File);

impl Write for ScratchFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl TerminatingWrite for ScratchFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.flush()
    }
}

/// The files of a finished segment, identified by extension. Nothing changes, so locking and
/// watching are no-ops.
#[derive(Clone)]
pub(super) struct SegmentDirectory {
    container: Arc<Container>,
}

impl SegmentDirectory {
    pub(super) fn new(container: Arc<Container>) -> Self {
        Self { container }
    }

    fn section(&self, path: &Path) -> Option<std::ops::Range<usize>> {
        let wanted = section_name(path.extension()?.to_str()?);
        self.container.sections().find(|(name, _)| *name == wanted).map(|(_, range)| range)
    }
}

impl fmt::Debug for SegmentDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentDirectory").field(&self.container.path()).finish()
    }
}

impl Directory for SegmentDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let missing = || OpenReadError::FileDoesNotExist(path.into());
        let range = self.section(path).ok_or_else(missing)?;
        Ok(Arc::new(bytes::section(&self.container, range)))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.into() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.section(path).is_some())
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.into()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Err(OpenReadError::FileDoesNotExist(path.into()))
    }

    /// Opening an index writes its meta file, which is not needed: its content is implied.
    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

fn read_error(error: io::Error, path: &Path) -> OpenReadError {
    if error.kind() == io::ErrorKind::NotFound {
        OpenReadError::FileDoesNotExist(path.into())
    } else {
        OpenReadError::wrap_io_error(error, path.into())
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "segments are read-only")
}
