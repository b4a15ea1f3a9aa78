use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use isolith_folder::{EntryKind, Folder};

use super::{Storage, StorageEntry, StorageFile};

/// A folder on disk, opened without following links. Only the owner can read its files.
#[derive(Debug, Clone)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// The folder must exist, and its path must not contain symbolic links.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn folder(&self) -> io::Result<Folder> {
        Folder::open(&self.folder)
    }
}

impl Storage for Disk {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(DiskFile(self.folder()?.create(name)?)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.folder()?.file(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = self.folder()?;
        folder.rename(from, &folder, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder()?.remove(name)
    }

    fn list(&self) -> io::Result<Vec<StorageEntry>> {
        let mut entries = self.folder()?.entries()?;
        entries.retain(|entry| entry.kind == EntryKind::File);
        let entry = |it: isolith_folder::Entry| {
            let isolith_folder::Entry { name, bytes, modified, .. } = it;
            StorageEntry { name, bytes, modified }
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder()?.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

struct DiskFile(File);

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl StorageFile for DiskFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn created_files_are_private_and_never_overwrite_others() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        let mut file = disk.create("one").unwrap();
        file.write_all(b"text").unwrap();
        file.sync().unwrap();
        let mode = fs::metadata(folder.path().join("one")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(disk.create("one").err().unwrap().kind(), io::ErrorKind::AlreadyExists);

        disk.rename("one", "two").unwrap();
        disk.sync_folder().unwrap();
        let entries = disk.list().unwrap();
        assert_eq!((entries.len(), &*entries[0].name, entries[0].bytes), (1, "two", 4));
        disk.remove("two").unwrap();
        assert!(disk.list().unwrap().is_empty());
    }

    #[test]
    fn rejects_names_outside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        for name in ["", "..", "a/b", "/etc/passwd", "a/"] {
            let error = disk.create(name).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
}
