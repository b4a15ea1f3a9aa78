//! From names to edges: files that have to be looked at again are resolved among the others
//! of their root.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolith_graph::Value;
use isolith_resolve::{Key, Project, Resolution, resolve};
use isolith_types::{CodeNode, FileGraph, Reference};
use rusqlite::{Connection, OptionalExtension, params};

use super::super::Work;
use super::super::request::Outcome;
use crate::error::StoreError;
use crate::graph::{TruthGraph, query_failed};
use crate::sqlite::During;

/// A slice ends after this long: others want to write, too.
const SLICE: Duration = Duration::from_millis(60);

/// A slice looks at no more files than these.
const SLICE_FILES: u32 = 2_000;

/// Resolves files that are due until the slice is over; `kept` are types of edges that do
/// not come of names.
pub(super) fn link(work: Work<'_>, root: u64, kept: &[&str]) -> Result<Outcome, StoreError> {
    let due = due(work, root)?;
    let graph = TruthGraph::begin(work.db)?;
    let files = Files { db: work.db, root, known: RefCell::default(), trouble: RefCell::default() };
    let end = Instant::now() + SLICE;
    let mut outcome = Outcome::default();
    for (file, path) in &due {
        work.deadline.check("resolve names")?;
        if outcome.files > 0 && Instant::now() >= end {
            break;
        }
        let Some(mut own) = outline(work.db, *file)? else { continue };
        own.references = uses(work.db, *file)?;
        let own = Arc::new(own);
        let resolution = resolve(path, &own, &files);
        if let Some(trouble) = files.trouble.take() {
            return Err(trouble);
        }
        write(&graph, &files, (*file, path, &own), &resolution, kept)?;
        note(work.db, *file, &resolution.keys).during(work.db, "note what was looked up")?;
        outcome.files += 1;
    }
    graph.finish()?;
    outcome.more = outcome.files < due.len() as u64 || due.len() == SLICE_FILES as usize;
    Ok(outcome)
}

fn due(work: Work<'_>, root: u64) -> Result<Vec<(u64, String)>, StoreError> {
    let read = || {
        work.db
            .prepare_cached(
                "SELECT f.id, f.path FROM code_graph g CROSS JOIN file f ON f.id = g.file \
                 WHERE g.due = 1 AND f.root = ?1 LIMIT ?2",
            )?
            .query_map(params![root, SLICE_FILES], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<_>, _>>()
    };
    read().during(work.db, "look for files to resolve")
}

/// Puts the edges of a file in the place of those that it had.
fn write(
    graph: &TruthGraph<'_>,
    files: &Files<'_>,
    (file, path, own): (u64, &str, &FileGraph),
    resolution: &Resolution,
    kept: &[&str],
) -> Result<(), StoreError> {
    let owner = file as i64;
    let nodes: HashMap<String, i64> =
        graph.all_owned(owner).map_err(query_failed)?.into_iter().collect();
    graph.remove_owned_edges(owner, kept).map_err(query_failed)?;
    let name = |graph: &FileGraph, definition: Option<u32>| match definition {
        None => Some(String::new()),
        Some(at) => graph.definitions.get(at as usize).map(|one| one.local_id()),
    };
    for edge in &resolution.edges {
        let from = name(own, edge.from).and_then(|name| nodes.get(&name).copied());
        let to = match edge.to.path == path {
            true => name(own, edge.to.definition).and_then(|name| nodes.get(&name).copied()),
            false => files.node(graph, &edge.to, name)?,
        };
        let (Some(from), Some(to)) = (from, to) else { continue };
        let properties = [
            ("certainty", Value::text(edge.certainty.word())),
            ("line", Value::Integer(i64::from(edge.line))),
            ("type_only", if edge.type_only { Value::Boolean(true) } else { Value::Null }),
        ];
        graph
            .add_owned_edge(owner, edge.kind.name(), (from, to), &properties)
            .map_err(query_failed)?;
    }
    Ok(())
}

fn note(db: &Connection, file: u64, keys: &[Key]) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM code_lookup WHERE file = ?1")?.execute([file])?;
    let mut add =
        db.prepare_cached("INSERT OR IGNORE INTO code_lookup (key, file) VALUES (?1, ?2)")?;
    for key in keys {
        add.execute(params![key.as_str(), file])?;
    }
    db.prepare_cached("UPDATE code_graph SET due = 0 WHERE file = ?1")?.execute([file])?;
    Ok(())
}

/// What a file defines and imports, if it is known.
pub(super) fn outline(db: &Connection, file: u64) -> Result<Option<FileGraph>, StoreError> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT outline FROM code_graph WHERE file = ?1")
        .and_then(|mut statement| statement.query_row([file], |row| row.get(0)).optional())
        .during(db, "read the graph of a file")?;
    bytes.map(|bytes| decoded(db, &bytes)).transpose()
}

/// What a file refers to.
pub(super) fn uses(db: &Connection, file: u64) -> Result<Vec<Reference>, StoreError> {
    let bytes: Option<Vec<u8>> = db
        .prepare_cached("SELECT uses FROM code_graph WHERE file = ?1")
        .and_then(|mut statement| statement.query_row([file], |row| row.get(0)).optional())
        .during(db, "read the graph of a file")?;
    bytes.map_or(Ok(Vec::new()), |bytes| decoded(db, &bytes))
}

fn decoded<T: serde::de::DeserializeOwned>(db: &Connection, bytes: &[u8]) -> Result<T, StoreError> {
    postcard::from_bytes(bytes).map_err(|error| StoreError::Corrupt {
        path: db.path().unwrap_or_default().into(),
        reason: format!("the graph of a file cannot be read: {error}"),
    })
}

/// A file by its number, and what it defines and imports.
type Known = (u64, Arc<FileGraph>);

/// The files of a root, as the resolver asks for them. It knows no errors: the first one is
/// kept for whoever called it.
struct Files<'a> {
    db: &'a Connection,
    root: u64,
    known: RefCell<HashMap<String, Option<Known>>>,
    trouble: RefCell<Option<StoreError>>,
}

impl Files<'_> {
    fn found(&self, path: &str) -> Option<Known> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let found = self.noting(self.read(path)).flatten();
        self.known.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    fn read(&self, path: &str) -> Result<Option<Known>, StoreError> {
        let found: Option<(u64, Vec<u8>)> = self
            .db
            .prepare_cached(
                "SELECT f.id, g.outline FROM file f JOIN code_graph g ON g.file = f.id \
                 WHERE f.root = ?1 AND f.path = ?2",
            )
            .and_then(|mut statement| {
                let both = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                statement.query_row(params![self.root, path], both).optional()
            })
            .during(self.db, "read the graph of a file")?;
        found.map(|(file, bytes)| Ok((file, Arc::new(decoded(self.db, &bytes)?)))).transpose()
    }

    /// The node of a file or of a definition in it.
    fn node(
        &self,
        graph: &TruthGraph<'_>,
        node: &CodeNode,
        name: impl Fn(&FileGraph, Option<u32>) -> Option<String>,
    ) -> Result<Option<i64>, StoreError> {
        let Some((file, of)) = self.found(&node.path) else { return Ok(None) };
        let Some(name) = name(&of, node.definition) else { return Ok(None) };
        graph.owned(file as i64, &name).map_err(query_failed)
    }

    fn noting<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.trouble.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    fn paths(&self, sql: &str, parameters: impl rusqlite::Params) -> Vec<(String, String)> {
        let read = || {
            self.db
                .prepare_cached(sql)?
                .query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        self.noting(read().during(self.db, "look up names")).unwrap_or_default()
    }
}

impl Project for Files<'_> {
    fn file(&self, path: &str) -> Option<Arc<FileGraph>> {
        self.found(path).map(|(_, graph)| graph)
    }

    fn files_of_module(&self, module: &str) -> Vec<String> {
        let found = self.paths(
            "SELECT f.path, '' FROM code_module m CROSS JOIN file f ON f.id = m.file \
             WHERE m.name = ?1 AND f.root = ?2 ORDER BY f.path",
            params![module, self.root],
        );
        found.into_iter().map(|(path, _)| path).collect()
    }

    fn definitions_named(&self, name: &str, most: usize) -> Vec<CodeNode> {
        // Files have names, too, and are no definitions: those have one within their file.
        let found = self.paths(
            "SELECT f.path, n.name FROM graph_name k CROSS JOIN node_value v ON v.key = k.id \
             CROSS JOIN node n ON n.id = v.node AND n.owner > 0 AND n.name <> '' \
             CROSS JOIN file f ON f.id = n.owner AND f.root = ?2 \
             WHERE k.kind = 2 AND k.name = 'name' AND v.value = ?1 LIMIT ?3",
            params![name, self.root, most as i64],
        );
        let mut nodes = Vec::new();
        for (path, local) in found {
            let Some(graph) = self.file(&path) else { continue };
            let definitions = graph.definitions.iter();
            let at = definitions.enumerate().find(|(_, one)| one.local_id() == local);
            nodes.extend(at.map(|(at, _)| CodeNode { path, definition: Some(at as u32) }));
        }
        nodes.sort();
        nodes.truncate(most);
        nodes
    }
}
