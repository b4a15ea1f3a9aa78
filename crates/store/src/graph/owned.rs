//! What is made from files: nodes and edges with an owner, which queries only read.

use std::path::Path;

use isolith_graph::{Direction, Graph, Hop, TypeId, Value};
use isolith_types::Failure;
use rusqlite::{OptionalExtension, params};

use super::names::Kind;
use super::{TruthGraph, bytes, failure};
use crate::sqlite::During;

/// The owner of what belongs to no single file: folders, projects, people.
pub(crate) const SHARED: i64 = 0;

/// Properties by which nodes of code are looked up. `path` and `id` are found without.
pub(super) const LOOKED_UP: [&str; 2] = ["name", "qualified_name"];

/// Names that users' own nodes are looked up by, too, whoever uses them first.
const INDEXED: [&str; 4] = ["name", "qualified_name", "path", "id"];

/// A property of a node or an edge.
pub(crate) type Property<'a> = (&'a str, Value);

/// A node as its row has it.
struct OwnedRow {
    node: i64,
    labels: Vec<u8>,
    list: Vec<u8>,
}

impl TruthGraph<'_> {
    /// The node of this owner and name, if it is there.
    pub(crate) fn owned(&self, owner: i64, name: &str) -> Result<Option<i64>, Failure> {
        super::one(
            self.db,
            "SELECT id FROM node WHERE owner = ?1 AND name = ?2",
            params![owner, name],
        )
    }

    /// All nodes of an owner, by name.
    pub(crate) fn all_owned(&self, owner: i64) -> Result<Vec<(String, i64)>, Failure> {
        let read = || {
            self.db
                .prepare_cached("SELECT name, id FROM node WHERE owner = ?1")?
                .query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        read().during(self.db, "read nodes").map_err(failure)
    }

    /// Makes a node of an owner, or gives the one that is there another label and other
    /// properties. Its number stays, and with it what users' edges lead to.
    pub(crate) fn put_owned(
        &self,
        owner: i64,
        name: &str,
        label: &str,
        properties: &[Property<'_>],
    ) -> Result<i64, Failure> {
        let mut keyed = Vec::with_capacity(properties.len());
        for (key, value) in properties.iter().filter(|(_, value)| !value.is_null()) {
            keyed.push((self.code_key(key)?, *key, value));
        }
        let list = bytes::write(keyed.iter().map(|(key, _, value)| (*key, *value)));
        let label_number = self.number(Kind::Label, label)?;
        let labels = bytes::write_labels(&[label_number]);
        if let Some(OwnedRow { node, labels: old_labels, list: old_list }) =
            self.owned_row(owner, name)?
        {
            if old_labels == labels && old_list == list {
                return Ok(node);
            }
            self.forget_owned(node)?;
            self.insert_owned(node, owner, name, label_number, &labels, &list)?;
            self.show_owned(node, &keyed)?;
            return Ok(node);
        }
        let node = self.next_node();
        self.insert_owned(node, owner, name, label_number, &labels, &list)?;
        self.show_owned(node, &keyed)?;
        Ok(node)
    }

    /// Removes a node with all its edges, users' own included: they would lead nowhere.
    pub(crate) fn remove_owned(&self, node: i64) -> Result<(), Failure> {
        let mut hops: Vec<Hop> = Vec::new();
        self.edges(node, Direction::Both, &[], &mut hops)?;
        for hop in hops {
            self.drop_edge(hop.edge, hop.kind)?;
        }
        self.forget_owned(node)
    }

    /// Makes an edge of an owner.
    pub(crate) fn add_owned_edge(
        &self,
        owner: i64,
        kind: &str,
        (start, end): (i64, i64),
        properties: &[Property<'_>],
    ) -> Result<(), Failure> {
        let mut keyed = Vec::with_capacity(properties.len());
        for (key, value) in properties {
            keyed.push((self.code_key(key)?, value));
        }
        let list = (!keyed.is_empty()).then(|| bytes::write(keyed.into_iter()));
        let kind = self.number(Kind::Type, kind)?;
        let edge = self.next_edge();
        self.used(kind, 1);
        self.execute(
            "INSERT INTO edge (id, type, src, dst, properties, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![edge, kind, start, end, list, owner],
        )?;
        Ok(())
    }

    /// Removes the edges of an owner, but for those of this type.
    pub(crate) fn remove_owned_edges(&self, owner: i64, but: &[&str]) -> Result<(), Failure> {
        let read = || {
            self.db
                .prepare_cached("SELECT id, type FROM edge WHERE owner = ?1")?
                .query_map([owner], |row| Ok((row.get(0)?, TypeId(row.get(1)?))))?
                .collect::<Result<Vec<(i64, TypeId)>, _>>()
        };
        let mut kept = Vec::with_capacity(but.len());
        for kind in but {
            kept.extend(self.type_id(kind)?);
        }
        let edges = read().during(self.db, "read edges").map_err(failure)?;
        for (edge, kind) in edges.into_iter().filter(|(_, kind)| !kept.contains(kind)) {
            self.drop_edge(edge, kind)?;
        }
        Ok(())
    }

    /// Removes the edges of an owner that have this type.
    pub(crate) fn remove_edges_of(&self, owner: i64, kind: &str) -> Result<(), Failure> {
        let Some(kind) = self.type_id(kind)? else { return Ok(()) };
        let read = || {
            self.db
                .prepare_cached("SELECT id FROM edge WHERE owner = ?1 AND type = ?2")?
                .query_map(params![owner, kind.0], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()
        };
        let edges = read().during(self.db, "read edges").map_err(failure)?;
        edges.into_iter().try_for_each(|edge| self.drop_edge(edge, kind))
    }

    /// What the folder of a root is called. One that has the store in it is known as `.`.
    pub(crate) fn project_name(&self, root: u64) -> Result<String, Failure> {
        let sql = "SELECT path FROM root WHERE id = ?1";
        let path: String = super::one(self.db, sql, [root])?.unwrap_or_default();
        let around_store = Path::new(self.db.path().unwrap_or_default()).ancestors().nth(2);
        let named = |folder: &Path| Some(folder.file_name()?.to_string_lossy().into_owned());
        Ok(named(Path::new(&path)).or_else(|| named(around_store?)).unwrap_or(path))
    }

    fn drop_edge(&self, edge: i64, kind: TypeId) -> Result<(), Failure> {
        self.execute("DELETE FROM edge WHERE id = ?1", [edge])?;
        self.used(kind.0, -1);
        self.lost_edge();
        Ok(())
    }

    fn code_key(&self, key: &str) -> Result<u32, Failure> {
        let indexed = INDEXED.contains(&key);
        self.names.find_or_make(self.db, Kind::Key, key, indexed).map_err(failure)
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

    fn insert_owned(
        &self,
        node: i64,
        owner: i64,
        name: &str,
        label: u32,
        labels: &[u8],
        list: &[u8],
    ) -> Result<(), Failure> {
        self.execute(
            "INSERT INTO node (id, labels, properties, owner, name) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![node, labels, list, owner, name],
        )?;
        self.execute("INSERT INTO node_label (label, node) VALUES (?1, ?2)", params![label, node])?;
        self.used(label, 1);
        self.gained_node();
        Ok(())
    }

    fn show_owned(&self, node: i64, keyed: &[(u32, &str, &Value)]) -> Result<(), Failure> {
        for (key, _, value) in keyed.iter().filter(|(_, name, _)| LOOKED_UP.contains(name)) {
            self.show(node, *key, value)?;
        }
        Ok(())
    }

    /// Takes a node out of all tables; its edges stay.
    fn forget_owned(&self, node: i64) -> Result<(), Failure> {
        for name in LOOKED_UP {
            let Some(key) = self.key_id(name)? else { continue };
            let value = self.node_property(node, key)?;
            if !value.is_null() {
                self.hide(node, key.0, &value)?;
            }
        }
        self.delete_rows(node)
    }
}
