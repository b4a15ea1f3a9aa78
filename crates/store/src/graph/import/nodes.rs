//! Importing nodes.

use std::collections::hash_map::Entry;

use isolith_graph::{Entity, Graph, GraphMut, KeyId, Value, equals};
use isolith_protocol::TableEnd;
use isolith_types::{Failure, FastMap};

use super::Import;
use super::find::{KeyLookup, NodeFinder, NodeKey, several, shown};
use super::table::MIN_NODE_LEN;
use crate::graph::bytes;
use crate::graph::names::NameKind;
use crate::graph::pending::NewNode;

/// Where to find the node of a key.
#[derive(Clone, Copy)]
enum KeyTarget {
    There(i64),
    /// Index into the nodes still to be created.
    New(usize),
}

/// A row whose node is to be created.
struct NewRow {
    /// Its number in the whole table.
    row: u64,
    cells: Vec<Value>,
}

impl Import<'_> {
    pub(super) fn nodes(&mut self, label: &str, key: Option<&str>) -> Result<(), Failure> {
        let keys = self.property_keys()?;
        let mut new = Vec::new();
        match key {
            Some(key) => {
                let end = TableEnd { label: label.to_owned(), key: key.to_owned() };
                self.merge(&end, &keys, &mut new)?;
            }
            None => {
                while let Some(cells) = self.next_row()? {
                    new.push(NewRow { row: self.row(), cells });
                }
            }
        }
        self.create(label, &keys, &new)
    }

    /// Creates a node for each row; rows whose node exists are rejected.
    pub(super) fn new_nodes(&mut self, label: &str, key: &str) -> Result<(), Failure> {
        let keys = self.property_keys()?;
        let end = TableEnd { label: label.to_owned(), key: key.to_owned() };
        let at = self.header.position(key)?;
        self.header.0[at].check_names()?;
        let mut finder = NodeFinder::new(self.graph, &end)?;
        if let Some(finder) = &mut finder {
            finder.learn(self.graph, self.table.rows.len() as u64 / MIN_NODE_LEN)?;
        }
        let (mut rows, mut new) = (FastMap::default(), Vec::new());
        while let Some(cells) = self.next_row()? {
            let row = self.row();
            let Some(name) = NodeKey::of(&cells[at]) else {
                self.reject(format!("the key {key} is empty"))?;
                continue;
            };
            if let Some(earlier) = rows.get(&name) {
                self.reject(format!("{} is in row {earlier}", shown(&end, &cells[at])))?;
                continue;
            }
            let is_there = match &mut finder {
                Some(finder) => finder.find(self.graph, &cells[at])? != KeyLookup::Nothing,
                None => false,
            };
            if is_there {
                self.reject(format!("{} exists already", shown(&end, &cells[at])))?;
                continue;
            }
            rows.insert(name, row);
            new.push(NewRow { row, cells });
        }
        self.create(label, &keys, &new)
    }

    /// The ids of the columns' names.
    fn property_keys(&self) -> Result<Vec<u32>, Failure> {
        let names = self.header.0.iter().map(|column| &column.name);
        names.map(|name| self.graph.number(NameKind::Key, name)).collect()
    }

    /// Merges rows into existing nodes and into earlier rows with the same key; returns the
    /// rows to create.
    fn merge(
        &mut self,
        end: &TableEnd,
        keys: &[u32],
        new: &mut Vec<NewRow>,
    ) -> Result<(), Failure> {
        let at = self.header.position(&end.key)?;
        self.header.0[at].check_names()?;
        let finder = NodeFinder::new(self.graph, end)?;
        let mut places: FastMap<NodeKey, KeyTarget> = FastMap::default();
        while let Some(cells) = self.next_row()? {
            let Some(name) = NodeKey::of(&cells[at]) else {
                self.reject(format!("the key {} is empty", end.key))?;
                continue;
            };
            let unknown = match places.entry(name) {
                Entry::Vacant(unknown) => unknown,
                Entry::Occupied(known) => {
                    match *known.get() {
                        KeyTarget::New(at) => merge_row(&mut new[at].cells, cells),
                        KeyTarget::There(node) => self.update(node, keys, &cells)?,
                    }
                    continue;
                }
            };
            let named = finder.as_ref().map(|finder| finder.look(self.graph, &cells[at]));
            match named.transpose()?.unwrap_or(KeyLookup::Nothing) {
                KeyLookup::Nothing => {
                    unknown.insert(KeyTarget::New(new.len()));
                    new.push(NewRow { row: self.row(), cells });
                }
                KeyLookup::One(node) => {
                    unknown.insert(KeyTarget::There(node));
                    self.update(node, keys, &cells)?;
                }
                KeyLookup::Several => {
                    self.reject(several(end, &cells[at]))?;
                }
            }
        }
        Ok(())
    }

    /// Sets the properties that differ.
    fn update(&mut self, node: i64, keys: &[u32], cells: &[Value]) -> Result<(), Failure> {
        for ((key, column), cell) in keys.iter().zip(&self.header.0).zip(cells) {
            let is_like_that = || {
                let there = self.graph.node_property(node, KeyId(*key))?;
                Ok::<_, Failure>(equals(&there, cell) == Some(true))
            };
            if !cell.is_null() && !is_like_that()? {
                self.graph.set_property(Entity::Node(node), &column.name, cell)?;
                self.note(Entity::Node(node), self.row());
                self.stats.properties_set += 1;
            }
        }
        Ok(())
    }

    fn create(&mut self, label: &str, keys: &[u32], new: &[NewRow]) -> Result<(), Failure> {
        let (graph, count) = (self.graph, new.len() as i64);
        let label = graph.number(NameKind::Label, label)?;
        let labels = bytes::write_labels(&[label]);
        let first = graph.next_nodes(count);
        graph.gained_nodes(count);
        let nodes = new.iter().zip(first..).map(|(new, node)| {
            let properties = bytes::write(keyed(keys, &new.cells));
            NewNode { node, properties }
        });
        graph.write_nodes(&labels, &nodes.collect::<Vec<_>>())?;
        (first..first + count).try_for_each(|node| graph.index_label(node, label))?;
        for (column, key) in keys.iter().enumerate() {
            let cells = new.iter().map(|new| &new.cells[column]).zip(first..);
            let cells: Vec<(&Value, i64)> = cells.filter(|(it, _)| !it.is_null()).collect();
            self.stats.properties_set += cells.len() as u64;
            if graph.is_indexed_by(*key)? {
                cells.iter().try_for_each(|(cell, node)| graph.index_value(*node, *key, cell))?;
            }
        }
        for (new, node) in new.iter().zip(first..) {
            self.note(Entity::Node(node), new.row);
        }
        self.stats.nodes_created += new.len() as u64;
        self.stats.labels_added += new.len() as u64;
        Ok(())
    }
}

/// The non-empty cells of a row, with their keys.
pub(super) fn keyed<'a>(
    keys: &'a [u32],
    cells: &'a [Value],
) -> impl Iterator<Item = (u32, &'a Value)> + Clone {
    keys.iter().copied().zip(cells).filter(|(_, cell)| !cell.is_null())
}

/// Later rows take precedence.
fn merge_row(row: &mut [Value], later: Vec<Value>) {
    for (cell, later) in row.iter_mut().zip(later) {
        if !later.is_null() {
            *cell = later;
        }
    }
}
