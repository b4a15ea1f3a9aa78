//! Logs of long-running commands: JSON lines in the store's `logs/`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::SystemTime;

/// A file grows to this before the next one is begun.
const FILE_BYTES: u64 = 2 << 20;

/// All files of the folder together; the oldest go.
const FOLDER_BYTES: u64 = 20 << 20;

/// Writes lines to one file after the other. A folder that cannot be written goes without.
#[derive(Debug)]
pub(crate) struct LogFiles {
    folder: PathBuf,
    current: Option<File>,
    written: u64,
    begun: u32,
}

impl LogFiles {
    /// Logs in the store in `store`, which is made by others.
    pub(crate) fn of_store(store: &std::path::Path) -> Self {
        Self { folder: store.join("logs"), current: None, written: 0, begun: 0 }
    }

    fn begin(&mut self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.make_room();
        let name = format!("{}-{}.jsonl", std::process::id(), self.begun);
        let mut options = File::options();
        let file = options.create(true).append(true).mode(0o600).open(self.folder.join(name))?;
        self.current = Some(file);
        (self.written, self.begun) = (0, self.begun + 1);
        Ok(())
    }

    /// Removes the oldest files until one more fits.
    fn make_room(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total + FILE_BYTES <= FOLDER_BYTES {
                break;
            }
            total -= bytes;
            // Another process may have been faster.
            let _ = fs::remove_file(path);
        }
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
    use super::*;

    #[test]
    fn logs_are_cut_into_files_and_the_oldest_go() {
        let place = tempfile::tempdir().unwrap();
        let mut logs = LogFiles::of_store(place.path());
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
    fn no_store_is_made_for_a_log() {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().join("store");
        assert!(LogFiles::of_store(&store).write_all(b"line").is_err());
        assert!(!store.exists());
    }
}
