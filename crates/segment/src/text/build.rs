//! Builds text segments.

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
use super::parameters::{LAYOUT, TextParameters, section};
use crate::storage::Storage;
use crate::{ContainerWriter, PublishedSegment, SegmentError, SegmentKind};

/// Memory limit of a partial index, which is then written to the scratch folder.
const PART_BYTES: usize = 64 << 20;
/// Determines the initial size of tantivy's hash table, which grows as needed. Most builds are
/// small.
const INITIAL_TABLE_BYTES: usize = 4 << 20;
const SCRATCH_SUFFIX: &str = ".scratch";
/// Extensions of the files of an index without deletions.
const EXTENSIONS: [&str; 6] = ["term", "idx", "pos", "fieldnorm", "fast", "store"];

/// Builds a text segment, record by record, and publishes it at the end. Memory is bounded,
/// except for 16 bytes per record. Dropping it before that removes its files.
pub struct TextBuilder<'s> {
    storage: &'s dyn Storage,
    name: String,
    analyzer: Analyzer,
    scratch: ScratchFolder,
    part_bytes: usize,
    part: Option<SingleSegmentIndexWriter>,
    parts: Vec<Index>,
    rows: Vec<u8>,
    changes: Vec<u8>,
    last_row: Option<u64>,
}

impl<'s> TextBuilder<'s> {
    /// Starts a segment to be published as `name`. Its index is built in a temporary subfolder
    /// of `scratch_folder`.
    ///
    /// # Errors
    /// If leftovers of an earlier build of this name cannot be removed.
    pub fn create(
        storage: &'s dyn Storage,
        scratch_folder: &Path,
        name: &str,
        analyzer: Analyzer,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        let scratch =
            ScratchFolder { folder: scratch_folder.join(format!("{name}{SCRATCH_SUFFIX}")) };
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

    /// Adds a record. Rows must be in ascending order.
    ///
    /// # Errors
    /// If the row is out of order, or the scratch folder cannot be written.
    pub fn push(
        &mut self,
        row: u64,
        change: u64,
        texts: &TextFields<'_>,
    ) -> Result<(), SegmentError> {
        if let Some(last) = self.last_row.filter(|last| *last >= row) {
            let problem = format!("rows are not in ascending order: {row} after {last}");
            return Err(self.invalid(problem));
        }
        if self.len() >= i32::MAX as u64 {
            return Err(self.invalid("too many rows".to_owned()));
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

    /// The number of records added.
    pub fn len(&self) -> u64 {
        (self.rows.len() / size_of::<u64>()) as u64
    }

    /// Whether no records have been added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes, verifies and publishes the segment. Also returns its number of records.
    ///
    /// # Errors
    /// If writing fails, or the data read back differs from what was written.
    pub fn finish(mut self) -> Result<(PublishedSegment, u64), SegmentError> {
        if let Some(part) = self.part.take() {
            self.parts.push(part.finalize().map_err(self.failed())?);
        }
        let files = self.index_files()?;
        let mut writer =
            ContainerWriter::create(self.storage, &self.name, SegmentKind::Text, LAYOUT)?;
        let parameters = TextParameters { rows: self.len(), analyzer: self.analyzer };
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
            .single_segment_index_writer(ScratchDirectory::new(directory), INITIAL_TABLE_BYTES)
            .map_err(self.failed())
    }

    /// Merges the parts into one index and returns its files, by extension.
    fn index_files(&mut self) -> Result<Vec<(&'static str, PathBuf)>, SegmentError> {
        let (index, folder) = match self.parts.as_slice() {
            [] => return Ok(Vec::new()),
            [only] => (only.clone(), self.scratch.folder.join("part-0")),
            _ => self.merge()?,
        };
        let metas = index.searchable_segment_metas().map_err(self.failed())?;
        let [segment] = metas.as_slice() else {
            return Err(self.invalid(format!("the index has {} segments", metas.len())));
        };
        let id = segment.id().uuid_string();
        let file = |extension| (extension, folder.join(format!("{id}.{extension}")));
        Ok(EXTENSIONS.map(file).into())
    }

    /// Merges the parts in order, so that positions stay in row order.
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

    fn invalid(&self, problem: String) -> SegmentError {
        SegmentError::invalid("build", self.storage.path(&self.name), problem)
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

/// Removes leftovers of killed builds, for segment names accepted by `is_segment`. The caller
/// must ensure that no build is using the folder. Returns the number of leftovers.
///
/// # Errors
/// If the folder cannot be read or a leftover cannot be removed.
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

/// The temporary folder of a build, created on first use and removed on drop.
#[derive(Debug)]
struct ScratchFolder {
    folder: PathBuf,
}

impl ScratchFolder {
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

impl Drop for ScratchFolder {
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
