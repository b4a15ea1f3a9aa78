//! Files that are opened once, when access to them is checked.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolith_types::{Code, Failure};

/// A regular file, open for reading. Later reads use this file, even if its path then leads
/// elsewhere.
#[derive(Debug, Clone)]
pub struct OpenFile {
    path: PathBuf,
    file: Arc<OwnedFd>,
    identity: String,
}

impl OpenFile {
    /// Opens a file, following links.
    ///
    /// # Errors
    /// `not_found`, or `bad_input` if it cannot be read or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let fail = |error| unreadable(path, &error);
        let real = std::fs::canonicalize(path).map_err(fail)?;
        // Opening a pipe would block until somebody writes to it.
        let unblocked = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(unblocked).open(&real).map_err(fail)?;
        Self::opened(real, file)
    }

    /// Wraps an open file. `path` is where it was opened: absolute, without links.
    ///
    /// # Errors
    /// `bad_input` if it is not a regular file.
    pub fn opened(path: PathBuf, file: File) -> Result<Self, Failure> {
        let seen = file.metadata().map_err(|error| unreadable(&path, &error))?;
        if !seen.is_file() {
            let message = format!("{} cannot be read: it is not a regular file", path.display());
            return Err(Failure::new(Code::BadInput, message));
        }
        let seen = (seen.len(), seen.mtime(), seen.mtime_nsec(), seen.dev(), seen.ino());
        let identity = format!("{} {seen:?}", path.display());
        Ok(Self { path, file: Arc::new(file.into()), identity })
    }

    /// The path at which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor to send with a job.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// A handle for reading in this process.
    pub(crate) fn file(&self) -> std::io::Result<File> {
        Ok(self.file.try_clone()?.into())
    }

    /// Identifies this version of the file.
    pub(crate) fn identity(&self) -> String {
        self.identity.clone()
    }
}

/// The failure for a file that cannot be read.
pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::BadInput,
    };
    Failure::new(code, format!("{} cannot be read: {error}", file.display()))
}
