//! What a reader caches between queries, until somebody writes: ids of names, counts, and
//! anything requested so often that reading all of it at once is cheaper.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use isolith_graph::{Graph, KeyId, LabelId, Value, position_of};
use isolith_sql::Connection;
use isolith_types::Failure;

use super::names::NameTable;
use super::{TruthGraph, bytes, failure};
use crate::sqlite::During;

/// Approximate limit of the cache.
const MAX_BYTES: usize = 16 << 20;

/// A whole list or column is read once a 1/`LOAD_THRESHOLD` of it was requested.
const LOAD_THRESHOLD: u64 = 8;

/// The cache itself.
#[derive(Debug, Default)]
pub(crate) struct GraphCache {
    /// SQLite's `data_version` for which the cache is valid.
    version: Option<i64>,
    names: NameTable,
    /// Numbers of nodes and edges.
    pub(super) counts: RefCell<HashMap<CountKey, u64>>,
    /// The nodes of a label, or all nodes.
    lists: LoadedOnDemand<Option<LabelId>, Vec<i64>>,
    columns: LoadedOnDemand<KeyId, PropertyColumn>,
    /// Whether a property is unique among the nodes of a label.
    differ: RefCell<HashMap<(Option<LabelId>, KeyId), bool>>,
    bytes: Cell<usize>,
}

/// What a cached count refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CountKey {
    Nodes,
    Edges,
    /// Nodes with this label, or edges of this type.
    Named(u32),
}

/// One property of all nodes.
#[derive(Debug)]
struct PropertyColumn {
    nodes: Arc<Vec<i64>>,
    values: Vec<Value>,
}

/// Values that are read as a whole once they were requested often enough.
#[derive(Debug)]
struct LoadedOnDemand<K, T>(RefCell<HashMap<K, LoadState<T>>>);

#[derive(Debug)]
enum LoadState<T> {
    /// Not loaded; this many parts were requested so far.
    Asked(u64),
    All(Arc<T>),
    TooLarge,
}

impl<K, T> Default for LoadedOnDemand<K, T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<K: Eq + Hash, T> LoadedOnDemand<K, T> {
    /// Returns the whole if it is loaded; calls `read` once `more` further requests make that
    /// worthwhile.
    fn get(
        &self,
        key: K,
        more: u64,
        enough: impl FnOnce() -> Result<u64, Failure>,
        read: impl FnOnce() -> Result<Option<T>, Failure>,
    ) -> Result<Option<Arc<T>>, Failure> {
        let asked = match self.0.borrow().get(&key) {
            Some(LoadState::All(whole)) => return Ok(Some(Arc::clone(whole))),
            Some(LoadState::TooLarge) => return Ok(None),
            Some(LoadState::Asked(before)) => before.saturating_add(more),
            None => more,
        };
        if asked < enough()? {
            self.0.borrow_mut().insert(key, LoadState::Asked(asked));
            return Ok(None);
        }
        let whole = read()?.map(Arc::new);
        let known = whole.clone().map_or(LoadState::TooLarge, LoadState::All);
        self.0.borrow_mut().insert(key, known);
        Ok(whole)
    }
}

impl<'a> TruthGraph<'a> {
    /// Opens the graph for reading, with the cache if it is still valid.
    pub(super) fn reading(db: &'a dyn Connection, version: i64, mut cache: GraphCache) -> Self {
        if cache.version != Some(version) {
            cache = GraphCache { version: Some(version), ..GraphCache::default() };
        }
        let names = std::mem::take(&mut cache.names);
        Self { names, cache: Some(cache), ..Self::new(db) }
    }

    /// Returns the cache for the next query.
    pub(super) fn into_cache(self) -> GraphCache {
        let names = self.names;
        self.cache.map(|cache| GraphCache { names, ..cache }).unwrap_or_default()
    }

    /// Returns a count, from the cache if possible.
    pub(super) fn counted(
        &self,
        what: CountKey,
        read: impl FnOnce() -> Result<u64, Failure>,
    ) -> Result<u64, Failure> {
        let Some(cache) = &self.cache else { return read() };
        if let Some(count) = cache.counts.borrow().get(&what) {
            return Ok(*count);
        }
        let count = read()?;
        cache.counts.borrow_mut().insert(what, count);
        Ok(count)
    }

    /// The nodes of a label, or all, in order; `None` if they are not cached. `asked` is how
    /// many of them the caller needs.
    pub(super) fn cached_nodes(
        &self,
        label: Option<LabelId>,
        asked: u64,
    ) -> Result<Option<Arc<Vec<i64>>>, Failure> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let count = || self.node_count(label);
        cache.lists.get(
            label,
            asked,
            || Ok(count()?.div_ceil(LOAD_THRESHOLD).max(64)),
            || {
                if !cache.takes(count()?, size_of::<i64>()) {
                    return Ok(None);
                }
                let mut nodes = Vec::new();
                self.read_nodes(label, None, i64::MAX, &mut nodes)?;
                Ok(Some(nodes))
            },
        )
    }

    /// A property of a node, if the property's column is cached.
    pub(super) fn cached_property(&self, node: i64, key: KeyId) -> Result<Option<Value>, Failure> {
        let column = self.column(key, 1)?;
        Ok(column.map(|column| column.get(node).cloned().unwrap_or_default()))
    }

    /// Whether all nodes of a label have this property with distinct values; false if unknown.
    /// The caller is about to read all of them.
    pub(super) fn differ(&self, label: Option<LabelId>, key: KeyId) -> Result<bool, Failure> {
        let Some(cache) = &self.cache else { return Ok(false) };
        if let Some(known) = cache.differ.borrow().get(&(label, key)) {
            return Ok(*known);
        }
        let (nodes, column) = (self.cached_nodes(label, u64::MAX)?, self.column(key, u64::MAX)?);
        let differ = match (nodes, column) {
            (Some(nodes), Some(column)) => column.differs(&nodes),
            _ => false,
        };
        cache.differ.borrow_mut().insert((label, key), differ);
        Ok(differ)
    }

    fn column(&self, key: KeyId, asked: u64) -> Result<Option<Arc<PropertyColumn>>, Failure> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let enough = || Ok(self.node_count(None)?.div_ceil(LOAD_THRESHOLD).max(64));
        cache.columns.get(key, asked, enough, || {
            let Some(nodes) = self.cached_nodes(None, u64::MAX)? else { return Ok(None) };
            let before = cache.bytes.get();
            if !cache.takes(nodes.len() as u64, size_of::<Value>()) {
                return Ok(None);
            }
            let values = self.read_column(key, cache)?;
            if values.is_none() {
                cache.bytes.set(before);
            }
            Ok(values.map(|values| PropertyColumn { nodes, values }))
        })
    }

    fn read_column(&self, key: KeyId, cache: &GraphCache) -> Result<Option<Vec<Value>>, Failure> {
        let mut values = Vec::new();
        let mut read = || {
            let mut statement =
                self.db.prepare_cached("SELECT properties FROM node ORDER BY id")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let all = row.get_ref(0)?.as_blob_or_null()?.unwrap_or(&[]);
                let Some(value) = bytes::read_one(all, key.0) else { return Ok(false) };
                if !cache.takes(1, value.size() - size_of::<Value>()) {
                    return Ok(false);
                }
                values.push(value);
            }
            Ok(true)
        };
        // Malformed bytes are reported when that node itself is needed.
        let whole = read().during(self.db, "read properties").map_err(failure)?;
        Ok(whole.then_some(values))
    }
}

impl GraphCache {
    /// Reserves cache space for `count` items of `size` bytes; false if it does not fit.
    fn takes(&self, count: u64, size: usize) -> bool {
        let more = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
        let bytes = self.bytes.get().saturating_add(more);
        if bytes > MAX_BYTES {
            return false;
        }
        self.bytes.set(bytes);
        true
    }
}

impl PropertyColumn {
    fn get(&self, node: i64) -> Option<&Value> {
        self.values.get(position_of(&self.nodes, node)? as usize)
    }

    /// Whether these nodes have pairwise distinct values. False if a value is neither an
    /// integer nor a text.
    fn differs(&self, nodes: &[i64]) -> bool {
        let (mut numbers, mut texts) = (HashSet::new(), HashSet::new());
        nodes.iter().all(|node| match self.get(*node) {
            Some(Value::Integer(number)) => numbers.insert(*number),
            Some(Value::Text(text)) => texts.insert(&**text),
            _ => false,
        })
    }
}
