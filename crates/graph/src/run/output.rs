//! Converts values to plain data.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::functions::properties;
use crate::graph::Entity;
use crate::ir::Slot;
use crate::temporal::Temporal;
use crate::value::{Datum, NodeDatum, PathDatum, RelationshipDatum, Value};

use super::{Row, Run};

/// The overhead of a small map: one whole B-tree node.
const MAP: usize = 11 * (size_of::<String>() + size_of::<Datum>()) + 32;

/// The allocation overhead of a text that is not part of something else.
const TEXT: usize = 16;

/// The columns of a row.
pub(super) fn row(run: &Run<'_>, columns: &[Slot], row: &Row) -> Result<Vec<Datum>> {
    let mut output = Output { run, taken: 0 };
    columns.iter().map(|&slot| output.datum(&row[slot])).collect()
}

/// The conversion of one row. Shared parts of values are copied at every occurrence, and nodes
/// come with all their properties, so the size of the output is counted here.
struct Output<'a, 'r> {
    run: &'a Run<'r>,
    taken: usize,
}

impl Output<'_, '_> {
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes);
        let most = self.run.budget.row();
        if self.taken > most {
            let most = most >> 20;
            return Err(Error::TooLarge(format!("a row of the answer is larger than {most} MiB")));
        }
        self.run.budget.steps(1 + bytes / 1024)
    }

    fn datum(&mut self, value: &Value) -> Result<Datum> {
        self.take(size_of::<Datum>())?;
        Ok(match value {
            Value::Null => Datum::Null,
            Value::Boolean(value) => Datum::Boolean(*value),
            Value::Integer(value) => Datum::Integer(*value),
            Value::Float(value) => Datum::Float(*value),
            Value::Text(text) => Datum::Text(self.text(text)?),
            Value::List(list) => {
                Datum::List(list.iter().map(|value| self.datum(value)).collect::<Result<_>>()?)
            }
            Value::Map(map) => Datum::Map(self.entries(map.entries())?),
            Value::Temporal(it) => {
                self.take(size_of::<Temporal>() + TEXT)?;
                Datum::Temporal(Box::new((**it).clone()))
            }
            Value::Node(id) => Datum::Node(Box::new(self.node(*id)?)),
            Value::Relationship(id) => Datum::Relationship(Box::new(self.relationship(*id)?)),
            Value::Path(path) => {
                let nodes = path.nodes.iter().map(|id| self.node(*id)).collect::<Result<_>>()?;
                let relationships = path.relationships.iter().map(|id| self.relationship(*id));
                let relationships = relationships.collect::<Result<_>>()?;
                Datum::Path(Box::new(PathDatum { nodes, relationships }))
            }
        })
    }

    fn text(&mut self, text: &str) -> Result<String> {
        self.take(TEXT + text.len())?;
        Ok(text.to_owned())
    }

    /// A node; empty if the query has deleted it.
    fn node(&mut self, id: i64) -> Result<NodeDatum> {
        self.take(size_of::<NodeDatum>())?;
        let run = self.run;
        if run.is_deleted(Entity::Node(id)) {
            return Ok(NodeDatum { id, labels: Vec::new(), properties: BTreeMap::new() });
        }
        let mut numbers = Vec::new();
        run.graph.node_labels(id, &mut numbers)?;
        let mut labels = Vec::with_capacity(numbers.len());
        for label in numbers {
            self.take(size_of::<String>())?;
            labels.push(self.text(&run.graph.label_name(label)?)?);
        }
        labels.sort_unstable();
        Ok(NodeDatum { id, labels, properties: self.properties(&Value::Node(id))? })
    }

    fn relationship(&mut self, id: i64) -> Result<RelationshipDatum> {
        self.take(size_of::<RelationshipDatum>())?;
        let run = self.run;
        let edge = run.edge(id)?;
        let kind = self.text(&run.graph.type_name(edge.kind)?)?;
        let properties = if run.is_deleted(Entity::Edge(id)) {
            BTreeMap::new()
        } else {
            self.properties(&Value::Relationship(id))?
        };
        Ok(RelationshipDatum { id, kind, start: edge.start, end: edge.end, properties })
    }

    fn properties(&mut self, of: &Value) -> Result<BTreeMap<String, Datum>> {
        let all = properties(self.run, of)?;
        self.entries(all.entries())
    }

    fn entries(
        &mut self,
        entries: &[(std::sync::Arc<str>, Value)],
    ) -> Result<BTreeMap<String, Datum>> {
        // B-tree nodes are at least half full.
        self.take(MAP * entries.len().div_ceil(6))?;
        entries.iter().map(|(key, value)| Ok((self.text(key)?, self.datum(value)?))).collect()
    }
}
