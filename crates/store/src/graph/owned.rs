//! Nodes and edges with an owner: derived from files and facts, and read-only for queries.

use std::collections::HashMap;
use std::path::Path;

use isolith_graph::{Direction, Graph, Hop, TypeId, Value};
use isolith_sql::ValueRef;
use isolith_sql::{OptionalExtension, params};
use isolith_types::Failure;

use super::names::NameKind;
use super::{TruthGraph, batch, bytes, failure};
use crate::sqlite::During;

/// Owner of what belongs to no single file: folders, projects, people.
pub(crate) const SHARED: i64 = 0;

/// Whether an owner is an entity or a fact: their ids are negative.
pub(super) fn is_of_facts(owner: i64) -> bool {
    owner < 0
}

/// Properties by which nodes of code are indexed; `path` and `id` are found through the file
/// tables. Nodes of facts, like users' own, are indexed by all their properties.
pub(super) const CODE_INDEXED: [&str; 2] = ["name", "qualified_name"];

/// Names that must be indexed for users' nodes, too, whoever uses them first.
const ALWAYS_INDEXED: [&str; 4] = ["name", "qualified_name", "path", "id"];

pub(crate) type Property<'a> = (&'a str, Value);

/// The stored row of a node.
#[derive(Debug)]
pub(crate) struct OwnedRow {
    pub(crate) node: i64,
    labels: Vec<u8>,
    list: Vec<u8>,
}

/// Property names with their ids.
pub(crate) struct OwnedKeys<'k> {
    names: &'k [&'k str],
    numbers: Vec<u32>,
}

/// A node whose row is still to be written.
#[derive(Debug)]
pub(crate) struct NewOwned {
    node: i64,
    labels: Vec<u8>,
    list: Vec<u8>,
    owner: i64,
    name: String,
}

impl TruthGraph<'_> {
    /// The node with this owner and name, if it exists.
    pub(crate) fn owned(&self, owner: i64, name: &str) -> Result<Option<i64>, Failure> {
        super::one(
            self.db,
            "SELECT id FROM node WHERE owner = ?1 AND name = ?2",
            params![owner, name],
        )
    }

    /// All nodes of an owner, with their names.
    pub(crate) fn all_owned(&self, owner: i64) -> Result<Vec<(String, i64)>, Failure> {
        let read = || {
            self.db
                .prepare_cached("SELECT name, id FROM node WHERE owner = ?1")?
                .query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(self.db, "read nodes").map_err(failure)
    }

    /// The stored rows of an owner's nodes, by name.
    pub(crate) fn owned_rows(&self, owner: i64) -> Result<HashMap<String, OwnedRow>, Failure> {
        let read = || {
            self.db
                .prepare_cached("SELECT name, id, labels, properties FROM node WHERE owner = ?1")?
                .query_map([owner], |row| {
                    let node = row.get(1)?;
                    Ok((row.get(0)?, OwnedRow { node, labels: row.get(2)?, list: row.get(3)? }))
                })?
                .collect::<Result<HashMap<_, _>, _>>()
        };
        read().during(self.db, "read nodes").map_err(failure)
    }

    /// Creates a node of an owner, or updates its label and properties. An existing node keeps
    /// its id, and so the edges that users drew to it.
    pub(crate) fn put_owned(
        &self,
        owner: i64,
        name: &str,
        label: &str,
        properties: &[Property<'_>],
    ) -> Result<i64, Failure> {
        let there = self.owned_row(owner, name)?;
        let given = properties.iter().filter(|(_, value)| !value.is_null());
        let (names, values): (Vec<&str>, Vec<Value>) = given.cloned().unzip();
        let keys = self.owned_keys(owner, &names)?;
        let mut changed = Vec::new();
        let node = self.prepare_owned(
            there,
            (owner, name.to_owned()),
            label,
            &keys,
            &values,
            &mut changed,
        )?;
        self.write_owned(&changed)?;
        Ok(node)
    }

    /// Resolves property names for nodes of an owner.
    pub(crate) fn owned_keys<'k>(
        &self,
        owner: i64,
        names: &'k [&'k str],
    ) -> Result<OwnedKeys<'k>, Failure> {
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            let number = self.owned_key(owner, name)?;
            if !is_of_facts(owner) && !ALWAYS_INDEXED.contains(name) {
                self.stop_indexing(number)?;
            }
            numbers.push(number);
        }
        Ok(OwnedKeys { names, numbers })
    }

    /// Creates or updates a node, except for its row, which the caller writes later.
    pub(crate) fn prepare_owned(
        &self,
        there: Option<OwnedRow>,
        (owner, name): (i64, String),
        label: &str,
        keys: &OwnedKeys<'_>,
        values: &[Value],
        changed: &mut Vec<NewOwned>,
    ) -> Result<i64, Failure> {
        let keyed = keys.numbers.iter().copied().zip(values);
        let list = bytes::write(keyed.filter(|(_, value)| !value.is_null()));
        let label = self.number(NameKind::Label, label)?;
        let labels = bytes::write_labels(&[label]);
        let node = match there {
            None => self.next_nodes(1),
            Some(there) if there.labels == labels && there.list == list => return Ok(there.node),
            Some(there) => {
                self.forget_owned(owner, there.node)?;
                there.node
            }
        };
        self.gained_nodes(1);
        self.index_label(node, label)?;
        for ((name, key), value) in keys.names.iter().zip(&keys.numbers).zip(values) {
            let finds = is_of_facts(owner) || CODE_INDEXED.contains(name);
            if finds && !value.is_null() {
                self.show(node, *key, value)?;
            }
        }
        changed.push(NewOwned { node, labels, list, owner, name });
        Ok(node)
    }

    /// Writes rows of nodes. Does nothing if there are none, so that nothing counts as changed.
    pub(crate) fn write_owned(&self, nodes: &[NewOwned]) -> Result<(), Failure> {
        if nodes.is_empty() {
            return Ok(());
        }
        self.changing();
        let into = "INTO node (id, labels, properties, owner, name)";
        batch::insert(self.db, into, nodes, |it| {
            let (node, owner) = (ValueRef::Integer(it.node), ValueRef::Integer(it.owner));
            let (labels, list) = (ValueRef::Blob(&it.labels), ValueRef::Blob(&it.list));
            [node, labels, list, owner, ValueRef::Text(it.name.as_bytes())]
        })
        .during(self.db, "write nodes")
        .map_err(failure)
    }

    /// Removes a node with all its edges, including users' own, which would dangle.
    pub(crate) fn remove_owned(&self, owner: i64, node: i64) -> Result<(), Failure> {
        let mut hops: Vec<Hop> = Vec::new();
        self.edges(node, Direction::Both, &[], &mut hops)?;
        for hop in hops {
            self.drop_edge(hop.edge)?;
        }
        self.forget_owned(owner, node)
    }

    pub(crate) fn add_owned_edge(
        &self,
        owner: i64,
        kind: &str,
        ends: (i64, i64),
        properties: &[Property<'_>],
    ) -> Result<(), Failure> {
        let list = self.edge_list(owner, properties)?;
        let kind = self.number(NameKind::Type, kind)?;
        self.insert_edge(kind, ends, list, Some(owner)).map(|_| ())
    }

    /// Creates an edge of an owner, or updates its properties: an owner has at most one edge of
    /// a type between two nodes.
    pub(crate) fn put_owned_edge(
        &self,
        owner: i64,
        kind: &str,
        ends: (i64, i64),
        properties: &[Property<'_>],
    ) -> Result<(), Failure> {
        let number = self.number(NameKind::Type, kind)?;
        let Some((edge, old)) = self.owned_edge(owner, number, ends)? else {
            return self.add_owned_edge(owner, kind, ends, properties);
        };
        let list = self.edge_list(owner, properties)?;
        if list != old {
            let list = (!list.is_empty()).then_some(list);
            self.execute("UPDATE edge SET properties = ?2 WHERE id = ?1", params![edge, list])?;
        }
        Ok(())
    }

    /// Removes a file's edges of these types. Each starts at a node of the file or ends at the
    /// file's own node.
    pub(crate) fn remove_edges_of(
        &self,
        owner: i64,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        self.flush_edges()?;
        let read = || {
            self.db
                .prepare_cached(
                    "SELECT e.id, e.type FROM node n CROSS JOIN edge_out o ON o.src = n.id \
                     CROSS JOIN edge e ON e.id = o.edge WHERE n.owner = ?1 AND e.owner = ?1 \
                     UNION SELECT e.id, e.type FROM node n CROSS JOIN edge_in i ON i.dst = n.id \
                     CROSS JOIN edge e ON e.id = i.edge \
                     WHERE n.owner = ?1 AND n.name = '' AND e.owner = ?1",
                )?
                .query_map([owner], |row| Ok((row.get(0)?, TypeId(row.get(1)?))))?
                .collect::<Result<Vec<(i64, TypeId)>, _>>()
        };
        for (edge, kind) in read().during(self.db, "read edges").map_err(failure)? {
            if is_meant(&self.type_name(kind)?) {
                self.drop_edge(edge)?;
            }
        }
        Ok(())
    }

    /// The display name of a root's folder; `.` for the one that contains the store.
    pub(crate) fn project_name(&self, root: u64) -> Result<String, Failure> {
        let sql = "SELECT path FROM root WHERE id = ?1";
        let path: String = super::one(self.db, sql, [root])?.unwrap_or_default();
        let around_store = Path::new(self.db.path().unwrap_or_default()).ancestors().nth(2);
        let named = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
        Ok(named(Path::new(&path)).or_else(|| named(around_store?)).unwrap_or(path))
    }

    fn owned_key(&self, owner: i64, key: &str) -> Result<u32, Failure> {
        let indexed = is_of_facts(owner) || ALWAYS_INDEXED.contains(&key);
        self.names.find_or_make(self.db, NameKind::Key, key, indexed).map_err(failure)
    }

    /// Stops indexing a property that users' nodes used first: a lookup must find all nodes or
    /// none.
    fn stop_indexing(&self, key: u32) -> Result<(), Failure> {
        if !self.names.is_indexed(self.db, key).map_err(failure)? {
            return Ok(());
        }
        self.execute("UPDATE graph_name SET indexed = 0 WHERE id = ?1", [key])?;
        self.flush_nodes()?;
        self.execute("DELETE FROM node_value WHERE key = ?1", [key])?;
        self.names.not_indexed(key);
        Ok(())
    }

    /// Encodes the properties of an edge.
    fn edge_list(&self, owner: i64, properties: &[Property<'_>]) -> Result<Vec<u8>, Failure> {
        let mut keyed = Vec::with_capacity(properties.len());
        for (key, value) in properties.iter().filter(|(_, value)| !value.is_null()) {
            keyed.push((self.owned_key(owner, key)?, value));
        }
        Ok(bytes::write(keyed.into_iter()))
    }

    /// The edge of an owner between two nodes, with its encoded properties.
    fn owned_edge(
        &self,
        owner: i64,
        kind: u32,
        (start, end): (i64, i64),
    ) -> Result<Option<(i64, Vec<u8>)>, Failure> {
        self.flush_edges()?;
        self.db
            .prepare_cached(
                "SELECT e.id, e.properties FROM edge_out o CROSS JOIN edge e ON e.id = o.edge \
                 WHERE o.src = ?1 AND o.type = ?2 AND o.dst = ?3 AND e.owner = ?4",
            )
            .and_then(|mut statement| {
                let edge = statement.query_row(params![start, kind, end, owner], |row| {
                    let list: Option<Vec<u8>> = row.get(1)?;
                    Ok((row.get(0)?, list.unwrap_or_default()))
                });
                edge.optional()
            })
            .during(self.db, "read an edge")
            .map_err(failure)
    }

    fn owned_row(&self, owner: i64, name: &str) -> Result<Option<OwnedRow>, Failure> {
        self.db
            .prepare_cached(
                "SELECT id, labels, properties FROM node WHERE owner = ?1 AND name = ?2",
            )
            .and_then(|mut statement| {
                let row = statement.query_row(params![owner, name], |row| {
                    Ok(OwnedRow { node: row.get(0)?, labels: row.get(1)?, list: row.get(2)? })
                });
                row.optional()
            })
            .during(self.db, "read a node")
            .map_err(failure)
    }

    /// Deletes a node from all tables, but not its edges.
    fn forget_owned(&self, owner: i64, node: i64) -> Result<(), Failure> {
        if is_of_facts(owner) {
            for (key, value) in self.node_properties(node)? {
                self.hide(node, key.0, &value)?;
            }
            return self.delete_rows(node);
        }
        for name in CODE_INDEXED {
            let Some(key) = self.key_id(name)? else { continue };
            let value = self.node_property(node, key)?;
            if !value.is_null() {
                self.hide(node, key.0, &value)?;
            }
        }
        self.delete_rows(node)
    }
}
