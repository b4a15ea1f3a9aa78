use std::collections::HashSet;
use std::time::{Duration, Instant};

use isolith_protocol::{
    CODE_COLLECTION, ClearFiles, CollectionState, Done, FileMoved, FilesCleared, FilesNoted,
    FilesPut, FilesRemoved, MoveFile, NoteGitFacts, PutFiles, RemoveFiles, StoreError, TouchFiles,
};
use isolith_sql::{OptionalExtension, params};
use isolith_types::{FileVersion, ParsedFile, counted};

use super::super::change::Changes;
use super::super::{Perform, Work, validate};
use super::chunks::{self, ChunkWriter};
use super::graph::{CodeGraph, RootFile, place_of};
use crate::read::code::root_exists;
use crate::read::collections;
use crate::sqlite::During;

/// Time limit of a slice of clearing, whatever is left.
const SLICE: Duration = Duration::from_millis(30);

/// The vectors of a request.
#[derive(Clone, Copy)]
pub(in crate::write) struct Vectors<'a> {
    pub(in crate::write) dimension: u32,
    pub(in crate::write) bytes: &'a [u8],
    pub(in crate::write) model: &'a str,
}

/// The new path of a file, and its age there.
#[derive(Clone, Copy)]
pub(in crate::write) struct FileMove<'a> {
    pub(in crate::write) from: &'a str,
    pub(in crate::write) to: &'a str,
    pub(in crate::write) version: &'a FileVersion,
}

impl Perform for PutFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let vectors =
            Vectors { dimension: self.dimension, bytes: &self.vectors, model: &self.model };
        put_files(work, self.root, &self.files, &self.ages, vectors)
    }
}

impl Perform for TouchFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        touch_files(work, self.root, &self.files)
    }
}

impl Perform for MoveFile {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let Self { root, from, to, version, dimension, vectors, model } = self;
        let vectors = Vectors { dimension: *dimension, bytes: vectors, model };
        move_file(work, *root, FileMove { from, to, version }, vectors)
    }
}

impl Perform for RemoveFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        remove_files(work, self.root, &self.paths)
    }
}

impl Perform for ClearFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        clear_files(work, self.root, self.limit_files)
    }
}

impl Perform for NoteGitFacts {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        git_facts(work, self.root, &self.facts)
    }
}

/// Stores files, replacing existing ones with the same path.
pub(in crate::write) fn put_files(
    work: Work<'_>,
    root: u64,
    files: &[u8],
    ages: &[i64],
    vectors: Vectors<'_>,
) -> Result<Done<FilesPut>, StoreError> {
    let state = index_of(work, Some(root))?;
    let mut files = decode(files)?;
    check_files(&files)?;
    if !ages.is_empty() && ages.len() != files.len() {
        let reason =
            format!("{}, but {}", counted(files.len(), "file"), counted(ages.len(), "age"));
        return Err(StoreError::Invalid(reason));
    }
    files.iter_mut().zip(ages).for_each(|(file, age)| file.version.modified = *age);
    let places = files.iter().flat_map(|file| {
        file.chunks.iter().map(|chunk| (file.path.as_str(), u64::from(chunk.start_line)))
    });
    let width = vectors.check(&state, places)?;
    let mut changes = Changes::begin(work, &state)?;
    let mut writer = ChunkWriter::new(work, state.id)?;
    let mut graph = CodeGraph::begin(work)?;
    let mut reply = FilesPut::default();
    let mut left = vectors.bytes;
    for file in files {
        work.deadline.check("store files")?;
        let (id, is_new) = put_file(work, root, &file).during(work.db, "store a file")?;
        if !is_new {
            reply.deleted += chunks::remove(work, &mut changes, id)?;
        }
        let (own, rest) = left.split_at(file.chunks.len() * width);
        left = rest;
        writer.insert(&mut changes, id, &file.chunks, own, width)?;
        graph.put(RootFile { root, file: id, path: &file.path }, file.graph)?;
        reply.inserted += file.chunks.len() as u64;
        reply.files += 1;
    }
    graph.finish()?;
    changes.finish(reply)
}

/// Records the age of files that did not change.
pub(in crate::write) fn touch_files(
    work: Work<'_>,
    root: u64,
    files: &[(String, i64, u64)],
) -> Result<Done<FilesNoted>, StoreError> {
    let touch = || {
        let mut touch = work.db.prepare_cached(
            "UPDATE file SET modified = ?3, size = ?4 WHERE root = ?1 AND path = ?2",
        )?;
        let mut reply = FilesNoted::default();
        for (path, modified, size) in files {
            match touch.execute(params![root, path, modified, size])? {
                0 => reply.missing += 1,
                _ => reply.files += 1,
            }
        }
        Ok(reply)
    };
    require_root(work, root)?;
    Ok(touch().during(work.db, "note the age of files")?.into())
}

/// Changes the path of a file, and the vectors of its chunks accordingly.
pub(in crate::write) fn move_file(
    work: Work<'_>,
    root: u64,
    step: FileMove<'_>,
    vectors: Vectors<'_>,
) -> Result<Done<FileMoved>, StoreError> {
    let state = index_of(work, Some(root))?;
    check_path(step.to)?;
    let Some(id) = find(work, root, step.from)? else {
        let reply = FileMoved { missing: 1, ..FileMoved::default() };
        return Changes::begin(work, &state)?.finish(reply);
    };
    let versions = chunks::versions(work, id)?;
    let places = (0..versions.len()).map(|position| (step.to, position as u64));
    let width = vectors.check(&state, places)?;
    let mut changes = Changes::begin(work, &state)?;
    let mut graph = CodeGraph::begin(work)?;
    let mut reply = FileMoved { files: 1, ..FileMoved::default() };
    if step.from != step.to
        && let Some(other) = find(work, root, step.to)?
    {
        reply.deleted += remove_file(work, &mut changes, &mut graph, other)?;
    }
    if step.from != step.to {
        graph.rename(RootFile { root, file: id, path: step.from }, step.to)?;
    }
    graph.finish()?;
    work.db
        .prepare_cached(
            "UPDATE file SET path = ?2, hash = ?3, size = ?4, modified = ?5 WHERE id = ?1",
        )
        .and_then(|mut statement| {
            let version = step.version;
            let FileVersion { hash, size, modified } = version;
            statement.execute(params![id, step.to, hash, size, modified])
        })
        .during(work.db, "move a file")?;
    chunks::replace_vectors(work, &mut changes, &versions, vectors.bytes, width)?;
    reply.updated = versions.len() as u64;
    changes.finish(reply)
}

/// Removes files by path.
pub(in crate::write) fn remove_files(
    work: Work<'_>,
    root: u64,
    paths: &[String],
) -> Result<Done<FilesRemoved>, StoreError> {
    let state = index_of(work, Some(root))?;
    let mut changes = Changes::begin(work, &state)?;
    let mut graph = CodeGraph::begin(work)?;
    let mut reply = FilesRemoved::default();
    for path in paths {
        work.deadline.check("remove files")?;
        match find(work, root, path)? {
            Some(id) => {
                reply.deleted += remove_file(work, &mut changes, &mut graph, id)?;
                reply.files += 1;
            }
            None => reply.missing += 1,
        }
    }
    graph.finish()?;
    changes.finish(reply)
}

/// Removes the first files of a root, or of all roots.
pub(in crate::write) fn clear_files(
    work: Work<'_>,
    root: Option<u64>,
    limit: u32,
) -> Result<Done<FilesCleared>, StoreError> {
    let state = index_of(work, root)?;
    let limit = u64::from(limit.max(1));
    // One more than allowed, to know whether there are more.
    let read = || {
        work.db
            .prepare_cached(
                "SELECT id FROM file WHERE ?1 IS NULL OR root = ?1 ORDER BY id LIMIT ?2 + 1",
            )?
            .query_map(params![root, limit], |row| row.get(0))?
            .collect::<Result<Vec<u64>, _>>()
    };
    let files = read().during(work.db, "look for files")?;
    let end = Instant::now() + SLICE;
    let mut changes = Changes::begin(work, &state)?;
    let mut graph = CodeGraph::begin(work)?;
    let mut reply = FilesCleared::default();
    for id in &files {
        if reply.files == limit || (reply.files > 0 && Instant::now() >= end) {
            reply.more = true;
            break;
        }
        reply.deleted += remove_file(work, &mut changes, &mut graph, *id)?;
        reply.files += 1;
    }
    graph.finish()?;
    changes.finish(reply)
}

/// Records what git says about files. Files that are not in the index are skipped.
pub(in crate::write) fn git_facts(
    work: Work<'_>,
    root: u64,
    facts: &[(String, Option<String>, i64)],
) -> Result<Done<FilesNoted>, StoreError> {
    let note = || {
        let mut note = work.db.prepare_cached(
            "UPDATE file SET author = ?3, changed_at = ?4 WHERE root = ?1 AND path = ?2 \
             AND (changed_at IS NULL OR changed_at <= ?4) RETURNING id",
        )?;
        let mut reply = FilesNoted::default();
        let mut authors = Vec::new();
        for (path, author, changed_at) in facts {
            let mut noted = note.query(params![root, path, author, changed_at])?;
            match noted.next()? {
                None => reply.missing += 1,
                Some(row) => {
                    reply.files += 1;
                    authors.push((row.get::<_, u64>(0)?, path, author));
                }
            }
        }
        Ok((reply, authors))
    };
    require_root(work, root)?;
    let (reply, authors) = note().during(work.db, "store facts from git")?;
    let graph = CodeGraph::begin(work)?;
    for (file, path, author) in authors {
        if let Some(author) = author {
            graph.authored(RootFile { root, file, path }, author)?;
        }
    }
    graph.finish()?;
    Ok(Done { graph_due: crate::graph::is_due(work, true)?, ..reply.into() })
}

impl Vectors<'_> {
    /// Checks the vectors against the index and the chunks they belong to, each given as a path
    /// and a number for errors. Returns the size of a vector in bytes.
    fn check<'p>(
        &self,
        state: &CollectionState,
        places: impl Iterator<Item = (&'p str, u64)>,
    ) -> Result<usize, StoreError> {
        if state.model.as_deref() != Some(self.model) {
            return Err(StoreError::ModelMismatch {
                name: state.name.clone(),
                found: state.model.clone().unwrap_or_default(),
                asked: self.model.to_owned(),
            });
        }
        validate::check_dimension(self.dimension, state)?;
        let width = self.dimension as usize * 4;
        let mut vectors = self.bytes.chunks_exact(width);
        let mut count = 0;
        for (at, (path, number)) in places.enumerate() {
            count = at + 1;
            let Some(vector) = vectors.next() else { continue };
            validate::vector_bytes(vector, state.metric)
                .map_err(|reason| validate::bad(at, &format!("{path}:{number}"), reason))?;
        }
        if self.bytes.len() != count * width {
            return Err(StoreError::Invalid(format!(
                "expected {} bytes ({} of dimension {}), found {}",
                count * width,
                counted(count, "vector"),
                self.dimension,
                self.bytes.len()
            )));
        }
        Ok(width)
    }
}

/// The code index, which exists if the root does.
pub(super) fn index_of(work: Work<'_>, root: Option<u64>) -> Result<CollectionState, StoreError> {
    if let Some(root) = root {
        require_root(work, root)?;
    }
    collections::code(work.db)?.ok_or_else(|| StoreError::NotFound {
        name: CODE_COLLECTION.to_owned(),
        similar: Vec::new(),
    })
}

fn require_root(work: Work<'_>, root: u64) -> Result<(), StoreError> {
    if root_exists(work.db, root)? { Ok(()) } else { Err(StoreError::NoRoot { root }) }
}

fn decode(files: &[u8]) -> Result<Vec<ParsedFile>, StoreError> {
    let bad = |reason: String| StoreError::Invalid(format!("the files cannot be read: {reason}"));
    match postcard::take_from_bytes(files) {
        Ok((files, [])) => Ok(files),
        Ok((_, rest)) => Err(bad(format!("{} left over", counted(rest.len(), "byte")))),
        Err(error) => Err(bad(error.to_string())),
    }
}

fn check_files(files: &[ParsedFile]) -> Result<(), StoreError> {
    let mut seen = HashSet::with_capacity(files.len());
    for file in files {
        check_path(&file.path)?;
        if !seen.insert(file.path.as_str()) {
            let reason = format!("file {:?} occurs twice in one call", file.path);
            return Err(StoreError::Invalid(reason));
        }
        let bad = |chunk: &&isolith_types::Chunk| {
            chunk.start_line == 0 || chunk.end_line < chunk.start_line
        };
        if let Some(chunk) = file.chunks.iter().find(bad) {
            let (start, end) = (chunk.start_line, chunk.end_line);
            let reason = format!("file {:?} has an invalid line range {start} to {end}", file.path);
            return Err(StoreError::Invalid(reason));
        }
    }
    Ok(())
}

pub(super) fn check_path(path: &str) -> Result<(), StoreError> {
    let odd = path.split('/').any(|part| matches!(part, "" | "." | ".."));
    if odd || path.contains('\0') {
        return Err(StoreError::Invalid(format!(
            "{path:?} is not a valid path of a file below a root"
        )));
    }
    Ok(())
}

/// Writes the file's own row. Returns its id, and whether it is new.
pub(super) fn put_file(
    work: Work<'_>,
    root: u64,
    file: &ParsedFile,
) -> isolith_sql::Result<(u64, bool)> {
    let FileVersion { hash, size, modified } = &file.version;
    let chunks = file.chunks.len() as u64;
    let values = params![
        root,
        file.path,
        hash,
        size,
        modified,
        file.language,
        file.generated,
        file.problem,
        chunks,
        file.parser
    ];
    let inserted = work
        .db
        .prepare_cached(
            "INSERT INTO file \
             (root, path, hash, size, modified, language, generated, problem, chunks, parser) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (root, path) DO NOTHING \
             RETURNING id",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(file) = inserted {
        return Ok((file, true));
    }
    // What git said was about the old content. The edit is newer than any commit of the file so
    // far.
    let id = work
        .db
        .prepare_cached(
            "UPDATE file SET hash = ?3, size = ?4, modified = ?5, language = ?6, generated = ?7, \
             problem = ?8, chunks = ?9, author = NULL, changed_at = nullif(?5, 0) / 1000000, \
             parser = ?10 WHERE root = ?1 AND path = ?2 RETURNING id",
        )?
        .query_row(values, |row| row.get(0))?;
    Ok((id, false))
}

fn find(work: Work<'_>, root: u64, path: &str) -> Result<Option<u64>, StoreError> {
    work.db
        .prepare_cached("SELECT id FROM file WHERE root = ?1 AND path = ?2")
        .and_then(|mut statement| {
            statement.query_row(params![root, path], |row| row.get(0)).optional()
        })
        .during(work.db, "look for a file")
}

/// Returns the number of chunks removed with it.
fn remove_file(
    work: Work<'_>,
    changes: &mut Changes<'_>,
    graph: &mut CodeGraph<'_>,
    id: u64,
) -> Result<u64, StoreError> {
    if let Some((root, path)) = place_of(work, id)? {
        graph.remove(RootFile { root, file: id, path: &path })?;
    }
    let gone = chunks::remove(work, changes, id)?;
    work.db
        .prepare_cached("DELETE FROM file WHERE id = ?1")
        .and_then(|mut statement| statement.execute([id]))
        .during(work.db, "remove a file")?;
    Ok(gone)
}
