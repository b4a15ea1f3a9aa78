//! The files of a root as the resolver asks for them, each read once.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use isolith_resolve::{Outline, Project};
use isolith_types::{CodeNode, FastMap, FileGraph};
use rusqlite::{Connection, OptionalExtension, params};

use super::link::decoded;
use crate::error::StoreError;
use crate::graph::{TruthGraph, query_failed};
use crate::sqlite::During;

/// A file by its number, and what it defines and imports.
struct Known {
    file: u64,
    graph: Arc<Outline>,
    /// Its nodes by what names them in it, in the order of names.
    nodes: OnceCell<Vec<(String, i64)>>,
}

/// What was found under a name.
enum Named {
    /// All of them.
    All(Arc<[CodeNode]>),
    /// There are more than these many.
    MoreThan(usize),
}

/// The files of a root. The resolver knows no errors: the first one is kept for whoever
/// called it.
pub(super) struct Files<'a> {
    db: &'a Connection,
    root: u64,
    known: RefCell<FastMap<String, Option<Rc<Known>>>>,
    named: RefCell<FastMap<String, Named>>,
    modules: RefCell<FastMap<String, Arc<[String]>>>,
    trouble: RefCell<Option<StoreError>>,
}

impl<'a> Files<'a> {
    pub(super) fn new(db: &'a Connection, root: u64) -> Self {
        let (known, named, modules) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { db, root, known, named, modules, trouble: RefCell::default() }
    }

    /// What a file defines and imports.
    pub(super) fn outline(&self, path: &str) -> Result<Option<Arc<Outline>>, StoreError> {
        let found = self.file_at(path);
        self.check()?;
        Ok(found.map(|known| Arc::clone(&known.graph)))
    }

    /// The node of a file or of a definition in it.
    pub(super) fn node(
        &self,
        graph: &TruthGraph<'_>,
        path: &str,
        definition: Option<u32>,
    ) -> Result<Option<i64>, StoreError> {
        let Some(known) = self.file_at(path) else { return self.check().map(|()| None) };
        let local = match definition {
            None => String::new(),
            Some(index) => match known.graph.definitions.get(index as usize) {
                Some(definition) => definition.local_id(),
                None => return Ok(None),
            },
        };
        let nodes = match known.nodes.get() {
            Some(nodes) => nodes,
            None => {
                let mut nodes = graph.all_owned(known.file as i64).map_err(query_failed)?;
                nodes.sort_unstable();
                known.nodes.get_or_init(|| nodes)
            }
        };
        let at = nodes.binary_search_by(|(name, _)| name.as_str().cmp(&local));
        Ok(at.ok().and_then(|at| nodes.get(at)).map(|(_, node)| *node))
    }

    /// What kept anything from being read since this was asked last.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.trouble.take().map_or(Ok(()), Err)
    }

    fn file_at(&self, path: &str) -> Option<Rc<Known>> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let found = self.noting(self.read(path)).flatten().map(Rc::new);
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
        let Some((file, bytes)) = found else { return Ok(None) };
        let graph = Arc::new(decoded::<FileGraph>(self.db, &bytes)?.into());
        Ok(Some(Known { file, graph, nodes: OnceCell::new() }))
    }

    /// The definitions of a name, each with its file and what names it there. One more than
    /// `most` tells that there are too many.
    fn named(&self, name: &str, most: usize) -> Vec<(String, String)> {
        // Files have names, too, and are no definitions: those have one within their file.
        self.paths(
            "SELECT f.path, n.name FROM graph_name k CROSS JOIN node_value v ON v.key = k.id \
             CROSS JOIN node n ON n.id = v.node AND n.owner > 0 AND n.name <> '' \
             CROSS JOIN file f ON f.id = n.owner AND f.root = ?2 \
             WHERE k.kind = 2 AND k.name = 'name' AND v.value = ?1 LIMIT ?3 + 1",
            params![name, self.root, most as i64],
        )
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
    fn file(&self, path: &str) -> Option<Arc<Outline>> {
        self.file_at(path).map(|known| Arc::clone(&known.graph))
    }

    fn files_of_module(&self, module: &str) -> Arc<[String]> {
        if let Some(known) = self.modules.borrow().get(module) {
            return Arc::clone(known);
        }
        let found = self.paths(
            "SELECT f.path, '' FROM code_module m CROSS JOIN file f ON f.id = m.file \
             WHERE m.name = ?1 AND f.root = ?2 ORDER BY f.path",
            params![module, self.root],
        );
        let files: Arc<[String]> = found.into_iter().map(|(path, _)| path).collect();
        self.modules.borrow_mut().insert(module.to_owned(), Arc::clone(&files));
        files
    }

    fn definitions_named(&self, name: &str, most: usize) -> Option<Arc<[CodeNode]>> {
        match self.named.borrow().get(name) {
            Some(Named::All(nodes)) => return (nodes.len() <= most).then(|| Arc::clone(nodes)),
            Some(Named::MoreThan(many)) if most <= *many => return None,
            _ => {}
        }
        let found = self.named(name, most);
        if found.len() > most {
            self.named.borrow_mut().insert(name.to_owned(), Named::MoreThan(most));
            return None;
        }
        let mut nodes = Vec::new();
        for (path, local) in found {
            let Some(known) = self.file_at(&path) else { continue };
            let is_meant =
                |index: &u32| known.graph.definitions[*index as usize].local_id() == local;
            let definition = known.graph.named(name).find(is_meant);
            nodes.extend(definition.map(|_| CodeNode { path, definition }));
        }
        nodes.sort();
        let nodes: Arc<[CodeNode]> = nodes.into();
        self.named.borrow_mut().insert(name.to_owned(), Named::All(Arc::clone(&nodes)));
        Some(nodes)
    }
}
