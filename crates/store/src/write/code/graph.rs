//! The graph of code: what a file defines becomes nodes when it is stored, what its names
//! mean becomes edges in steps of their own, when all files are there.

use std::collections::{BTreeSet, HashMap};

use isolith_graph::Value;
use isolith_resolve::{Key, changed_keys, module_keys};
use isolith_types::{Definition, FileGraph, Reference};
use rusqlite::{OptionalExtension, params};

use super::super::Work;
use super::super::request::Outcome;
use super::folders;
use super::link;
use crate::error::StoreError;
use crate::graph::{Property, TruthGraph, query_failed};
use crate::read::code::root_exists;
use crate::sqlite::During;

/// Edges that do not come of what names mean.
const STRUCTURE: [&str; 2] = ["CONTAINS", "AUTHORED"];

/// A file of a root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) root: u64,
    pub(super) file: u64,
    pub(super) path: &'a str,
}

impl Place<'_> {
    /// Whose its nodes and edges are.
    pub(super) fn owner(&self) -> i64 {
        self.file as i64
    }
}

/// Changes to the graph of code in one transaction.
pub(super) struct CodeGraph<'a> {
    work: Work<'a>,
    graph: TruthGraph<'a>,
    /// What other files may have looked up and would now find otherwise, by root.
    changed: HashMap<u64, BTreeSet<Key>>,
}

impl<'a> CodeGraph<'a> {
    pub(super) fn begin(work: Work<'a>) -> Result<Self, StoreError> {
        Ok(Self { work, graph: TruthGraph::begin(work.db)?, changed: HashMap::new() })
    }

    /// Puts what a file says in the place of what it said before.
    pub(super) fn put(&mut self, place: Place<'_>, new: &FileGraph) -> Result<(), StoreError> {
        let old = self.outline(place.file)?;
        let keys = changed_keys(place.path, old.as_ref(), Some(new));
        self.changed.entry(place.root).or_default().extend(keys);
        self.put_nodes(place, new)?;
        let mut outline = new.clone();
        let uses = std::mem::take(&mut outline.references);
        self.keep(place, &outline, &uses)
    }

    /// Takes what a file said away.
    pub(super) fn remove(&mut self, place: Place<'_>) -> Result<(), StoreError> {
        if let Some(old) = self.outline(place.file)? {
            let keys = changed_keys(place.path, Some(&old), None);
            self.changed.entry(place.root).or_default().extend(keys);
        }
        let folder = folders::of_file(&self.graph, place).map_err(query_failed)?;
        for (_, node) in self.graph.all_owned(place.owner()).map_err(query_failed)? {
            self.graph.remove_owned(place.owner(), node).map_err(query_failed)?;
        }
        self.graph.remove_owned_edges(place.owner(), &[]).map_err(query_failed)?;
        if let Some(folder) = folder {
            folders::remove_if_empty(&self.graph, folder).map_err(query_failed)?;
        }
        for sql in [
            "DELETE FROM code_graph WHERE file = ?1",
            "DELETE FROM code_module WHERE file = ?1",
            "DELETE FROM code_lookup WHERE file = ?1",
        ] {
            self.execute(sql, place.file)?;
        }
        Ok(())
    }

    /// Gives a file another path: its nodes stay.
    pub(super) fn rename(&mut self, old: Place<'_>, to: &str) -> Result<(), StoreError> {
        let new = Place { path: to, ..old };
        let Some(mut graph) = self.outline(old.file)? else { return Ok(()) };
        let changed = self.changed.entry(old.root).or_default();
        changed.extend(changed_keys(old.path, Some(&graph), None));
        changed.extend(changed_keys(to, None, Some(&graph)));
        let folder = folders::of_file(&self.graph, old).map_err(query_failed)?;
        self.graph.remove_owned_edges(old.owner(), &[]).map_err(query_failed)?;
        self.put_nodes(new, &graph)?;
        if let Some(folder) = folder {
            folders::remove_if_empty(&self.graph, folder).map_err(query_failed)?;
        }
        graph.references = link::uses(self.work.db, old.file)?;
        let uses = std::mem::take(&mut graph.references);
        self.keep(new, &graph, &uses)
    }

    /// Notes who changed a file last.
    pub(super) fn authored(&self, place: Place<'_>, author: &str) -> Result<(), StoreError> {
        let note = || {
            let Some(file) = self.graph.owned(place.owner(), "")? else { return Ok(()) };
            folders::authored(&self.graph, place, file, author)
        };
        note().map_err(query_failed)
    }

    /// Writes down what was counted, and which files have to be looked at again.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let Self { work, graph, changed } = self;
        graph.finish()?;
        let mark = || {
            let mut mark = work.db.prepare_cached(
                "UPDATE code_graph SET due = 1 WHERE due = 0 AND file IN \
                 (SELECT l.file FROM code_lookup l CROSS JOIN file f ON f.id = l.file \
                  WHERE l.key = ?1 AND f.root = ?2)",
            )?;
            for (root, keys) in &changed {
                for key in keys {
                    mark.execute(params![key.as_str(), root])?;
                }
            }
            Ok(())
        };
        mark().during(work.db, "note what has to be resolved again")
    }

    /// What the file defined and imported so far.
    fn outline(&self, file: u64) -> Result<Option<FileGraph>, StoreError> {
        link::outline(self.work.db, file)
    }

    fn put_nodes(&self, place: Place<'_>, graph: &FileGraph) -> Result<(), StoreError> {
        let put = || {
            let owner = place.owner();
            let mut gone: HashMap<String, i64> = self.graph.all_owned(owner)?.into_iter().collect();
            let properties = of_file(place, graph);
            let file = self.graph.put_owned(owner, "", "File", &properties)?;
            let known = gone.remove("").is_some();
            let mut nodes = Vec::with_capacity(graph.definitions.len());
            for definition in &graph.definitions {
                let name = definition.local_id();
                let properties = of_definition(place, graph, definition);
                let label = definition.kind.label();
                nodes.push(self.graph.put_owned(owner, &name, label, &properties)?);
                gone.remove(&name);
            }
            for node in gone.into_values() {
                self.graph.remove_owned(owner, node)?;
            }
            if known {
                self.graph.remove_edges_of(owner, "CONTAINS")?;
            }
            folders::contain(&self.graph, place, file)?;
            for (definition, node) in graph.definitions.iter().zip(&nodes) {
                let parent = definition.parent.and_then(|parent| nodes.get(parent as usize));
                let ends = (*parent.unwrap_or(&file), *node);
                self.graph.add_owned_edge(owner, "CONTAINS", ends, &[])?;
            }
            Ok(())
        };
        put().map_err(query_failed)
    }

    fn keep(
        &self,
        place: Place<'_>,
        outline: &FileGraph,
        uses: &Vec<Reference>,
    ) -> Result<(), StoreError> {
        let encoded = |error: postcard::Error| {
            StoreError::Invalid(format!("the graph of {:?} cannot be kept: {error}", place.path))
        };
        let outline_bytes = postcard::to_stdvec(outline).map_err(encoded)?;
        let uses = postcard::to_stdvec(uses).map_err(encoded)?;
        self.execute("DELETE FROM code_module WHERE file = ?1", place.file)?;
        let keep = || {
            let db = self.work.db;
            db.prepare_cached(
                "INSERT INTO code_graph (file, outline, uses, due) VALUES (?1, ?2, ?3, 1) \
                 ON CONFLICT (file) DO UPDATE SET outline = ?2, uses = ?3, due = 1",
            )?
            .execute(params![place.file, outline_bytes, uses])?;
            let mut module = db
                .prepare_cached("INSERT OR IGNORE INTO code_module (name, file) VALUES (?1, ?2)")?;
            for name in module_keys(place.path, outline) {
                module.execute(params![name, place.file])?;
            }
            Ok(())
        };
        keep().during(self.work.db, "keep the graph of a file")
    }

    fn execute(&self, sql: &str, file: u64) -> Result<(), StoreError> {
        self.work
            .db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([file]))
            .during(self.work.db, "change the graph of code")
            .map(|_| ())
    }
}

/// Resolves the names of files that have to be looked at, a slice at a time.
pub(in crate::write) fn link_files(work: Work<'_>, root: u64) -> Result<Outcome, StoreError> {
    if !root_exists(work.db, root)? {
        return Err(StoreError::NoRoot { root });
    }
    link::link(work, root, &STRUCTURE)
}

/// The number of a file and its root, with its path.
pub(super) fn place_of(work: Work<'_>, file: u64) -> Result<Option<(u64, String)>, StoreError> {
    work.db
        .prepare_cached("SELECT root, path FROM file WHERE id = ?1")
        .and_then(|mut statement| {
            statement.query_row([file], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .during(work.db, "look for a file")
}

fn of_file<'a>(place: Place<'a>, graph: &FileGraph) -> [Property<'a>; 4] {
    let name = place.path.rsplit('/').next().unwrap_or(place.path);
    [
        ("id", Value::text(place.path)),
        ("name", Value::text(name)),
        ("path", Value::text(place.path)),
        ("language", Value::text(graph.language.as_str())),
    ]
}

fn of_definition<'a>(
    place: Place<'a>,
    graph: &FileGraph,
    definition: &Definition,
) -> [Property<'a>; 12] {
    let text = |text: &str| Value::text(text);
    [
        ("id", Value::text(definition.id(place.path))),
        ("name", text(&definition.name)),
        ("qualified_name", text(&definition.qualified)),
        ("path", text(place.path)),
        ("line", Value::Integer(i64::from(definition.line))),
        ("start_line", Value::Integer(i64::from(definition.start_line))),
        ("end_line", Value::Integer(i64::from(definition.end_line))),
        ("language", text(&graph.language)),
        ("kind", text(definition.kind.word())),
        ("signature", definition.signature.as_deref().map_or(Value::Null, text)),
        ("exported", Value::Boolean(definition.exported)),
        ("test", Value::Boolean(definition.test)),
    ]
}
