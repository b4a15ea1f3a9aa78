use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Entry, Storage, StorageFile};

/// A folder of the file system. Its files are readable by their owner alone.
#[derive(Debug, Clone)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// The folder must exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn file(&self, name: &str) -> io::Result<PathBuf> {
        let plain = Path::new(name).file_name().is_some_and(|file| file == name);
        if !plain {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file name"));
        }
        Ok(self.folder.join(name))
    }
}

impl Storage for Disk {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.file(name)?)?;
        Ok(Box::new(DiskFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(self.file(name)?)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.file(from)?, self.file(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.file(name)?)
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let about = match entry.metadata() {
                Ok(about) => about,
                // Another process removed it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if let (true, Ok(name)) = (about.is_file(), entry.file_name().into_string()) {
                entries.push(Entry { name, bytes: about.len(), modified: about.modified()? });
            }
        }
        Ok(entries)
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_private_and_never_overwritten_by_creating() {
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
    fn names_do_not_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        for name in ["", "..", "a/b", "/etc/passwd", "a/"] {
            let error = disk.create(name).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
}
