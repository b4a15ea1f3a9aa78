use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use super::layout::{ALIGNMENT, BLOCK, EDGE, Header, Kind, Section, Trailer, encode_directory};
use crate::SegmentError;
use crate::storage::{Storage, StorageFile};

const TEMPORARY: &str = ".tmp-";

/// A segment that readers can open and that a loss of power cannot take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Its name in the folder.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// What the truth keeps to know it by.
    pub checksum: u32,
}

/// Writes a segment aside, section by section, and publishes it whole. One that is
/// dropped before that leaves nothing behind.
pub struct ContainerWriter<'a> {
    storage: &'a dyn Storage,
    name: String,
    temporary: String,
    file: Box<dyn StorageFile>,
    /// The block that is being filled.
    block: Vec<u8>,
    checksums: Vec<u8>,
    written: usize,
    sections: Vec<Section>,
    published: bool,
}

impl<'a> ContainerWriter<'a> {
    /// Starts a segment that is to have this name. `version` is that of the kind's
    /// own layout.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(
        storage: &'a dyn Storage,
        name: &str,
        kind: Kind,
        version: u32,
    ) -> Result<Self, SegmentError> {
        let (temporary, file) = create_temporary(storage)
            .map_err(SegmentError::io("create a file for", storage.path(name)))?;
        let mut writer = Self {
            storage,
            name: name.to_owned(),
            temporary,
            file,
            block: Vec::with_capacity(BLOCK),
            checksums: Vec::new(),
            written: 0,
            sections: Vec::new(),
            published: false,
        };
        writer.append(&Header { kind, version }.encode())?;
        Ok(writer)
    }

    /// Ends the section before, if there is one, and starts the next.
    ///
    /// # Errors
    /// If the name is taken or too long, or writing fails.
    pub fn begin_section(&mut self, name: &str) -> Result<(), SegmentError> {
        if name.len() > u16::MAX as usize || self.sections.iter().any(|one| one.name == name) {
            return Err(self.refused(format!("its section {name:?} is there or has no short name")));
        }
        self.align()?;
        self.sections.push(Section { name: name.to_owned(), range: self.written..self.written });
        Ok(())
    }

    /// Appends to the section.
    ///
    /// # Errors
    /// If there is no section yet, or writing fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        if self.sections.is_empty() {
            return Err(self.refused("no section has begun".to_owned()));
        }
        self.append(bytes)?;
        if let Some(section) = self.sections.last_mut() {
            section.range.end = self.written;
        }
        Ok(())
    }

    /// Syncs the file, reads it back against its checksums and gives it its name.
    ///
    /// # Errors
    /// If writing fails, or what was read back is not what was written.
    pub fn finish(mut self) -> Result<Published, SegmentError> {
        self.align()?;
        let directory_at = self.written as u64;
        self.append(&encode_directory(&self.sections))?;
        let directory_bytes = self.written as u64 - directory_at;
        self.end_block()?;

        let checksum = crc32c::crc32c(&self.checksums);
        let trailer = Trailer { directory_at, directory_bytes, checksum };
        let end = [self.checksums.as_slice(), &trailer.encode()].concat();
        self.file.write_all(&end).map_err(self.io("write"))?;
        self.file.sync().map_err(self.io("sync"))?;

        self.read_back(&trailer)?;
        self.storage.rename(&self.temporary, &self.name).map_err(self.io("publish"))?;
        self.published = true;
        self.storage.sync_folder().map_err(self.io("sync the folder of"))?;
        Ok(Published { file: self.name.clone(), bytes: trailer.file_bytes(), checksum })
    }

    fn align(&mut self) -> Result<(), SegmentError> {
        let gap = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.append(&[0; ALIGNMENT][..gap])
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), SegmentError> {
        self.written += bytes.len();
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), SegmentError> {
        if !self.block.is_empty() {
            self.checksums.extend(crc32c::crc32c(&self.block).to_le_bytes());
            self.file.write_all(&self.block).map_err(self.io("write"))?;
            self.block.clear();
        }
        Ok(())
    }

    /// What the disk gives back must have the checksums of what was meant, which are
    /// still in memory.
    fn read_back(&mut self, trailer: &Trailer) -> Result<(), SegmentError> {
        let path = self.storage.path(&self.temporary);
        let mut file = self.storage.open(&self.temporary).map_err(self.io("read back"))?;
        let mut left = self.written;
        for expected in self.checksums.chunks_exact(4) {
            self.block.resize(left.min(BLOCK), 0);
            file.read_exact(&mut self.block).map_err(self.io("read back"))?;
            if crc32c::crc32c(&self.block).to_le_bytes() != *expected {
                return Err(SegmentError::damaged(path, "it reads back changed"));
            }
            left -= self.block.len();
        }
        let mut end = Vec::with_capacity(self.checksums.len() + EDGE);
        file.read_to_end(&mut end).map_err(self.io("read back"))?;
        let sound = end.strip_prefix(self.checksums.as_slice()) == Some(&trailer.encode());
        sound.then_some(()).ok_or_else(|| SegmentError::damaged(path, "its end reads back changed"))
    }

    fn io(&self, operation: &'static str) -> impl FnOnce(io::Error) -> SegmentError + use<> {
        SegmentError::io(operation, self.storage.path(&self.name))
    }

    fn refused(&self, problem: String) -> SegmentError {
        SegmentError::refused("write", self.storage.path(&self.name), problem)
    }
}

impl Drop for ContainerWriter<'_> {
    fn drop(&mut self) {
        if !self.published {
            // If this fails, `remove_leftovers` comes by later.
            let _ = self.storage.remove(&self.temporary);
        }
    }
}

impl std::fmt::Debug for ContainerWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerWriter")
            .field("name", &self.name)
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}

/// Removes what builds that died have left and that nobody has written to for so long.
/// Returns how many files that were.
///
/// # Errors
/// If the folder cannot be read or a file not be removed.
pub fn remove_leftovers(
    storage: &dyn Storage,
    older_than: Duration,
) -> Result<usize, SegmentError> {
    let now = SystemTime::now();
    let mut removed = 0;
    for entry in storage.list().map_err(SegmentError::io("list", storage.path("")))? {
        // A time in the future has no age; the file is left until it has one.
        let old = now.duration_since(entry.modified).is_ok_and(|age| age >= older_than);
        if !is_temporary(&entry.name) || !old {
            continue;
        }
        match storage.remove(&entry.name) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(SegmentError::io("remove", storage.path(&entry.name))(error));
            }
        }
    }
    Ok(removed)
}

/// Whether a file has a name that [`ContainerWriter`] gives to what it has not published.
pub fn is_temporary(name: &str) -> bool {
    let chance = name.strip_prefix(TEMPORARY);
    chance.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn create_temporary(storage: &dyn Storage) -> io::Result<(String, Box<dyn StorageFile>)> {
    loop {
        // The standard library's hasher is seeded at random.
        let name = format!("{TEMPORARY}{:016x}", RandomState::new().build_hasher().finish());
        match storage.create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|file| (name, file)),
        }
    }
}
