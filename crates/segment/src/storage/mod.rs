//! What a build needs of a folder, so that tests can take its power away.

mod disk;
pub mod lossy;

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::SystemTime;

pub use disk::Disk;

/// A folder of files that are written once and published by renaming.
pub trait Storage: Send + Sync {
    /// Makes a new file; an existing one is an error.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Reads a file from its beginning.
    ///
    /// # Errors
    /// As the system says.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;

    /// Gives a file another name, in the place of what had that name.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// All files.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self) -> io::Result<Vec<Entry>>;

    /// Makes what was created, renamed and removed so far outlast a loss of power.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&self) -> io::Result<()>;

    /// Where a file is, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file that is being written.
pub trait StorageFile: Write + Send {
    /// Makes what was written so far outlast a loss of power.
    ///
    /// # Errors
    /// As the system says.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
}
