//! A folder in memory that simulates power loss, for tests.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Storage, StorageEntry, StorageFile};

/// A folder that knows which writes have been synced. Clones share the same folder.
#[derive(Debug, Clone, Default)]
pub struct LossyStorage(Arc<Mutex<Folder>>);

#[derive(Debug, Default)]
struct Folder {
    files: Vec<File>,
    entries: BTreeMap<String, usize>,
    synced_entries: BTreeMap<String, usize>,
    unsynced: Vec<EntryChange>,
    operations: usize,
    fail_from: Option<usize>,
}

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
    modified: SystemTime,
}

/// A change of a folder entry.
#[derive(Debug, Clone)]
enum EntryChange {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl EntryChange {
    fn apply(self, entries: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, file) => drop(entries.insert(name, file)),
            // If the file's creation was lost, there is nothing to rename.
            Self::Rename(from, to) => {
                if let Some(file) = entries.remove(&from) {
                    entries.insert(to, file);
                }
            }
            Self::Remove(name) => drop(entries.remove(&name)),
        }
    }
}

impl LossyStorage {
    /// An empty folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets this many more operations succeed. Then all fail until [`crash`](Self::crash).
    pub fn fail_after(&self, operations: usize) {
        let mut folder = self.lock();
        folder.fail_from = Some(folder.operations + operations);
    }

    /// The number of operations so far: create, write, sync, read, rename, remove and list.
    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// Simulates a power loss: everything that was not synced is lost.
    pub fn crash(&self) {
        self.crash_keeping(|| false);
    }

    /// As [`crash`](Self::crash), but `reached_disk` decides for each unsynced change whether it
    /// is kept: a changed folder entry, or the data written to a file since its last sync. Disks
    /// may write these in any order.
    pub fn crash_keeping(&self, mut reached_disk: impl FnMut() -> bool) {
        let mut folder = self.lock();
        for change in std::mem::take(&mut folder.unsynced) {
            if reached_disk() {
                change.apply(&mut folder.synced_entries);
            }
        }
        folder.entries = folder.synced_entries.clone();
        for file in &mut folder.files {
            if !reached_disk() {
                file.bytes.truncate(file.synced);
            }
            file.synced = file.bytes.len();
        }
        folder.fail_from = None;
    }

    /// The content of a file, if it exists.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let folder = self.lock();
        folder.entries.get(name).map(|file| folder.files[*file].bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Folder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, Folder>> {
        let mut folder = self.lock();
        if folder.fail_from.is_some_and(|end| folder.operations >= end) {
            return Err(io::Error::other("simulated power loss"));
        }
        folder.operations += 1;
        Ok(folder)
    }
}

impl Folder {
    fn file(&self, name: &str) -> io::Result<usize> {
        self.entries.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: EntryChange) {
        change.clone().apply(&mut self.entries);
        self.unsynced.push(change);
    }
}

impl Storage for LossyStorage {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut folder = self.operate()?;
        if folder.entries.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = folder.files.len();
        folder.files.push(File { bytes: Vec::new(), synced: 0, modified: SystemTime::now() });
        folder.change(EntryChange::Create(name.to_owned(), file));
        Ok(Box::new(LossyFile { folder: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let folder = self.operate()?;
        let file = folder.file(name)?;
        Ok(Box::new(Cursor::new(folder.files[file].bytes.clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut folder = self.operate()?;
        folder.file(from)?;
        folder.change(EntryChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut folder = self.operate()?;
        folder.file(name)?;
        folder.change(EntryChange::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<StorageEntry>> {
        let folder = self.operate()?;
        let entry = |(name, file): (&String, &usize)| {
            let file = &folder.files[*file];
            StorageEntry {
                name: name.clone(),
                bytes: file.bytes.len() as u64,
                modified: file.modified,
            }
        };
        Ok(folder.entries.iter().map(entry).collect())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut folder = self.operate()?;
        folder.synced_entries = folder.entries.clone();
        folder.unsynced.clear();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("lossy").join(name)
    }
}

struct LossyFile {
    folder: LossyStorage,
    file: usize,
}

impl Write for LossyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut folder = self.folder.operate()?;
        let file = &mut folder.files[self.file];
        file.bytes.extend_from_slice(bytes);
        file.modified = SystemTime::now();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for LossyFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut folder = self.folder.operate()?;
        let file = &mut folder.files[self.file];
        file.synced = file.bytes.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(lossy: &LossyStorage, name: &str, sync: bool) {
        let mut file = lossy.create(name).unwrap();
        file.write_all(b"text").unwrap();
        if sync {
            file.sync().unwrap();
        }
    }

    #[test]
    fn crash_loses_unsynced_changes() {
        let lossy = LossyStorage::new();
        write_file(&lossy, "kept", true);
        write_file(&lossy, "empty", false);
        lossy.sync_folder().unwrap();
        write_file(&lossy, "gone", true);
        lossy.rename("kept", "renamed").unwrap();
        lossy.crash();
        assert_eq!(lossy.contents("kept").unwrap(), b"text");
        assert_eq!(lossy.contents("empty").unwrap(), b"");
        assert_eq!(lossy.contents("gone"), None);
        assert_eq!(lossy.contents("renamed"), None);
    }

    #[test]
    fn operations_fail_until_the_crash() {
        let lossy = LossyStorage::new();
        lossy.fail_after(1);
        let mut file = lossy.create("one").unwrap();
        assert!(file.write_all(b"text").is_err());
        assert!(lossy.sync_folder().is_err());
        lossy.crash();
        write_file(&lossy, "two", true);
    }

    #[test]
    fn unsynced_changes_may_survive() {
        let lossy = LossyStorage::new();
        write_file(&lossy, "one", false);
        lossy.crash_keeping(|| true);
        assert_eq!(lossy.contents("one").unwrap(), b"text");
    }
}
