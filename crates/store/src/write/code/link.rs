//! Turns references into edges: resolves due files against the other files of their root.

use std::time::{Duration, Instant};

use isolith_graph::Value;
use isolith_protocol::{Done, FilesLinked, StoreError};
use isolith_resolve::{LookupKey, Resolution, resolve};
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::{Certainty, FileGraph, Reference};

use super::super::Work;
use super::file_cache::ResolverFiles;
use super::graph::{AUTHORED, CONTAINS, Due};
use crate::graph::{TruthGraph, query_failed};
use crate::sqlite::During;

/// Time limit of a slice, so that others can write, too.
const SLICE: Duration = Duration::from_millis(150);

/// Maximum number of files per slice.
const SLICE_FILES: u32 = 2_000;

/// A file whose references must be resolved.
struct DueFile {
    file: u64,
    path: String,
    is_first: bool,
}

/// Resolves due files until the slice is over.
pub(super) fn link(work: Work<'_>, root: u64) -> Result<Done<FilesLinked>, StoreError> {
    let due = due(work, root)?;
    let graph = TruthGraph::begin(work.db)?;
    let files = ResolverFiles::new(work, root, due.len())?;
    let end = Instant::now() + SLICE;
    let mut reply = FilesLinked::default();
    for file in &due {
        work.deadline.check("resolve names")?;
        if reply.files > 0 && Instant::now() >= end {
            break;
        }
        let Some(own) = files.outline(&file.path)? else { continue };
        let uses = uses(work.db, file.file)?;
        let resolution = resolve(&file.path, &own, &uses, &files);
        files.check()?;
        write(&graph, &files, file, &resolution)?;
        note(work.db, file.file, &resolution.keys).during(work.db, "note what was looked up")?;
        reply.files += 1;
    }
    graph.finish()?;
    reply.more = reply.files < due.len() as u64 || due.len() == SLICE_FILES as usize;
    if reply.more {
        files.keep(work);
    }
    Ok(reply.into())
}

fn due(work: Work<'_>, root: u64) -> Result<Vec<DueFile>, StoreError> {
    let read = || {
        let file = |row: &isolith_sql::Row<'_>| {
            let is_first = row.get::<_, u8>(2)? == Due::First as u8;
            Ok(DueFile { file: row.get(0)?, path: row.get(1)?, is_first })
        };
        work.db
            .prepare_cached(
                "SELECT f.id, f.path, g.due FROM code_graph g CROSS JOIN file f ON f.id = g.file \
                 WHERE g.due > 0 AND f.root = ?1 LIMIT ?2",
            )?
            .query_map(params![root, SLICE_FILES], file)?
            .collect::<Result<Vec<_>, _>>()
    };
    read().during(work.db, "look for files to resolve")
}

/// Replaces the edges of a file.
fn write(
    graph: &TruthGraph<'_>,
    files: &ResolverFiles<'_>,
    due: &DueFile,
    resolution: &Resolution,
) -> Result<(), StoreError> {
    let owner = due.file as i64;
    if !due.is_first {
        let comes_of_names = |kind: &str| kind != CONTAINS && kind != AUTHORED;
        graph.remove_edges_of(owner, comes_of_names).map_err(query_failed)?;
    }
    let word = |certainty: Certainty| Value::text(certainty.word());
    let (resolved, candidate) = (word(Certainty::Resolved), word(Certainty::Candidate));
    for edge in &resolution.edges {
        let from = files.node(graph, &due.path, edge.from)?;
        let to = files.node(graph, &edge.to.path, edge.to.definition)?;
        let (Some(from), Some(to)) = (from, to) else { continue };
        let certainty = match edge.certainty {
            Certainty::Resolved => &resolved,
            Certainty::Candidate => &candidate,
        };
        let properties = [
            ("certainty", certainty.clone()),
            ("line", Value::Integer(i64::from(edge.line))),
            ("type_only", if edge.type_only { Value::Boolean(true) } else { Value::Null }),
        ];
        graph
            .add_owned_edge(owner, edge.kind.name(), (from, to), &properties)
            .map_err(query_failed)?;
    }
    Ok(())
}

/// Records what a file looked up, and that it is no longer due.
fn note(db: &dyn Connection, file: u64, keys: &[LookupKey]) -> isolith_sql::Result<()> {
    let keys: Vec<u8> = keys.iter().flat_map(|key| key.0.to_le_bytes()).collect();
    db.prepare_cached("INSERT OR REPLACE INTO code_lookup (file, keys) VALUES (?1, ?2)")?
        .execute(params![file, keys])?;
    db.prepare_cached("UPDATE code_graph SET due = 0 WHERE file = ?1")?.execute([file])?;
    Ok(())
}

/// Decodes recorded keys.
pub(super) fn keys(bytes: &[u8]) -> impl Iterator<Item = LookupKey> {
    let (keys, _) = bytes.as_chunks();
    keys.iter().map(|key| LookupKey(u32::from_le_bytes(*key)))
}

/// The definitions and imports of a file, if stored.
pub(crate) fn outline(db: &dyn Connection, file: u64) -> Result<Option<FileGraph>, StoreError> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT outline FROM code_graph WHERE file = ?1")
        .and_then(|mut statement| statement.query_row([file], |row| row.get(0)).optional())
        .during(db, "read the graph of a file")?;
    bytes.map(|bytes| decoded(db, &bytes)).transpose()
}

/// The references of a file.
pub(super) fn uses(db: &dyn Connection, file: u64) -> Result<Vec<Reference>, StoreError> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT uses FROM code_graph WHERE file = ?1")
        .and_then(|mut statement| statement.query_row([file], |row| row.get(0)).optional())
        .during(db, "read the graph of a file")?;
    bytes.map_or(Ok(Vec::new()), |bytes| decoded(db, &bytes))
}

/// Decodes a stored value.
pub(super) fn decoded<T: serde::de::DeserializeOwned>(
    db: &dyn Connection,
    bytes: &[u8],
) -> Result<T, StoreError> {
    postcard::from_bytes(bytes).map_err(|error| StoreError::Corrupt {
        path: db.path().unwrap_or_default().into(),
        reason: format!("the graph of a file cannot be read: {error}"),
    })
}
