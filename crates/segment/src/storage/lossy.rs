//! For tests, of other crates too: a folder in memory that can lose its power.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{Entry, Storage, StorageFile};

/// A folder that remembers what was synced and what was only written. Clones are the
/// same folder.
#[derive(Debug, Clone, Default)]
pub struct Lossy(Arc<Mutex<Folder>>);

#[derive(Debug, Default)]
struct Folder {
    files: Vec<File>,
    entries: BTreeMap<String, usize>,
    synced_entries: BTreeMap<String, usize>,
    unsynced: Vec<Change>,
    operations: usize,
    power_for: Option<usize>,
}

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
    modified: SystemTime,
}

/// A change of the folder itself.
#[derive(Debug, Clone)]
enum Change {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl Change {
    fn apply(self, entries: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, file) => drop(entries.insert(name, file)),
            // Without the old name (its creation was lost) there is nothing to rename.
            Self::Rename(from, to) => {
                if let Some(file) = entries.remove(&from) {
                    entries.insert(to, file);
                }
            }
            Self::Remove(name) => drop(entries.remove(&name)),
        }
    }
}

impl Lossy {
    /// An empty folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, this many operations succeed; then all fail until [`crash`](Self::crash).
    pub fn power_for(&self, operations: usize) {
        let mut folder = self.lock();
        folder.power_for = Some(folder.operations + operations);
    }

    /// How many operations there were: creating, writing, syncing, reading, renaming,
    /// removing, listing.
    pub fn operations(&self) -> usize {
        self.lock().operations
    }

    /// The power goes and comes back: whatever was not synced is lost.
    pub fn crash(&self) {
        self.crash_keeping(|| false);
    }

    /// As [`crash`](Self::crash), but `reached_disk` says for each thing that was not
    /// synced whether it got there by itself: a change of the folder, or what a file
    /// has got since its last sync. A disk is free to write any of them first.
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
        folder.power_for = None;
    }

    /// What a file holds.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let folder = self.lock();
        folder.entries.get(name).map(|file| folder.files[*file].bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Folder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, Folder>> {
        let mut folder = self.lock();
        if folder.power_for.is_some_and(|end| folder.operations >= end) {
            return Err(io::Error::other("no power"));
        }
        folder.operations += 1;
        Ok(folder)
    }
}

impl Folder {
    fn file(&self, name: &str) -> io::Result<usize> {
        self.entries.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.entries);
        self.unsynced.push(change);
    }
}

impl Storage for Lossy {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut folder = self.operate()?;
        if folder.entries.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = folder.files.len();
        folder.files.push(File { bytes: Vec::new(), synced: 0, modified: SystemTime::now() });
        folder.change(Change::Create(name.to_owned(), file));
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
        folder.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut folder = self.operate()?;
        folder.file(name)?;
        folder.change(Change::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let folder = self.operate()?;
        let entry = |(name, file): (&String, &usize)| {
            let file = &folder.files[*file];
            Entry { name: name.clone(), bytes: file.bytes.len() as u64, modified: file.modified }
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
    folder: Lossy,
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

    fn written(lossy: &Lossy, name: &str, sync: bool) {
        let mut file = lossy.create(name).unwrap();
        file.write_all(b"text").unwrap();
        if sync {
            file.sync().unwrap();
        }
    }

    #[test]
    fn a_crash_takes_what_was_not_synced() {
        let lossy = Lossy::new();
        written(&lossy, "kept", true);
        written(&lossy, "empty", false);
        lossy.sync_folder().unwrap();
        written(&lossy, "gone", true);
        lossy.rename("kept", "renamed").unwrap();
        lossy.crash();
        assert_eq!(lossy.contents("kept").unwrap(), b"text");
        assert_eq!(lossy.contents("empty").unwrap(), b"");
        assert_eq!(lossy.contents("gone"), None);
        assert_eq!(lossy.contents("renamed"), None);
    }

    #[test]
    fn without_power_everything_fails_until_the_crash() {
        let lossy = Lossy::new();
        lossy.power_for(1);
        let mut file = lossy.create("one").unwrap();
        assert!(file.write_all(b"text").is_err());
        assert!(lossy.sync_folder().is_err());
        lossy.crash();
        written(&lossy, "two", true);
    }

    #[test]
    fn a_disk_may_be_ahead_of_its_syncs() {
        let lossy = Lossy::new();
        written(&lossy, "one", false);
        lossy.crash_keeping(|| true);
        assert_eq!(lossy.contents("one").unwrap(), b"text");
    }
}
