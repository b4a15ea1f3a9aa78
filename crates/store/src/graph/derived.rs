//! The lookup rows of nodes. They follow from a node's own bytes, so they can be verified and
//! rebuilt.

use std::collections::HashMap;

use isolith_graph::Value;
use isolith_sql::{Connection, params};

use super::names::NameKind;
use super::owned::CODE_INDEXED;
use super::{Lookup, MAX_LOOKUP_LEN, bytes};

/// The names in a graph, by id.
#[derive(Debug)]
pub(crate) struct KnownNames(HashMap<u32, KnownName>);

#[derive(Debug, Clone, Copy)]
struct KnownName {
    kind: u8,
    /// Whether properties of this name are indexed: for users' and facts' nodes, and for nodes
    /// of code.
    finds: [bool; 2],
}

/// A decoded node.
#[derive(Debug)]
pub(crate) struct NodeParts {
    pub(crate) labels: Vec<u32>,
    pub(crate) properties: Vec<(u32, Value)>,
}

impl NodeParts {
    /// `None` if the bytes are malformed.
    pub(crate) fn read(labels: &[u8], properties: &[u8]) -> Option<Self> {
        Some(Self { labels: bytes::read_labels(labels)?, properties: bytes::read(properties)? })
    }

    /// Encodes labels and properties as stored in the node's row.
    pub(crate) fn write(&self) -> (Vec<u8>, Vec<u8>) {
        let properties = self.properties.iter().map(|(key, value)| (*key, value));
        (bytes::write_labels(&self.labels), bytes::write(properties))
    }

    /// The properties that the node is indexed by.
    pub(crate) fn indexed_properties(
        &self,
        names: &KnownNames,
        is_code: bool,
    ) -> impl Iterator<Item = &(u32, Value)> {
        self.properties.iter().filter(move |(key, _)| {
            names.0.get(key).is_some_and(|known| known.finds[usize::from(is_code)])
        })
    }

    /// The names that the node uses, each with its kind.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, u8)> {
        let labels = self.labels.iter().map(|label| (*label, NameKind::Label as u8));
        labels.chain(self.properties.iter().map(|(key, _)| (*key, NameKind::Key as u8)))
    }
}

/// Restores a property from its lookup value, where that is complete: long texts are truncated
/// there, and lists are absent.
pub(crate) fn from_lookup(value: &isolith_sql::Value) -> Option<Value> {
    use isolith_sql::Value as Looked;
    match value {
        Looked::Integer(number) => Some(Value::Integer(*number)),
        Looked::Real(number) => Some(Value::Float(*number)),
        Looked::Text(text) if text.len() + 4 <= MAX_LOOKUP_LEN => Some(Value::text(text.as_str())),
        Looked::Blob(bytes) => match bytes.as_slice() {
            b"t" => Some(Value::Boolean(true)),
            b"f" => Some(Value::Boolean(false)),
            b"n" => Some(Value::Float(f64::NAN)),
            [b'd', encoded @ ..] => bytes::read_temporal(encoded).map(Value::from),
            _ => None,
        },
        Looked::Text(_) | Looked::Null => None,
    }
}

/// The names that an edge uses; `None` if its bytes are malformed.
pub(crate) fn edge_names(kind: u32, properties: &[u8]) -> Option<Vec<(u32, u8)>> {
    let keys = bytes::read(properties)?.into_iter().map(|(key, _)| (key, NameKind::Key as u8));
    Some(std::iter::once((kind, NameKind::Type as u8)).chain(keys).collect())
}

impl KnownNames {
    pub(crate) fn read(db: &dyn Connection) -> isolith_sql::Result<Self> {
        let mut statement = db.prepare("SELECT id, kind, name, indexed FROM graph_name")?;
        let mut rows = statement.query([])?;
        let mut names = HashMap::new();
        while let Some(row) = rows.next()? {
            let indexed: bool = row.get(3)?;
            let of_code = indexed && CODE_INDEXED.contains(&row.get_ref(2)?.as_str()?);
            names.insert(row.get(0)?, KnownName { kind: row.get(1)?, finds: [indexed, of_code] });
        }
        Ok(Self(names))
    }

    /// Whether the name with this id is of this kind; `None` if there is no such name.
    pub(crate) fn is(&self, number: u32, kind: u8) -> Option<bool> {
        self.0.get(&number).map(|known| known.kind == kind)
    }

    /// Inserts a placeholder for a name that is lost.
    pub(crate) fn insert_placeholder(
        &mut self,
        db: &dyn Connection,
        number: u32,
        kind: u8,
    ) -> isolith_sql::Result<()> {
        let word = ["label", "type", "property"].get(usize::from(kind)).unwrap_or(&"name");
        db.prepare_cached("INSERT INTO graph_name (id, kind, name) VALUES (?1, ?2, ?3)")?
            .execute(params![number, kind, format!("recovered_{word}_{number}")])?;
        self.0.insert(number, KnownName { kind, finds: [true, false] });
        Ok(())
    }
}

/// Whether the node has a lookup row for this label.
pub(crate) fn has_label(db: &dyn Connection, label: u32, node: i64) -> isolith_sql::Result<bool> {
    db.prepare_cached("SELECT 1 FROM node_label WHERE label = ?1 AND node = ?2")?
        .exists(params![label, node])
}

/// Whether the node has a lookup row for this property.
pub(crate) fn has_value(
    db: &dyn Connection,
    (key, value): &(u32, Value),
    node: i64,
) -> isolith_sql::Result<bool> {
    db.prepare_cached("SELECT 1 FROM node_value WHERE key = ?1 AND value = ?2 AND node = ?3")?
        .exists(params![key, Lookup(value), node])
}

/// Inserts the lookup rows of a node.
pub(crate) fn put(
    db: &dyn Connection,
    names: &KnownNames,
    (node, is_code): (i64, bool),
    parts: &NodeParts,
) -> isolith_sql::Result<()> {
    let mut label =
        db.prepare_cached("INSERT OR IGNORE INTO node_label (label, node) VALUES (?1, ?2)")?;
    for number in &parts.labels {
        label.execute(params![number, node])?;
    }
    let mut value = db.prepare_cached(
        "INSERT OR IGNORE INTO node_value (key, value, node) VALUES (?1, ?2, ?3)",
    )?;
    for (key, it) in parts.indexed_properties(names, is_code) {
        value.execute(params![key, Lookup(it), node])?;
    }
    Ok(())
}

/// Recounts nodes, edges and the uses of names.
pub(crate) fn recount(db: &dyn Connection) -> isolith_sql::Result<()> {
    db.execute_batch(
        "UPDATE graph_name SET uses = \
           CASE kind WHEN 0 THEN (SELECT count(*) FROM node_label WHERE label = graph_name.id) \
           ELSE 0 END; \
         UPDATE graph_name SET uses = edges.n \
           FROM (SELECT type, count(*) AS n FROM edge GROUP BY type) AS edges \
           WHERE edges.type = graph_name.id AND kind = 1; \
         UPDATE graph SET nodes = (SELECT count(*) FROM node), \
           edges = (SELECT count(*) FROM edge), \
           last_node = max(last_node, (SELECT coalesce(max(id), 0) FROM node)), \
           last_edge = max(last_edge, (SELECT coalesce(max(id), 0) FROM edge))",
    )
}
