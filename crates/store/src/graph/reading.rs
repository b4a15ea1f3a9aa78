//! Reading the graph.

use std::sync::Arc;

use isolith_graph::{
    Adjacency, Constraint, Direction, Edge, Graph, Hop, KeyId, LabelId, LookupResult, TypeId,
    Value, position_of,
};
use isolith_sql::{OptionalExtension, Params, params};
use isolith_types::Failure;

use super::cache::CountKey;
use super::names::NameKind;
use super::{Lookup, TruthGraph, bytes, failure, one};
use crate::sqlite::During;

/// Estimated number of nodes per indexed value.
const NODES_PER_VALUE: u64 = 8;

const OUT: &str = "SELECT edge, type, dst FROM edge_out WHERE src = ?1";
const OUT_OF_TYPE: &str = "SELECT edge, type, dst FROM edge_out WHERE src = ?1 AND type = ?2";
const IN: &str = "SELECT edge, type, src FROM edge_in WHERE dst = ?1";
const IN_OF_TYPE: &str = "SELECT edge, type, src FROM edge_in WHERE dst = ?1 AND type = ?2";
const COUNT_OUT: &str = "SELECT count(*) FROM edge_out WHERE src = ?1";
const COUNT_OUT_OF_TYPE: &str = "SELECT count(*) FROM edge_out WHERE src = ?1 AND type = ?2";
const COUNT_IN: &str = "SELECT count(*) FROM edge_in WHERE dst = ?1";
const COUNT_IN_OF_TYPE: &str = "SELECT count(*) FROM edge_in WHERE dst = ?1 AND type = ?2";
const COUNT_LOOPS: &str = "SELECT count(*) FROM edge_out WHERE src = ?1 AND dst = ?1";
const COUNT_LOOPS_OF_TYPE: &str =
    "SELECT count(*) FROM edge_out WHERE src = ?1 AND type = ?2 AND dst = ?1";

impl TruthGraph<'_> {
    pub(super) fn numbers(
        &self,
        sql: &str,
        parameters: impl Params,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure> {
        let read = || {
            let mut statement = self.db.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                found.push(row.get(0)?);
            }
            Ok(())
        };
        read().during(self.db, "read nodes").map_err(failure)
    }

    fn hops(
        &self,
        sql: &str,
        parameters: impl Params,
        keep: impl Fn(i64) -> bool,
        found: &mut Vec<Hop>,
    ) -> Result<(), Failure> {
        let read = || {
            let mut statement = self.db.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                let node = row.get(2)?;
                if keep(node) {
                    found.push(Hop { edge: row.get(0)?, kind: TypeId(row.get(1)?), node });
                }
            }
            Ok(())
        };
        read().during(self.db, "read edges").map_err(failure)
    }

    /// Appends the nodes of a label, or all nodes.
    pub(super) fn read_nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: i64,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure> {
        self.flush_nodes()?;
        let after = after.unwrap_or(i64::MIN);
        match label {
            Some(label) => self.numbers(
                "SELECT node FROM node_label WHERE label = ?1 AND node > ?2 ORDER BY node LIMIT ?3",
                params![label.0, after, limit],
                found,
            ),
            None => self.numbers(
                "SELECT id FROM node WHERE id > ?1 ORDER BY id LIMIT ?2",
                params![after, limit],
                found,
            ),
        }
    }

    /// The number of nodes with a label, or of edges with a type.
    fn uses(&self, name: u32) -> Result<u64, Failure> {
        let written = self.counted(CountKey::Named(name), || {
            let uses = one(self.db, "SELECT uses FROM graph_name WHERE id = ?1", [name])?;
            Ok(uses.unwrap_or(0))
        })?;
        Ok(self.counts.as_ref().map_or(written, |counts| counts.uses(name, written)))
    }

    /// Calls `read` with the encoded properties of an edge.
    fn with_properties<T>(
        &self,
        edge: i64,
        nothing: T,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Failure> {
        self.flush_edges()?;
        let look = || {
            let mut statement =
                self.db.prepare_cached("SELECT properties FROM edge WHERE id = ?1")?;
            statement
                .query_row([edge], |row| {
                    Ok(read(row.get_ref(0)?.as_blob_or_null()?.unwrap_or(&[])))
                })
                .optional()
        };
        match look().during(self.db, "read properties").map_err(failure)? {
            None => Ok(nothing),
            Some(read) => read.ok_or_else(|| self.malformed(edge)),
        }
    }
}

/// `CROSS JOIN` fixes the order: the planner would scan all files.
const CODE_BY_PATH: &str = "SELECT n.id FROM root r \
    CROSS JOIN file f ON f.root = r.id AND f.path = ?1 CROSS JOIN node n ON n.owner = f.id \
    UNION ALL SELECT n.id FROM root r \
    CROSS JOIN node n ON n.owner = 0 AND n.name = 'folder:' || r.id || ':' || ?1";
const CODE_BY_ID: &str = "SELECT n.id FROM root r \
    CROSS JOIN file f ON f.root = r.id AND f.path = ?1 \
    CROSS JOIN node n ON n.owner = f.id AND n.name = ?2";

impl Graph for TruthGraph<'_> {
    fn constraints(&self) -> Result<Arc<[Constraint]>, Failure> {
        self.read_constraints()
    }

    fn label_id(&self, name: &str) -> Result<Option<LabelId>, Failure> {
        Ok(self.names.find(self.db, NameKind::Label, name).map_err(failure)?.map(LabelId))
    }

    fn type_id(&self, name: &str) -> Result<Option<TypeId>, Failure> {
        Ok(self.names.find(self.db, NameKind::Type, name).map_err(failure)?.map(TypeId))
    }

    fn key_id(&self, name: &str) -> Result<Option<KeyId>, Failure> {
        Ok(self.names.find(self.db, NameKind::Key, name).map_err(failure)?.map(KeyId))
    }

    fn labels(&self) -> Result<Vec<Arc<str>>, Failure> {
        let mut names = Vec::new();
        for (number, name) in self.names.all(self.db, NameKind::Label).map_err(failure)? {
            if self.node_count(Some(LabelId(number)))? > 0 {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn relationship_types(&self) -> Result<Vec<Arc<str>>, Failure> {
        let mut names = Vec::new();
        for (number, name) in self.names.all(self.db, NameKind::Type).map_err(failure)? {
            if self.edge_count(Some(TypeId(number)))? > 0 {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn property_keys(&self) -> Result<Vec<Arc<str>>, Failure> {
        let all = self.names.all(self.db, NameKind::Key).map_err(failure)?;
        Ok(all.into_iter().map(|(_, name)| name).collect())
    }

    fn label_name(&self, label: LabelId) -> Result<Arc<str>, Failure> {
        self.names.name(self.db, label.0).map_err(failure)
    }

    fn type_name(&self, kind: TypeId) -> Result<Arc<str>, Failure> {
        self.names.name(self.db, kind.0).map_err(failure)
    }

    fn key_name(&self, key: KeyId) -> Result<Arc<str>, Failure> {
        self.names.name(self.db, key.0).map_err(failure)
    }

    fn node_count(&self, label: Option<LabelId>) -> Result<u64, Failure> {
        match (label, &self.counts) {
            (Some(label), _) => self.uses(label.0),
            (None, Some(counts)) => Ok(counts.nodes()),
            (None, None) => self.counted(CountKey::Nodes, || {
                Ok(one(self.db, "SELECT nodes FROM graph", [])?.unwrap_or(0))
            }),
        }
    }

    fn edge_count(&self, kind: Option<TypeId>) -> Result<u64, Failure> {
        match (kind, &self.counts) {
            (Some(kind), _) => self.uses(kind.0),
            (None, Some(counts)) => Ok(counts.edges()),
            (None, None) => self.counted(CountKey::Edges, || {
                Ok(one(self.db, "SELECT edges FROM graph", [])?.unwrap_or(0))
            }),
        }
    }

    fn has_node(&self, node: i64) -> Result<bool, Failure> {
        Ok(one::<i64>(self.db, "SELECT 1 FROM node WHERE id = ?1", [node])?.is_some())
    }

    fn nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: usize,
        found: &mut Vec<i64>,
    ) -> Result<(), Failure> {
        if let Some(nodes) = self.cached_nodes(label, limit as u64)? {
            let start = after.map_or(0, |after| nodes.partition_point(|&node| node <= after));
            found.extend(nodes[start..].iter().take(limit));
            return Ok(());
        }
        self.read_nodes(label, after, i64::try_from(limit).unwrap_or(i64::MAX), found)
    }

    fn lookup_estimate(&self, _: Option<LabelId>, key: KeyId) -> Result<Option<u64>, Failure> {
        let indexed = self.names.is_indexed(self.db, key.0).map_err(failure)?;
        Ok(indexed.then_some(NODES_PER_VALUE))
    }

    fn lookup(
        &self,
        _: Option<LabelId>,
        key: KeyId,
        value: &Value,
        found: &mut Vec<i64>,
    ) -> Result<LookupResult, Failure> {
        self.flush_nodes()?;
        self.numbers(
            "SELECT node FROM node_value WHERE key = ?1 AND value = ?2",
            params![key.0, Lookup(value)],
            found,
        )?;
        // Nodes of code have no lookup rows for what their owner and name already say.
        let Value::Text(text) = value else { return Ok(LookupResult::from_index(value)) };
        match &*self.key_name(key)? {
            "path" => self.numbers(CODE_BY_PATH, [&**text], found)?,
            "id" => match text.split_once('#') {
                Some((path, name)) => self.numbers(CODE_BY_ID, [path, name], found)?,
                None => self.numbers(CODE_BY_ID, [&**text, ""], found)?,
            },
            _ => {}
        }
        Ok(LookupResult::Candidates)
    }

    fn node_labels(&self, node: i64, labels: &mut Vec<LabelId>) -> Result<(), Failure> {
        self.with_row(node, (), |list, _| {
            labels.extend(bytes::read_labels(list)?.into_iter().map(LabelId));
            Some(())
        })
    }

    fn has_label(&self, node: i64, label: LabelId) -> Result<bool, Failure> {
        if let Some(nodes) = self.cached_nodes(Some(label), 1)? {
            return Ok(position_of(&nodes, node).is_some());
        }
        if let Some(has) = self.label_in_row(node, label)? {
            return Ok(has);
        }
        self.flush_nodes()?;
        let sql = "SELECT 1 FROM node_label WHERE label = ?1 AND node = ?2";
        Ok(one::<i64>(self.db, sql, params![label.0, node])?.is_some())
    }

    fn node_property(&self, node: i64, key: KeyId) -> Result<Value, Failure> {
        if let Some(value) = self.cached_property(node, key)? {
            return Ok(value);
        }
        self.with_row(node, Value::Null, |_, all| bytes::read_one(all, key.0))
    }

    fn node_properties(&self, node: i64) -> Result<Vec<(KeyId, Value)>, Failure> {
        self.with_row(node, Vec::new(), |_, all| keyed(all))
    }

    fn has_unique_values(&self, label: Option<LabelId>, key: KeyId) -> Result<bool, Failure> {
        TruthGraph::differ(self, label, key)
    }

    fn edges(
        &self,
        node: i64,
        direction: Direction,
        kinds: &[TypeId],
        found: &mut Vec<Hop>,
    ) -> Result<(), Failure> {
        self.flush_edges()?;
        let is_other = |other: i64| other != node || direction != Direction::Both;
        if kinds.is_empty() {
            if direction != Direction::In {
                self.hops(OUT, [node], |_| true, found)?;
            }
            if direction != Direction::Out {
                self.hops(IN, [node], is_other, found)?;
            }
        }
        for kind in kinds {
            if direction != Direction::In {
                self.hops(OUT_OF_TYPE, params![node, kind.0], |_| true, found)?;
            }
            if direction != Direction::Out {
                self.hops(IN_OF_TYPE, params![node, kind.0], is_other, found)?;
            }
        }
        Ok(())
    }

    fn degree(&self, node: i64, direction: Direction, kinds: &[TypeId]) -> Result<u64, Failure> {
        self.flush_edges()?;
        let count = |all: &str, of_type: &str| -> Result<u64, Failure> {
            if kinds.is_empty() {
                return Ok(one(self.db, all, [node])?.unwrap_or(0));
            }
            let counts = kinds
                .iter()
                .map(|kind| Ok(one::<u64>(self.db, of_type, params![node, kind.0])?.unwrap_or(0)));
            counts.sum()
        };
        Ok(match direction {
            Direction::Out => count(COUNT_OUT, COUNT_OUT_OF_TYPE)?,
            Direction::In => count(COUNT_IN, COUNT_IN_OF_TYPE)?,
            Direction::Both => {
                let loops = count(COUNT_LOOPS, COUNT_LOOPS_OF_TYPE)?;
                let all = count(COUNT_OUT, COUNT_OUT_OF_TYPE)? + count(COUNT_IN, COUNT_IN_OF_TYPE)?;
                all.saturating_sub(loops)
            }
        })
    }

    fn edge(&self, edge: i64) -> Result<Option<Edge>, Failure> {
        self.flush_edges()?;
        self.db
            .prepare_cached("SELECT type, src, dst FROM edge WHERE id = ?1")
            .and_then(|mut statement| {
                let edge = statement.query_row([edge], |row| {
                    Ok(Edge { kind: TypeId(row.get(0)?), start: row.get(1)?, end: row.get(2)? })
                });
                edge.optional()
            })
            .during(self.db, "read an edge")
            .map_err(failure)
    }

    fn edge_property(&self, edge: i64, key: KeyId) -> Result<Value, Failure> {
        self.with_properties(edge, Value::Null, |all| bytes::read_one(all, key.0))
    }

    fn edge_properties(&self, edge: i64) -> Result<Vec<(KeyId, Value)>, Failure> {
        self.with_properties(edge, Vec::new(), keyed)
    }

    fn adjacency(&self) -> Option<Adjacency<'_>> {
        self.segment?.adjacency()
    }
}

fn keyed(bytes: &[u8]) -> Option<Vec<(KeyId, Value)>> {
    Some(bytes::read(bytes)?.into_iter().map(|(key, value)| (KeyId(key), value)).collect())
}
