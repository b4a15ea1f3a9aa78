//! The file operations that builds need, as a trait, so that tests can simulate power loss.

mod disk;
pub mod lossy;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::SystemTime;

pub use disk::Disk;

/// A folder of files that are written once and published by a rename. All methods return the
/// error of the underlying system call.
pub trait Storage: Send + Sync {
    /// Creates a file; fails if it exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Opens a file for reading from its start.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;

    /// Renames a file, replacing any file named `to`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Lists all files.
    fn list(&self) -> io::Result<Vec<StorageEntry>>;

    /// Makes all creations, renames and removals so far durable.
    fn sync_folder(&self) -> io::Result<()>;

    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file open for writing.
pub trait StorageFile: Write + Send {
    /// Makes everything written so far durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file of a [`Storage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEntry {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last modified.
    pub modified: SystemTime,
}
