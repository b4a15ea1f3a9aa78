//! Writing a text segment.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use isolate_types::InWorker;
use isolith_folder::{EntryKind, Folder};
use isolith_text::Analyzer;
use tantivy::index::{Index, IndexBuilder};
use tantivy::indexer::merge_filtered_segments;
use tantivy::{SingleSegmentIndexWriter, TantivyDocument, TantivyError};

use super::directory::{ScratchDirectory, section_name};
use super::fields::TextFields;
use super::index::{fields, schema, settings, tokenizers};
use super::parameters::{LAYOUT, Parameters, section};
use crate::storage::Storage;
use crate::{ContainerWriter, Kind, Published, SegmentError};

/// What the index of a part may take in memory before it goes to the scratch folder.
const PART_BYTES: usize = 64 << 20;
/// What tantivy sizes its first table by. It grows when needed; most builds are small.
const FIRST_TABLE_BYTES: usize = 4 << 20;
const SCRATCH_SUFFIX: &str = ".scratch";
/// All files of an index that nothing was deleted from.
const EXTENSIONS: [&str; 6] = ["term", "idx", "pos", "fieldnorm", "fast", "store"];

/// Writes a text segment, record by record, and publishes it whole. Memory is bounded
/// but for 16 bytes for each record. One that is dropped unfinished leaves nothing behind.
pub struct TextBuilder<'s> {
    storage: &'s dyn Storage,
    name: String,
    analyzer: Analyzer,
    scratch: Scratch,
    part_bytes: usize,
    part: Option<SingleSegmentIndexWriter>,
    parts: Vec<Index>,
    rows: Vec<u8>,
    changes: Vec<u8>,
    last_row: Option<u64>,
}

impl<'s> TextBuilder<'s> {
    /// Starts a segment that is to have this name. Its index grows in a folder of its own
    /// inside `scratch_folder`, which is removed in the end.
    ///
    /// # Errors
    /// If what an earlier build of that name has left cannot be removed.
    pub fn create(
        storage: &'s dyn Storage,
        scratch_folder: &Path,
        name: &str,
        analyzer: Analyzer,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        let scratch = Scratch { folder: scratch_folder.join(format!("{name}{SCRATCH_SUFFIX}")) };
        remove_folder(&scratch.folder)?;
        Ok(Self {
            storage,
            name: name.to_owned(),
            analyzer,
            scratch,
            part_bytes: PART_BYTES,
            part: None,
            parts: Vec::new(),
            rows: Vec::new(),
            changes: Vec::new(),
            last_row: None,
        })
    }

    /// Adds a record. Rows must ascend.
    ///
    /// # Errors
    /// If the row is not beyond the last one, or the scratch folder cannot be written.
    pub fn push(
        &mut self,
        row: u64,
        change: u64,
        texts: &TextFields<'_>,
    ) -> Result<(), SegmentError> {
        if let Some(last) = self.last_row.filter(|last| *last >= row) {
            return Err(self.refused(format!("row {row} comes after row {last}")));
        }
        if self.len() >= i32::MAX as u64 {
            return Err(self.refused("it has too many rows".to_owned()));
        }
        let mut document = TantivyDocument::default();
        for (field, text) in fields().into_iter().zip(texts.each()) {
            if !text.is_empty() {
                document.add_text(field, text);
            }
        }
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.new_part()?,
        };
        part.add_document(document).map_err(self.failed())?;
        if part.mem_usage() < self.part_bytes {
            self.part = Some(part);
        } else {
            self.parts.push(part.finalize().map_err(self.failed())?);
        }
        self.rows.extend(row.to_le_bytes());
        self.changes.extend(change.to_le_bytes());
        self.last_row = Some(row);
        Ok(())
    }

    /// How many records were added.
    pub fn len(&self) -> u64 {
        (self.rows.len() / size_of::<u64>()) as u64
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes, checks and publishes the segment. Returns how many records it has, too.
    ///
    /// # Errors
    /// If writing fails, or what was read back is not what was written.
    pub fn finish(mut self) -> Result<(Published, u64), SegmentError> {
        if let Some(part) = self.part.take() {
            self.parts.push(part.finalize().map_err(self.failed())?);
        }
        let files = self.index_files()?;
        let mut writer = ContainerWriter::create(self.storage, &self.name, Kind::Text, LAYOUT)?;
        let parameters = Parameters { rows: self.len(), analyzer: self.analyzer };
        for (name, bytes) in [
            (section::PARAMETERS, parameters.encode().as_slice()),
            (section::ROWS, &self.rows),
            (section::CHANGES, &self.changes),
        ] {
            writer.begin_section(name)?;
            writer.write(bytes)?;
        }
        for (extension, path) in files {
            writer.begin_section(&section_name(extension))?;
            copy(&path, &mut writer)?;
        }
        Ok((writer.finish()?, self.len()))
    }

    fn new_part(&self) -> Result<SingleSegmentIndexWriter, SegmentError> {
        let directory = self.scratch.sub_folder(&format!("part-{}", self.parts.len()))?;
        IndexBuilder::new()
            .schema(schema())
            .settings(settings())
            .tokenizers(tokenizers(self.analyzer))
            .single_segment_index_writer(ScratchDirectory::new(directory), FIRST_TABLE_BYTES)
            .map_err(self.failed())
    }

    /// Makes one part of all and finds its files.
    fn index_files(&mut self) -> Result<Vec<(&'static str, PathBuf)>, SegmentError> {
        let (index, folder) = match self.parts.as_slice() {
            [] => return Ok(Vec::new()),
            [only] => (only.clone(), self.scratch.folder.join("part-0")),
            _ => self.merge()?,
        };
        let metas = index.searchable_segment_metas().map_err(self.failed())?;
        let [segment] = metas.as_slice() else {
            return Err(self.refused(format!("its index has {} segments", metas.len())));
        };
        let id = segment.id().uuid_string();
        let file = |extension| (extension, folder.join(format!("{id}.{extension}")));
        Ok(EXTENSIONS.map(file).into())
    }

    /// The parts come one after the other, so that positions stay those of the rows.
    fn merge(&mut self) -> Result<(Index, PathBuf), SegmentError> {
        let folder = self.scratch.sub_folder("merged")?;
        let parts = std::mem::take(&mut self.parts);
        let mut segments = Vec::with_capacity(parts.len());
        for part in &parts {
            segments.extend(part.searchable_segments().map_err(self.failed())?);
        }
        let all_alive = vec![None; segments.len()];
        let directory = ScratchDirectory::new(folder.clone());
        let index = merge_filtered_segments(&segments, settings(), all_alive, directory)
            .map_err(self.failed())?;
        for part in 0..parts.len() {
            remove_folder(&self.scratch.folder.join(format!("part-{part}")))?;
        }
        Ok((index, folder))
    }

    fn failed(&self) -> impl FnOnce(TantivyError) -> SegmentError + use<> {
        let path = self.storage.path(&self.name);
        move |error| SegmentError::io("index the texts of", path)(io::Error::other(error))
    }

    fn refused(&self, problem: String) -> SegmentError {
        SegmentError::refused("build", self.storage.path(&self.name), problem)
    }
}

impl std::fmt::Debug for TextBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextBuilder")
            .field("name", &self.name)
            .field("rows", &self.len())
            .finish_non_exhaustive()
    }
}

/// Removes what killed builds of segments with such names have left in a scratch folder.
/// Only for who knows that no build is under way in it. Returns how many there were.
///
/// # Errors
/// If the folder cannot be read or something in it not be removed.
pub fn remove_scratch(
    scratch_folder: &Path,
    is_segment: impl Fn(&str) -> bool,
) -> Result<usize, SegmentError> {
    let entries = match Folder::open(scratch_folder).and_then(|folder| folder.entries()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(SegmentError::io("list", scratch_folder))?,
    };
    let mut removed = 0;
    for entry in entries {
        let segment = entry.name.strip_suffix(SCRATCH_SUFFIX);
        if entry.kind == EntryKind::Folder && segment.is_some_and(&is_segment) {
            remove_folder(&scratch_folder.join(&entry.name))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A build's own folder, made when it is first needed and removed at the end.
#[derive(Debug)]
struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    fn sub_folder(&self, name: &str) -> Result<PathBuf, SegmentError> {
        let folder = self.folder.join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(SegmentError::io("create", &folder))?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the next build or `remove_scratch` tries again.
        let _ = remove_folder(&self.folder);
    }
}

fn remove_folder(folder: &Path) -> Result<(), SegmentError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.map_err(SegmentError::io("remove", folder)),
    }
}

fn copy(path: &Path, writer: &mut ContainerWriter<'_>) -> Result<(), SegmentError> {
    let mut file = File::open(path).map_err(SegmentError::io("open", path))?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => writer.write(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(SegmentError::io("read", path)(error)),
        }
    }
}

#[cfg(test)]
mod tests;
