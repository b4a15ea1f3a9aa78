//! The files of a root as the resolver asks for them, each read once.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use isolith_resolve::{Outline, Project};
use isolith_types::{CodeNode, FileGraph};
use rusqlite::{Connection, OptionalExtension, params};

use super::link::decoded;
use crate::error::StoreError;
use crate::graph::{TruthGraph, query_failed};
use crate::sqlite::During;

/// A file by its number, and what it defines and imports.
struct Known {
    file: u64,
    graph: Arc<Outline>,
    /// Its definitions by what names them in it.
    indexes: OnceCell<HashMap<String, u32>>,
    nodes: OnceCell<Nodes>,
}

/// The nodes of a file and of its definitions.
struct Nodes {
    file: Option<i64>,
    definitions: Vec<Option<i64>>,
}

/// What was found under a name.
enum Named {
    /// All of them.
    All(Vec<CodeNode>),
    /// There are more than these many.
    MoreThan(usize),
}

/// The files of a root. The resolver knows no errors: the first one is kept for whoever
/// called it.
pub(super) struct Files<'a> {
    db: &'a Connection,
    root: u64,
    known: RefCell<HashMap<String, Option<Rc<Known>>>>,
    named: RefCell<HashMap<String, Named>>,
    trouble: RefCell<Option<StoreError>>,
}

impl<'a> Files<'a> {
    pub(super) fn new(db: &'a Connection, root: u64) -> Self {
        let (known, named) = (RefCell::default(), RefCell::default());
        Self { db, root, known, named, trouble: RefCell::default() }
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
        let nodes = match known.nodes.get() {
            Some(nodes) => nodes,
            None => {
                let nodes = Nodes::read(graph, &known)?;
                known.nodes.get_or_init(|| nodes)
            }
        };
        Ok(match definition {
            None => nodes.file,
            Some(index) => nodes.definitions.get(index as usize).copied().flatten(),
        })
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
        let (indexes, nodes) = (OnceCell::new(), OnceCell::new());
        Ok(Some(Known { file, graph, indexes, nodes }))
    }

    /// The definitions of a name, each with what names it in its file. One more than `most`
    /// tells that there are too many.
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

impl Known {
    /// The definition that has this name within the file.
    fn index(&self, local: &str) -> Option<u32> {
        let indexes = self.indexes.get_or_init(|| {
            let definitions = self.graph.definitions.iter().zip(0..);
            definitions.map(|(definition, index)| (definition.local_id(), index)).collect()
        });
        indexes.get(local).copied()
    }
}

impl Nodes {
    fn read(graph: &TruthGraph<'_>, known: &Known) -> Result<Self, StoreError> {
        let mut nodes = Self { file: None, definitions: vec![None; known.graph.definitions.len()] };
        for (name, node) in graph.all_owned(known.file as i64).map_err(query_failed)? {
            match known.index(&name).and_then(|index| nodes.definitions.get_mut(index as usize)) {
                Some(place) => *place = Some(node),
                None if name.is_empty() => nodes.file = Some(node),
                None => {}
            }
        }
        Ok(nodes)
    }
}

impl Project for Files<'_> {
    fn file(&self, path: &str) -> Option<Arc<Outline>> {
        self.file_at(path).map(|known| Arc::clone(&known.graph))
    }

    fn files_of_module(&self, module: &str) -> Vec<String> {
        let found = self.paths(
            "SELECT f.path, '' FROM code_module m CROSS JOIN file f ON f.id = m.file \
             WHERE m.name = ?1 AND f.root = ?2 ORDER BY f.path",
            params![module, self.root],
        );
        found.into_iter().map(|(path, _)| path).collect()
    }

    fn definitions_named(&self, name: &str, most: usize) -> Option<Vec<CodeNode>> {
        match self.named.borrow().get(name) {
            Some(Named::All(nodes)) => return (nodes.len() <= most).then(|| nodes.clone()),
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
            let definition = known.index(&local);
            nodes.extend(definition.map(|_| CodeNode { path, definition }));
        }
        nodes.sort();
        self.named.borrow_mut().insert(name.to_owned(), Named::All(nodes.clone()));
        Some(nodes)
    }
}
