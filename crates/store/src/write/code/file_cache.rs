//! Provides the files of a root to the resolver, reading each only once.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use isolith_protocol::StoreError;
use isolith_resolve::{Outline, Project};
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::{CodeNode, Definition, FastMap, FastSet, FileGraph};

use super::super::Work;
use super::link::decoded;
use crate::graph::{TruthGraph, query_failed};
use crate::sqlite::During;

/// Limit of what is kept for the next slice, in bytes.
const MAX_CACHED_BYTES: usize = 48 << 20;

/// An estimate of the memory that an outline takes, in the size of its stored form.
const OUTLINE_FACTOR: usize = 4;

/// An estimate of the memory that an entry of a map takes besides its texts.
const ENTRY_BYTES: usize = 96;

/// With this many due files, it pays off to load all paths.
const PRELOAD_PATHS_AFTER: usize = 50;

/// The files of a root that one slice has read, cached for the next. Valid as long as nothing but
/// linking is written.
#[derive(Debug, Default)]
pub(crate) struct FileCache(RefCell<Option<CachedFiles>>);

impl FileCache {
    /// Clears the cache: something else was written, or linking failed.
    pub(crate) fn forget(&self) {
        if self.0.take().is_some() {
            isolate::give_back_memory();
        }
    }
}

/// What was read, for which root and version of the store.
#[derive(Debug, Default)]
struct CachedFiles {
    root: u64,
    version: i64,
    /// About how much memory the maps take, without `paths`.
    bytes: usize,
    /// All paths, if many will be requested: most of those do not exist.
    paths: Option<FastSet<String>>,
    file_cache: FastMap<String, Option<Arc<CachedFile>>>,
    named: FastMap<String, NamedDefinitions>,
    modules: FastMap<String, Arc<[String]>>,
}

/// A file's id, and its definitions and imports.
#[derive(Debug)]
struct CachedFile {
    file: u64,
    graph: Arc<Outline>,
    /// The nodes of the file and of its definitions, in order.
    nodes: OnceLock<Vec<Option<i64>>>,
}

/// The definitions found for a name.
#[derive(Debug)]
enum NamedDefinitions {
    /// All of them.
    All(Arc<[CodeNode]>),
    /// More than this many.
    MoreThan(usize),
}

/// The files of a root. The resolver's trait cannot return errors, so the first one is stored;
/// see [`Self::check`].
pub(super) struct ResolverFiles<'a> {
    db: &'a dyn Connection,
    root: u64,
    read: RefCell<CachedFiles>,
    trouble: RefCell<Option<StoreError>>,
}

impl<'a> ResolverFiles<'a> {
    /// Uses the cache, if it is still valid.
    pub(super) fn new(work: Work<'a>, root: u64, due: usize) -> Result<Self, StoreError> {
        let db = work.db;
        // Changes when another process has written.
        let version: i64 = db
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .during(db, "see whether the store has changed")?;
        let cached = work.file_cache.0.take();
        let cached = cached.filter(|cached| (cached.root, cached.version) == (root, version));
        let read =
            cached.unwrap_or_else(|| CachedFiles { root, version, ..CachedFiles::default() });
        let files = Self { db, root, read: RefCell::new(read), trouble: RefCell::default() };
        if due >= PRELOAD_PATHS_AFTER && files.read.borrow().paths.is_none() {
            let sql = "SELECT path, '' FROM file WHERE root = ?1";
            let paths = files.paths(sql, [root]).into_iter().map(|(path, _)| path).collect();
            files.check()?;
            files.read.borrow_mut().paths = Some(paths);
        }
        Ok(files)
    }

    /// Caches what was read for the next slice; only the paths, if the rest is too large.
    pub(super) fn keep(self, work: Work<'_>) {
        let mut read = self.read.into_inner();
        if read.bytes > MAX_CACHED_BYTES {
            let CachedFiles { root, version, paths, .. } = read;
            read = CachedFiles { root, version, paths, ..CachedFiles::default() };
            isolate::give_back_memory();
        }
        work.file_cache.0.replace(Some(read));
    }

    /// The definitions and imports of a file.
    pub(super) fn outline(&self, path: &str) -> Result<Option<Arc<Outline>>, StoreError> {
        let found = self.file_at(path);
        self.check()?;
        Ok(found.map(|file_cache| Arc::clone(&file_cache.graph)))
    }

    /// The node of a file or of a definition in it.
    pub(super) fn node(
        &self,
        graph: &TruthGraph<'_>,
        path: &str,
        definition: Option<u32>,
    ) -> Result<Option<i64>, StoreError> {
        let Some(file_cache) = self.file_at(path) else { return self.check().map(|()| None) };
        let nodes = match file_cache.nodes.get() {
            Some(nodes) => nodes,
            None => {
                let nodes = nodes_of(graph, &file_cache)?;
                file_cache.nodes.get_or_init(|| nodes)
            }
        };
        let at = definition.map_or(0, |index| index as usize + 1);
        Ok(nodes.get(at).copied().flatten())
    }

    /// Returns the first error since the last call.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.trouble.take().map_or(Ok(()), Err)
    }

    fn file_at(&self, path: &str) -> Option<Arc<CachedFile>> {
        if let Some(file_cache) = self.read.borrow().file_cache.get(path) {
            return file_cache.clone();
        }
        if self.read.borrow().paths.as_ref().is_some_and(|paths| !paths.contains(path)) {
            return None;
        }
        let found = self.noting(self.read_file(path)).flatten().map(Arc::new);
        let mut read = self.read.borrow_mut();
        read.bytes += path.len() + ENTRY_BYTES;
        read.file_cache.insert(path.to_owned(), found.clone());
        found
    }

    fn read_file(&self, path: &str) -> Result<Option<CachedFile>, StoreError> {
        let found: Option<(u64, Vec<u8>)> = self
            .db
            .prepare_cached(
                "SELECT f.id, g.outline FROM file f JOIN code_graph g ON g.file = f.id \
                 WHERE f.root = ?1 AND f.path = ?2",
            )
            .and_then(|mut statement| {
                let both = |row: &isolith_sql::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                statement.query_row(params![self.root, path], both).optional()
            })
            .during(self.db, "read the graph of a file")?;
        let Some((file, bytes)) = found else { return Ok(None) };
        self.read.borrow_mut().bytes += bytes.len() * OUTLINE_FACTOR;
        let graph = Arc::new(decoded::<FileGraph>(self.db, &bytes)?.into());
        Ok(Some(CachedFile { file, graph, nodes: OnceLock::new() }))
    }

    /// The definitions with a name, each as its file and its key there. Returns one more than
    /// `most` if there are too many.
    fn named(&self, name: &str, most: usize) -> Vec<(String, String)> {
        // Excludes nodes of files, which have names, too: definitions have a non-empty key.
        self.paths(
            "SELECT f.path, n.name FROM graph_name k CROSS JOIN node_value v ON v.key = k.id \
             CROSS JOIN node n ON n.id = v.node AND n.owner > 0 AND n.name <> '' \
             CROSS JOIN file f ON f.id = n.owner AND f.root = ?2 \
             WHERE k.kind = 2 AND k.name = 'name' AND v.value = ?1 LIMIT ?3 + 1",
            params![name, self.root, most as i64],
        )
    }

    /// Caches the definitions with a name, which take this much memory.
    fn remember(&self, name: &str, found: NamedDefinitions, bytes: usize) {
        let mut read = self.read.borrow_mut();
        read.bytes += name.len() + bytes + ENTRY_BYTES;
        read.named.insert(name.to_owned(), found);
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

    fn paths(&self, sql: &str, parameters: impl isolith_sql::Params) -> Vec<(String, String)> {
        let read = || {
            self.db
                .prepare_cached(sql)?
                .query_map(parameters, |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        self.noting(read().during(self.db, "look up names")).unwrap_or_default()
    }
}

/// The nodes of a file and of its definitions.
fn nodes_of(
    graph: &TruthGraph<'_>,
    file_cache: &CachedFile,
) -> Result<Vec<Option<i64>>, StoreError> {
    let nodes = graph.all_owned(file_cache.file as i64).map_err(query_failed)?;
    let nodes: FastMap<String, i64> = nodes.into_iter().collect();
    let definitions = file_cache.graph.definitions.iter().map(Definition::local_id);
    let names = std::iter::once(String::new()).chain(definitions);
    Ok(names.map(|name| nodes.get(&name).copied()).collect())
}

impl Project for ResolverFiles<'_> {
    fn file(&self, path: &str) -> Option<Arc<Outline>> {
        self.file_at(path).map(|file_cache| Arc::clone(&file_cache.graph))
    }

    fn files_of_module(&self, module: &str) -> Arc<[String]> {
        if let Some(file_cache) = self.read.borrow().modules.get(module) {
            return Arc::clone(file_cache);
        }
        let found = self.paths(
            "SELECT f.path, '' FROM code_module m CROSS JOIN file f ON f.id = m.file \
             WHERE m.name = ?1 AND f.root = ?2 ORDER BY f.path",
            params![module, self.root],
        );
        let files: Arc<[String]> = found.into_iter().map(|(path, _)| path).collect();
        let mut read = self.read.borrow_mut();
        let texts: usize = files.iter().map(|path| path.len() + size_of::<String>()).sum();
        read.bytes += module.len() + texts + ENTRY_BYTES;
        read.modules.insert(module.to_owned(), Arc::clone(&files));
        files
    }

    fn definitions_named(&self, name: &str, most: usize) -> Option<Arc<[CodeNode]>> {
        match self.read.borrow().named.get(name) {
            Some(NamedDefinitions::All(nodes)) => {
                return (nodes.len() <= most).then(|| Arc::clone(nodes));
            }
            Some(NamedDefinitions::MoreThan(many)) if most <= *many => return None,
            _ => {}
        }
        let found = self.named(name, most);
        if found.len() > most {
            self.remember(name, NamedDefinitions::MoreThan(most), 0);
            return None;
        }
        let mut nodes = Vec::new();
        for (path, local) in found {
            let Some(file_cache) = self.file_at(&path) else { continue };
            let is_meant =
                |index: &u32| file_cache.graph.definitions[*index as usize].local_id() == local;
            let definition = file_cache.graph.named(name).find(is_meant);
            nodes.extend(definition.map(|_| CodeNode { path, definition }));
        }
        nodes.sort();
        let nodes: Arc<[CodeNode]> = nodes.into();
        let texts = nodes.iter().map(|node| node.path.len() + size_of::<CodeNode>()).sum();
        self.remember(name, NamedDefinitions::All(Arc::clone(&nodes)), texts);
        Some(nodes)
    }
}
