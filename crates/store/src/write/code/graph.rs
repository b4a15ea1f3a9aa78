//! The code graph: definitions become nodes when a file is stored; references become edges in
//! separate steps, once all files are stored.

use std::collections::{BTreeSet, HashMap};
use std::mem;

use isolith_graph::Value;
use isolith_protocol::{Done, LinkFiles, StoreError};
use isolith_resolve::{LookupKey, changed_keys, module_keys};
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::{Definition, FileGraph, Reference};

use super::super::{Perform, Work};
use super::folders;
use super::link;
use crate::graph::{OwnedKeys, TruthGraph, query_failed};
use crate::read::code::root_exists;
use crate::sqlite::During;

/// Edge type: a folder contains a file, a file a definition.
pub(super) const CONTAINS: &str = "CONTAINS";
/// Edge type: the author who changed a file last.
pub(super) const AUTHORED: &str = "AUTHORED";

/// Why a file's references must be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Again: it already has edges.
    Again = 1,
    /// For the first time.
    First = 2,
}

/// A file of a root.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootFile<'a> {
    pub(super) root: u64,
    pub(super) file: u64,
    pub(super) path: &'a str,
}

impl RootFile<'_> {
    /// The owner of the file's nodes and edges.
    pub(super) fn owner(&self) -> i64 {
        self.file as i64
    }
}

/// Changes to the code graph within one transaction.
pub(super) struct CodeGraph<'a> {
    work: Work<'a>,
    graph: TruthGraph<'a>,
    /// Whether any file was resolved so far.
    has_looked: bool,
    /// Keys that other files may have looked up and whose result has changed, by root.
    changed: HashMap<u64, BTreeSet<LookupKey>>,
}

impl<'a> CodeGraph<'a> {
    pub(super) fn begin(work: Work<'a>) -> Result<Self, StoreError> {
        let has_looked = work
            .db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM code_lookup)")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .during(work.db, "look for files that were resolved")?;
        let graph = TruthGraph::begin(work.db)?;
        Ok(Self { work, graph, has_looked, changed: HashMap::new() })
    }

    /// Replaces the nodes and outline of a file.
    pub(super) fn put(
        &mut self,
        place: RootFile<'_>,
        mut new: FileGraph,
    ) -> Result<(), StoreError> {
        if self.has_looked {
            let old = self.outline(place.file)?;
            self.note_changes(place, old.as_ref(), Some(&new));
        }
        let due = self.put_nodes(place, &new)?;
        let uses = mem::take(&mut new.references);
        self.keep(place, &new, &uses, due)
    }

    /// Removes everything derived from a file.
    pub(super) fn remove(&mut self, place: RootFile<'_>) -> Result<(), StoreError> {
        if self.has_looked
            && let Some(old) = self.outline(place.file)?
        {
            self.note_changes(place, Some(&old), None);
        }
        let folder = folders::of_file(&self.graph, place).map_err(query_failed)?;
        // Every edge of the file starts or ends at one of its nodes.
        for (_, node) in self.graph.all_owned(place.owner()).map_err(query_failed)? {
            self.graph.remove_owned(place.owner(), node).map_err(query_failed)?;
        }
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

    /// Changes the path of a file; its nodes stay.
    pub(super) fn rename(&mut self, old: RootFile<'_>, to: &str) -> Result<(), StoreError> {
        let new = RootFile { path: to, ..old };
        let Some(graph) = self.outline(old.file)? else { return Ok(()) };
        self.note_changes(old, Some(&graph), None);
        self.note_changes(new, None, Some(&graph));
        let folder = folders::of_file(&self.graph, old).map_err(query_failed)?;
        self.graph.remove_edges_of(old.owner(), |_| true).map_err(query_failed)?;
        let due = self.put_nodes(new, &graph)?;
        if let Some(folder) = folder {
            folders::remove_if_empty(&self.graph, folder).map_err(query_failed)?;
        }
        let uses = link::uses(self.work.db, old.file)?;
        self.keep(new, &graph, &uses, due)
    }

    /// Records who changed a file last.
    pub(super) fn authored(&self, place: RootFile<'_>, author: &str) -> Result<(), StoreError> {
        let note = || {
            let Some(file) = self.graph.owned(place.owner(), "")? else { return Ok(()) };
            folders::authored(&self.graph, place, file, author)
        };
        note().map_err(query_failed)
    }

    /// Stores counters, and marks the files that must be resolved again.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let Self { work, graph, changed, .. } = self;
        graph.finish()?;
        let mark = || {
            for (root, keys) in &changed {
                mark_due(work.db, *root, keys)?;
            }
            Ok(())
        };
        mark().during(work.db, "note what has to be resolved again")
    }

    fn note_changes(
        &mut self,
        place: RootFile<'_>,
        old: Option<&FileGraph>,
        new: Option<&FileGraph>,
    ) {
        let keys = changed_keys(place.path, old, new);
        self.changed.entry(place.root).or_default().extend(keys);
    }

    /// The stored definitions and imports of the file.
    fn outline(&self, file: u64) -> Result<Option<FileGraph>, StoreError> {
        link::outline(self.work.db, file)
    }

    /// Replaces the nodes of a file. Returns how it must be resolved.
    fn put_nodes(&self, place: RootFile<'_>, graph: &FileGraph) -> Result<Due, StoreError> {
        let put = || {
            let owner = place.owner();
            let mut old = self.graph.owned_rows(owner)?;
            let is_new = old.is_empty();
            let mut changed = Vec::with_capacity(graph.definitions.len() + 1);
            let mut put = |name: String, label: &str, keys: &OwnedKeys<'_>, values: &[Value]| {
                let there = old.remove(&name);
                self.graph.prepare_owned(there, (owner, name), label, keys, values, &mut changed)
            };
            let keys = self.graph.owned_keys(owner, &OF_FILE)?;
            let file = put(String::new(), "File", &keys, &of_file(place, graph))?;
            let keys = self.graph.owned_keys(owner, &OF_DEFINITION)?;
            let (path, language) = (Value::text(place.path), Value::text(&*graph.language));
            let mut nodes = Vec::with_capacity(graph.definitions.len());
            for it in &graph.definitions {
                let values = of_definition(it, place, path.clone(), language.clone());
                nodes.push(put(it.local_id(), it.kind.label(), &keys, &values)?);
            }
            self.graph.write_owned(&changed)?;
            if !is_new {
                let mut gone = old.into_values();
                gone.try_for_each(|gone| self.graph.remove_owned(owner, gone.node))?;
                self.graph.remove_edges_of(owner, |kind| kind == CONTAINS)?;
            }
            folders::contain(&self.graph, place, file)?;
            for (definition, node) in graph.definitions.iter().zip(&nodes) {
                let parent = definition.parent.and_then(|parent| nodes.get(parent as usize));
                let ends = (*parent.unwrap_or(&file), *node);
                self.graph.add_owned_edge(owner, CONTAINS, ends, &[])?;
            }
            Ok(if is_new { Due::First } else { Due::Again })
        };
        put().map_err(query_failed)
    }

    fn keep(
        &self,
        place: RootFile<'_>,
        outline: &FileGraph,
        uses: &Vec<Reference>,
        due: Due,
    ) -> Result<(), StoreError> {
        let encoded = |error: postcard::Error| {
            StoreError::Invalid(format!("cannot store the graph of {:?}: {error}", place.path))
        };
        let outline_bytes = postcard::to_stdvec(outline).map_err(encoded)?;
        let uses = postcard::to_stdvec(uses).map_err(encoded)?;
        self.execute("DELETE FROM code_module WHERE file = ?1", place.file)?;
        let keep = || {
            let db = self.work.db;
            db.prepare_cached(
                "INSERT INTO code_graph (file, outline, uses, due) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (file) DO UPDATE SET outline = ?2, uses = ?3, due = ?4",
            )?
            .execute(params![place.file, outline_bytes, uses, due as u8])?;
            let mut module = db
                .prepare_cached("INSERT OR IGNORE INTO code_module (name, file) VALUES (?1, ?2)")?;
            for name in module_keys(place.path, outline) {
                module.execute(params![name, place.file])?;
            }
            Ok(())
        };
        keep().during(self.work.db, "store the graph of a file")
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

impl Perform for LinkFiles {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let root = self.root;
        if !root_exists(work.db, root)? {
            return Err(StoreError::NoRoot { root });
        }
        link::link(work, root)
    }
}

/// Marks the files of a root that looked up any of these keys.
fn mark_due(
    db: &dyn Connection,
    root: u64,
    changed: &BTreeSet<LookupKey>,
) -> isolith_sql::Result<()> {
    let mut looked = db.prepare_cached("SELECT file, keys FROM code_lookup")?;
    let mut mark = db.prepare_cached(
        "UPDATE code_graph SET due = 1 WHERE file = ?1 AND due = 0 \
         AND EXISTS (SELECT 1 FROM file WHERE id = ?1 AND root = ?2)",
    )?;
    let mut rows = looked.query([])?;
    while let Some(row) = rows.next()? {
        if link::keys(row.get_ref(1)?.as_blob()?).any(|key| changed.contains(&key)) {
            mark.execute(params![row.get::<_, u64>(0)?, root])?;
        }
    }
    Ok(())
}

/// The root and path of a file.
pub(super) fn place_of(work: Work<'_>, file: u64) -> Result<Option<(u64, String)>, StoreError> {
    work.db
        .prepare_cached("SELECT root, path FROM file WHERE id = ?1")
        .and_then(|mut statement| {
            statement.query_row([file], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .during(work.db, "look for a file")
}

/// Property names of a file's node.
const OF_FILE: [&str; 4] = ["id", "name", "path", "language"];

fn of_file(place: RootFile<'_>, graph: &FileGraph) -> [Value; 4] {
    let name = place.path.rsplit('/').next().unwrap_or(place.path);
    [place.path, name, place.path, &graph.language].map(Value::text)
}

/// Property names of a definition's node.
const OF_DEFINITION: [&str; 12] = [
    "id",
    "name",
    "qualified_name",
    "path",
    "line",
    "start_line",
    "end_line",
    "language",
    "kind",
    "signature",
    "exported",
    "test",
];

fn of_definition(
    definition: &Definition,
    place: RootFile<'_>,
    path: Value,
    language: Value,
) -> [Value; 12] {
    let text = |text: &str| Value::text(text);
    [
        Value::text(definition.id(place.path)),
        text(&definition.name),
        text(&definition.qualified),
        path,
        Value::Integer(i64::from(definition.line)),
        Value::Integer(i64::from(definition.start_line)),
        Value::Integer(i64::from(definition.end_line)),
        language,
        text(definition.kind.word()),
        definition.signature.as_deref().map_or(Value::Null, text),
        Value::Boolean(definition.exported),
        Value::Boolean(definition.test),
    ]
}
