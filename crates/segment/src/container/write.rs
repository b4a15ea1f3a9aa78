use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use super::layout::{
    ALIGNMENT, BLOCK, HEADER_BYTES, Header, Section, SegmentKind, Trailer, encode_directory,
};
use crate::SegmentError;
use crate::storage::{Storage, StorageFile};

const TEMPORARY_PREFIX: &str = ".tmp-";

/// A segment that is durable and can be opened by readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedSegment {
    /// Its file name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The checksum that identifies it in the database.
    pub checksum: u32,
}

/// Writes a segment to a temporary file, section by section, and publishes it with a rename.
/// Dropping it before that removes the file.
pub struct ContainerWriter<'a> {
    storage: &'a dyn Storage,
    name: String,
    temporary: String,
    file: Box<dyn StorageFile>,
    /// The current, incomplete block.
    block: Vec<u8>,
    checksums: Vec<u8>,
    written: usize,
    sections: Vec<Section>,
    published: bool,
}

impl<'a> ContainerWriter<'a> {
    /// Starts a segment to be published as `name`. `version` is the layout version of its kind.
    ///
    /// # Errors
    /// If the temporary file cannot be created.
    pub fn create(
        storage: &'a dyn Storage,
        name: &str,
        kind: SegmentKind,
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

    /// Ends the current section, if any, and starts the next one.
    ///
    /// # Errors
    /// If the name is a duplicate or too long, or writing fails.
    pub fn begin_section(&mut self, name: &str) -> Result<(), SegmentError> {
        if name.len() > u16::MAX as usize || self.sections.iter().any(|one| one.name == name) {
            return Err(self.invalid(format!("section name {name:?} is a duplicate or too long")));
        }
        self.align()?;
        self.sections.push(Section { name: name.to_owned(), range: self.written..self.written });
        Ok(())
    }

    /// Appends to the current section.
    ///
    /// # Errors
    /// If no section has been started, or writing fails.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        if self.sections.is_empty() {
            return Err(self.invalid("no section has been started".to_owned()));
        }
        self.append(bytes)?;
        if let Some(section) = self.sections.last_mut() {
            section.range.end = self.written;
        }
        Ok(())
    }

    /// Syncs the file, reads it back to verify its checksums, renames it and syncs the folder.
    ///
    /// # Errors
    /// If writing fails, or the data read back differs from what was written.
    pub fn finish(mut self) -> Result<PublishedSegment, SegmentError> {
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
        Ok(PublishedSegment { file: self.name.clone(), bytes: trailer.file_bytes(), checksum })
    }

    fn align(&mut self) -> Result<(), SegmentError> {
        let gap = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.append(&[0; ALIGNMENT][..gap])
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<(), SegmentError> {
        self.written += bytes.len();
        while !bytes.is_empty() {
            let (fitting, rest) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(fitting);
            bytes = rest;
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

    /// Compares the file on disk with the checksums in memory.
    fn read_back(&mut self, trailer: &Trailer) -> Result<(), SegmentError> {
        let differs = || {
            let path = self.storage.path(&self.temporary);
            SegmentError::damaged(path, "data read back differs from data written")
        };
        let mut file = self.storage.open(&self.temporary).map_err(self.io("read back"))?;
        let mut left = self.written;
        for expected in self.checksums.chunks_exact(4) {
            self.block.resize(left.min(BLOCK), 0);
            file.read_exact(&mut self.block).map_err(self.io("read back"))?;
            if crc32c::crc32c(&self.block).to_le_bytes() != *expected {
                return Err(differs());
            }
            left -= self.block.len();
        }
        let mut end = Vec::with_capacity(self.checksums.len() + HEADER_BYTES);
        file.read_to_end(&mut end).map_err(self.io("read back"))?;
        let equal = end.strip_prefix(self.checksums.as_slice()) == Some(&trailer.encode());
        equal.then_some(()).ok_or_else(differs)
    }

    fn io(&self, operation: &'static str) -> impl FnOnce(io::Error) -> SegmentError + use<> {
        SegmentError::io(operation, self.storage.path(&self.name))
    }

    pub(crate) fn invalid(&self, problem: String) -> SegmentError {
        SegmentError::invalid("write", self.storage.path(&self.name), problem)
    }
}

impl Drop for ContainerWriter<'_> {
    fn drop(&mut self) {
        if !self.published {
            // If this fails, `remove_leftovers` removes it later.
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

/// Removes temporary files of crashed builds that were not modified for at least `older_than`.
/// Returns their number.
///
/// # Errors
/// If the folder cannot be read or a file cannot be removed.
pub fn remove_leftovers(
    storage: &dyn Storage,
    older_than: Duration,
) -> Result<usize, SegmentError> {
    let now = SystemTime::now();
    let mut removed = 0;
    for entry in storage.list().map_err(SegmentError::io("list", storage.path("")))? {
        // A file with a modification time in the future is not old.
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

/// Whether this is the name of a temporary file of [`ContainerWriter`].
pub fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(TEMPORARY_PREFIX);
    random.is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn create_temporary(storage: &dyn Storage) -> io::Result<(String, Box<dyn StorageFile>)> {
    loop {
        // The standard library seeds this hasher randomly.
        let name = format!("{TEMPORARY_PREFIX}{:016x}", RandomState::new().build_hasher().finish());
        match storage.create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|file| (name, file)),
        }
    }
}
