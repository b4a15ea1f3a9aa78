//! Logs of long-running commands: JSON lines in the store's `logs/`.

use std::fs::File;
use std::io::{self, Write};

use isolith_engine::{StorePlace, is_log};
use isolith_folder::Folder;

/// Maximum size of one file.
const FILE_BYTES: u64 = 2 << 20;

/// Maximum size of all files together; the oldest are deleted first.
const FOLDER_BYTES: u64 = 20 << 20;

/// Writes log lines to numbered files. If the folder cannot be written, nothing is logged.
#[derive(Debug)]
pub(crate) struct LogFiles {
    store: StorePlace,
    current: Option<File>,
    written: u64,
    begun: u32,
}

impl LogFiles {
    /// Logs to the store at `store`, which must already exist.
    pub(crate) fn of_store(store: &StorePlace) -> Self {
        Self { store: store.clone(), current: None, written: 0, begun: 0 }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.store.is_trusted() {
            // Never write to a store that somebody else may have created.
            return Err(io::ErrorKind::NotFound.into());
        }
        let store = std::fs::canonicalize(self.store.path())?;
        let folder = Folder::open(store)?.folder_or_create("logs")?;
        make_room(&folder);
        let name = format!("{}-{}.jsonl", std::process::id(), self.begun);
        self.current = Some(folder.file_to_append(&name)?);
        (self.written, self.begun) = (0, self.begun + 1);
        Ok(())
    }
}

/// Deletes the oldest files until one more fits.
fn make_room(folder: &Folder) {
    let mut files = folder.entries().unwrap_or_default();
    files.retain(|file| is_log(&file.name));
    files.sort_by(|a, b| (a.modified, &a.name).cmp(&(b.modified, &b.name)));
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    for file in files {
        if total + FILE_BYTES <= FOLDER_BYTES {
            break;
        }
        total -= file.bytes;
        // Another process may already have deleted it.
        let _ = folder.remove(&file.name);
    }
}

impl Write for LogFiles {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.current.is_none() || self.written >= FILE_BYTES {
            self.begin()?;
        }
        if let Some(file) = &mut self.current {
            file.write_all(line)?;
        }
        self.written += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn logs_are_rotated_and_the_oldest_are_deleted() {
        let place = tempfile::tempdir().unwrap();
        let mut logs = LogFiles::of_store(&StorePlace::unchecked(place.path()));
        let line = vec![b'x'; 1 << 20];
        for _ in 0..40 {
            logs.write_all(&line).unwrap();
        }
        let files: Vec<u64> = fs::read_dir(place.path().join("logs"))
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert!(files.iter().sum::<u64>() <= FOLDER_BYTES, "{files:?}");
        assert!(files.len() >= 9, "{files:?}");
    }

    #[test]
    fn logging_creates_no_store() {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().join("store");
        assert!(LogFiles::of_store(&StorePlace::unchecked(&store)).write_all(b"line").is_err());
        assert!(!store.exists());
    }
}
