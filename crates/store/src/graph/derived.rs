//! What other tables have of nodes so that they are found: it follows from a node's own
//! bytes, so that it can be compared with them and made again.

use std::collections::HashMap;

use isolith_graph::Value;
use rusqlite::{Connection, params};

use super::names::Kind;
use super::owned::LOOKED_UP;
use super::{LONGEST_LOOKUP, Lookup, bytes};

/// The names in a graph, by number.
#[derive(Debug)]
pub(crate) struct KnownNames(HashMap<u32, Known>);

#[derive(Debug, Clone, Copy)]
struct Known {
    kind: u8,
    /// Whether nodes are found by a property of this name: users' own and those of facts, and
    /// those of code.
    finds: [bool; 2],
}

/// A node as its bytes say.
#[derive(Debug)]
pub(crate) struct NodeParts {
    pub(crate) labels: Vec<u32>,
    pub(crate) properties: Vec<(u32, Value)>,
}

impl NodeParts {
    /// Nothing if the bytes make no sense.
    pub(crate) fn read(labels: &[u8], properties: &[u8]) -> Option<Self> {
        Some(Self { labels: bytes::read_labels(labels)?, properties: bytes::read(properties)? })
    }

    /// Labels and properties as the row of a node has them.
    pub(crate) fn write(&self) -> (Vec<u8>, Vec<u8>) {
        let properties = self.properties.iter().map(|(key, value)| (*key, value));
        (bytes::write_labels(&self.labels), bytes::write(properties))
    }

    /// The properties that the node is found by.
    pub(crate) fn found_by(
        &self,
        names: &KnownNames,
        is_code: bool,
    ) -> impl Iterator<Item = &(u32, Value)> {
        self.properties.iter().filter(move |(key, _)| {
            names.0.get(key).is_some_and(|known| known.finds[usize::from(is_code)])
        })
    }

    /// The names that it needs, and of what kind.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u32, u8)> {
        let labels = self.labels.iter().map(|label| (*label, Kind::Label as u8));
        labels.chain(self.properties.iter().map(|(key, _)| (*key, Kind::Key as u8)))
    }
}

/// A property from what the table of values has of it, as far as that says it: of a text that
/// is long there is only the beginning, and of a list nothing.
pub(crate) fn from_lookup(value: &rusqlite::types::Value) -> Option<Value> {
    use rusqlite::types::Value as Looked;
    match value {
        Looked::Integer(number) => Some(Value::Integer(*number)),
        Looked::Real(number) => Some(Value::Float(*number)),
        Looked::Text(text) if text.len() + 4 <= LONGEST_LOOKUP => Some(Value::text(text.as_str())),
        Looked::Blob(bytes) => match bytes.as_slice() {
            b"t" => Some(Value::Boolean(true)),
            b"f" => Some(Value::Boolean(false)),
            b"n" => Some(Value::Float(f64::NAN)),
            _ => None,
        },
        Looked::Text(_) | Looked::Null => None,
    }
}

/// The names that an edge needs; nothing if its bytes make no sense.
pub(crate) fn edge_names(kind: u32, properties: &[u8]) -> Option<Vec<(u32, u8)>> {
    let keys = bytes::read(properties)?.into_iter().map(|(key, _)| (key, Kind::Key as u8));
    Some(std::iter::once((kind, Kind::Type as u8)).chain(keys).collect())
}

impl KnownNames {
    pub(crate) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut statement = db.prepare("SELECT id, kind, name, indexed FROM graph_name")?;
        let mut rows = statement.query([])?;
        let mut names = HashMap::new();
        while let Some(row) = rows.next()? {
            let indexed: bool = row.get(3)?;
            let of_code = indexed && LOOKED_UP.contains(&row.get_ref(2)?.as_str()?);
            names.insert(row.get(0)?, Known { kind: row.get(1)?, finds: [indexed, of_code] });
        }
        Ok(Self(names))
    }

    /// Whether there is a name with this number, and if so, whether it is of this kind.
    pub(crate) fn is(&self, number: u32, kind: u8) -> Option<bool> {
        self.0.get(&number).map(|known| known.kind == kind)
    }

    /// Makes a name up for a number whose own is lost.
    pub(crate) fn make_up(
        &mut self,
        db: &Connection,
        number: u32,
        kind: u8,
    ) -> rusqlite::Result<()> {
        let word = ["label", "type", "property"].get(usize::from(kind)).unwrap_or(&"name");
        db.prepare_cached("INSERT INTO graph_name (id, kind, name) VALUES (?1, ?2, ?3)")?
            .execute(params![number, kind, format!("recovered_{word}_{number}")])?;
        self.0.insert(number, Known { kind, finds: [true, false] });
        Ok(())
    }
}

/// Whether a node can be found by a label.
pub(crate) fn has_label(db: &Connection, label: u32, node: i64) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM node_label WHERE label = ?1 AND node = ?2")?
        .exists(params![label, node])
}

/// Whether a node can be found by a property.
pub(crate) fn has_value(
    db: &Connection,
    (key, value): &(u32, Value),
    node: i64,
) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM node_value WHERE key = ?1 AND value = ?2 AND node = ?3")?
        .exists(params![key, Lookup(value), node])
}

/// Lets a node be found by its labels and properties.
pub(crate) fn put(
    db: &Connection,
    names: &KnownNames,
    (node, is_code): (i64, bool),
    parts: &NodeParts,
) -> rusqlite::Result<()> {
    let mut label =
        db.prepare_cached("INSERT OR IGNORE INTO node_label (label, node) VALUES (?1, ?2)")?;
    for number in &parts.labels {
        label.execute(params![number, node])?;
    }
    let mut value = db.prepare_cached(
        "INSERT OR IGNORE INTO node_value (key, value, node) VALUES (?1, ?2, ?3)",
    )?;
    for (key, it) in parts.found_by(names, is_code) {
        value.execute(params![key, Lookup(it), node])?;
    }
    Ok(())
}

/// Counts afresh: nodes, edges, how often names are used.
pub(crate) fn recount(db: &Connection) -> rusqlite::Result<()> {
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
