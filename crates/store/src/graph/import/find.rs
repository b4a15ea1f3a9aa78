//! Nodes by what a cell says of them.

use std::collections::HashMap;
use std::sync::Arc;

use isolith_graph::{Found, Graph, KeyId, LabelId, Value, equals};
use isolith_types::{Code, Failure};

use super::TableEnd;
use crate::graph::TruthGraph;

/// A cell that can name a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Number(i64),
    Text(Arc<str>),
}

impl Name {
    /// Nothing for a cell that is empty.
    pub(super) fn of(cell: &Value) -> Option<Self> {
        match cell {
            Value::Integer(number) => Some(Self::Number(*number)),
            Value::Text(text) => Some(Self::Text(Arc::clone(text))),
            _ => None,
        }
    }
}

/// What a cell names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Nothing,
    One(i64),
    Several,
}

/// The nodes of a label by a property.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    end: &'a TableEnd,
    label: LabelId,
    key: KeyId,
    known: HashMap<Name, i64>,
}

impl<'a> Finder<'a> {
    /// Nothing if no node has the label, or the property.
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
        Ok(Some(Self { end, label, key, known: HashMap::new() }))
    }

    /// The one node that a cell names, or what is wrong with it. What was found is remembered.
    pub(super) fn find(
        &mut self,
        graph: &TruthGraph<'_>,
        cell: &Value,
    ) -> Result<Result<i64, String>, Failure> {
        let Some(name) = Name::of(cell) else {
            return Ok(Err("it does not say where it begins and ends".to_owned()));
        };
        if let Some(node) = self.known.get(&name) {
            return Ok(Ok(*node));
        }
        Ok(match self.look(graph, cell)? {
            Named::One(node) => {
                self.known.insert(name, node);
                Ok(node)
            }
            Named::Nothing => Err(format!("there is no node {}", self.shown(cell))),
            Named::Several => Err(self.several(cell)),
        })
    }

    pub(super) fn look(&self, graph: &TruthGraph<'_>, cell: &Value) -> Result<Named, Failure> {
        let mut found = Vec::new();
        let how = graph.lookup(Some(self.label), self.key, cell, &mut found)?;
        let mut named = Named::Nothing;
        for node in found {
            let is_right = how == Found::Exactly
                || equals(&graph.node_property(node, self.key)?, cell) == Some(true);
            if is_right && graph.has_label(node, self.label)? {
                named = if named == Named::Nothing { Named::One(node) } else { Named::Several };
            }
        }
        Ok(named)
    }

    pub(super) fn several(&self, cell: &Value) -> String {
        format!("several nodes are {}", self.shown(cell))
    }

    fn shown(&self, cell: &Value) -> String {
        let TableEnd { label, key } = self.end;
        match cell {
            Value::Text(text) => {
                let text: String = text.chars().take(60).collect();
                format!("(:{label} {{{key}: {text:?}}})")
            }
            Value::Integer(number) => format!("(:{label} {{{key}: {number}}})"),
            _ => format!("(:{label})"),
        }
    }
}
