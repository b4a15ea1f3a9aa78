//! Finding the node that a cell refers to.

use isolith_graph::{Graph, KeyId, LabelId, LookupResult, Text, Value, equals};
use isolith_protocol::TableEnd;
use isolith_sql::ValueRef;
use isolith_sql::params;
use isolith_types::{Code, Failure, FastMap};

use crate::graph::{MAX_LOOKUP_LEN, TruthGraph, failure};
use crate::sqlite::During;

/// All nodes with a label and a property, and the property's value.
const ALL_NODES: &str = "SELECT v.value, v.node FROM node_value v \
    CROSS JOIN node_label l ON l.label = ?2 AND l.node = v.node WHERE v.key = ?1";

/// A cell value that can identify a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum NodeKey {
    Number(i64),
    /// The bits of a number that is not whole.
    Float(u64),
    Text(Text),
}

impl NodeKey {
    /// `None` for an empty cell.
    pub(super) fn of(cell: &Value) -> Option<Self> {
        match cell {
            Value::Integer(number) => Some(Self::Number(*number)),
            Value::Float(number) => Self::of_float(*number),
            Value::Text(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    /// From a lookup value; `None` for types that cells cannot hold and for texts that may be
    /// truncated.
    fn stored(value: ValueRef<'_>) -> Option<Self> {
        match value {
            ValueRef::Integer(number) => Some(Self::Number(number)),
            ValueRef::Real(number) => Self::of_float(number),
            ValueRef::Text(text) if text.len() + 3 < MAX_LOOKUP_LEN => {
                std::str::from_utf8(text).ok().map(|text| Self::Text(text.into()))
            }
            _ => None,
        }
    }

    /// The same for equal numbers; `None` for NaN.
    fn of_float(number: f64) -> Option<Self> {
        const LIMIT: f64 = (1_u64 << 63) as f64;
        match number {
            number if number.is_nan() => None,
            number if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) => {
                Some(Self::Number(number as i64))
            }
            number => Some(Self::Float(number.to_bits())),
        }
    }
}

/// The result of looking up a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyLookup {
    Nothing,
    One(i64),
    Several,
}

/// Finds nodes of one label by one property.
#[derive(Debug)]
pub(super) struct NodeFinder<'a> {
    end: &'a TableEnd,
    label: LabelId,
    key: KeyId,
    known: FastMap<NodeKey, KeyLookup>,
}

impl<'a> NodeFinder<'a> {
    /// `None` if no node has the label or the property.
    pub(super) fn new(graph: &TruthGraph<'_>, end: &'a TableEnd) -> Result<Option<Self>, Failure> {
        let (Some(label), Some(key)) = (graph.label_id(&end.label)?, graph.key_id(&end.key)?)
        else {
            return Ok(None);
        };
        if graph.node_count(Some(label))? == 0 {
            return Ok(None);
        }
        if graph.lookup_estimate(Some(label), key)?.is_none() {
            let message = format!("nodes cannot be looked up by {}", end.key);
            let hint = "code has properties of this name, and is not looked up by them";
            return Err(Failure::new(Code::BadInput, message).with_hint(hint));
        }
        Ok(Some(Self { end, label, key, known: FastMap::default() }))
    }

    /// Loads all nodes at once, unless there are more of them than expected lookups.
    pub(super) fn learn(&mut self, graph: &TruthGraph<'_>, asked: u64) -> Result<(), Failure> {
        if graph.node_count(Some(self.label))? > asked {
            return Ok(());
        }
        // Code is also found by these properties, through its files.
        let may_be_code = ["path", "id"].contains(&self.end.key.as_str());
        graph.flush_nodes()?;
        let mut read = || {
            let mut statement = graph.db.prepare_cached(ALL_NODES)?;
            let mut rows = statement.query(params![self.key.0, self.label.0])?;
            while let Some(row) = rows.next()? {
                let Some(name) = NodeKey::stored(row.get_ref(0)?) else { continue };
                if may_be_code && matches!(name, NodeKey::Text(_)) {
                    continue;
                }
                let node = KeyLookup::One(row.get(1)?);
                self.known.entry(name).and_modify(|it| *it = KeyLookup::Several).or_insert(node);
            }
            Ok(())
        };
        read().during(graph.db, "read nodes").map_err(failure)
    }

    /// Returns the only node that a cell refers to, or why there is none.
    pub(super) fn find_one(
        &mut self,
        graph: &TruthGraph<'_>,
        cell: &Value,
    ) -> Result<Result<i64, String>, Failure> {
        if NodeKey::of(cell).is_none() {
            return Ok(Err("the key of its start or end node is empty".to_owned()));
        }
        Ok(match self.find(graph, cell)? {
            KeyLookup::One(node) => Ok(node),
            KeyLookup::Nothing => Err(format!("no such node: {}", shown(self.end, cell))),
            KeyLookup::Several => Err(several(self.end, cell)),
        })
    }

    /// What a cell refers to. Results are cached.
    pub(super) fn find(
        &mut self,
        graph: &TruthGraph<'_>,
        cell: &Value,
    ) -> Result<KeyLookup, Failure> {
        let Some(name) = NodeKey::of(cell) else { return Ok(KeyLookup::Nothing) };
        if let Some(found) = self.known.get(&name) {
            return Ok(*found);
        }
        let found = self.look(graph, cell)?;
        self.known.insert(name, found);
        Ok(found)
    }

    pub(super) fn look(&self, graph: &TruthGraph<'_>, cell: &Value) -> Result<KeyLookup, Failure> {
        let mut found = Vec::new();
        let how = graph.lookup(Some(self.label), self.key, cell, &mut found)?;
        let mut named = KeyLookup::Nothing;
        for node in found {
            let is_right = how == LookupResult::Exact
                || equals(&graph.node_property(node, self.key)?, cell) == Some(true);
            if is_right && graph.has_label(node, self.label)? {
                named = if named == KeyLookup::Nothing {
                    KeyLookup::One(node)
                } else {
                    KeyLookup::Several
                };
            }
        }
        Ok(named)
    }
}

pub(super) fn several(end: &TableEnd, cell: &Value) -> String {
    format!("several nodes match {}", shown(end, cell))
}

/// The node that a cell refers to, for messages.
pub(super) fn shown(TableEnd { label, key }: &TableEnd, cell: &Value) -> String {
    match cell {
        Value::Text(text) => {
            let text: String = text.chars().take(60).collect();
            format!("(:{label} {{{key}: {text:?}}})")
        }
        Value::Integer(number) => format!("(:{label} {{{key}: {number}}})"),
        Value::Float(number) => format!("(:{label} {{{key}: {number}}})"),
        _ => format!("(:{label})"),
    }
}
