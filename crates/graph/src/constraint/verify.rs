//! Compares what a query changed with the constraints.

use std::collections::BTreeSet;
use std::sync::Arc;

use isolith_types::FastMap;

use super::{Constraint, ConstraintTarget, PropertyType, Rule, format};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::graph::{Direction, Entity, GraphMut, Hop, KeyId, LabelId, TypeId};
use crate::value::{GroupKey, Value, equals, plain_text};

/// How many nodes of a label are read at a time.
const PAGE: usize = 4096;

/// Changes of fewer nodes are compared with others one by one.
const FEW: usize = 64;

/// Values in messages are cut after this many characters.
const SHOWN: usize = 60;

/// What a query changed, as far as constraints are concerned.
#[derive(Debug, Default)]
pub struct ChangedEntities {
    /// Nodes that were created, or whose labels or properties changed.
    pub nodes: BTreeSet<i64>,
    /// Nodes that lost a label, so that their relationships may be wrong.
    pub unlabelled: BTreeSet<i64>,
    /// Relationships that were created, or whose properties changed.
    pub edges: BTreeSet<i64>,
}

/// Fails if anything that was changed violates a constraint.
///
/// # Errors
/// The first violation, or a failure of the graph.
pub fn verify(
    graph: &dyn GraphMut,
    constraints: &[Constraint],
    changed: &ChangedEntities,
    budget: &Budget<'_>,
) -> Result<()> {
    let verifier = Verifier { graph, budget };
    for constraint in constraints {
        match &constraint.target {
            ConstraintTarget::Label(name) => {
                let Some(label) = graph.label_id(name)? else { continue };
                verifier.nodes(constraint, label, changed.nodes.iter().copied())?;
            }
            ConstraintTarget::Type(name) => {
                let Some(kind) = graph.type_id(name)? else { continue };
                verifier.edges(constraint, kind, changed)?;
            }
        }
    }
    Ok(())
}

/// Fails if anything in the graph violates a constraint.
pub(super) fn verify_all(
    graph: &dyn GraphMut,
    constraint: &Constraint,
    budget: &Budget<'_>,
) -> Result<()> {
    let verifier = Verifier { graph, budget };
    match &constraint.target {
        ConstraintTarget::Label(name) => {
            let Some(label) = graph.label_id(name)? else { return Ok(()) };
            verifier.pages(Some(label), |nodes| {
                verifier.each_node(constraint, label, nodes.iter().copied())
            })?;
            verifier.unique_in_label(constraint, label)
        }
        ConstraintTarget::Type(name) => {
            let Some(kind) = graph.type_id(name)? else { return Ok(()) };
            verifier.pages(None, |nodes| {
                nodes
                    .iter()
                    .try_for_each(|node| verifier.edges_of(constraint, kind, *node, Direction::Out))
            })
        }
    }
}

struct Verifier<'a> {
    graph: &'a dyn GraphMut,
    budget: &'a Budget<'a>,
}

impl Verifier<'_> {
    /// Whether a constraint covers a node or a relationship: it exists and is not derived.
    fn covers(&self, entity: Entity) -> bool {
        self.graph.refuse_change(entity).is_ok()
    }

    fn pages(
        &self,
        label: Option<LabelId>,
        mut each: impl FnMut(&[i64]) -> Result<()>,
    ) -> Result<()> {
        let (mut page, mut after) = (Vec::new(), None);
        loop {
            page.clear();
            self.graph.nodes(label, after, PAGE, &mut page)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(*last);
            each(&page)?;
        }
    }

    fn nodes(
        &self,
        constraint: &Constraint,
        label: LabelId,
        changed: impl ExactSizeIterator<Item = i64> + Clone,
    ) -> Result<()> {
        self.each_node(constraint, label, changed.clone())?;
        let (Rule::Unique(keys) | Rule::Key(keys)) = &constraint.rule else { return Ok(()) };
        let Some(keys) = self.keys(keys)? else { return Ok(()) };
        let indexed = self.most_selective(label, &keys)?;
        let is_bulk = changed.len() >= FEW
            && changed.len() as u64 * 2 > self.graph.node_count(Some(label))?;
        match indexed {
            Some(index) if !is_bulk => {
                for node in changed {
                    self.budget.step()?;
                    self.unique(constraint, label, (&keys, index), node)?;
                }
                Ok(())
            }
            _ => self.unique_in_label(constraint, label),
        }
    }

    /// Checks nodes by themselves: that properties exist and have their types.
    fn each_node(
        &self,
        constraint: &Constraint,
        label: LabelId,
        nodes: impl Iterator<Item = i64>,
    ) -> Result<()> {
        if matches!(constraint.rule, Rule::Unique(_)) {
            return Ok(());
        }
        let mut keys = Vec::new();
        for key in constraint.rule.properties() {
            keys.push(self.graph.key_id(key)?);
        }
        for node in nodes {
            self.budget.step()?;
            if !self.graph.has_node(node)? || !self.graph.has_label(node, label)? {
                continue;
            }
            for (name, key) in constraint.rule.properties().iter().zip(&keys) {
                let value = match key {
                    Some(key) => self.graph.node_property(node, *key)?,
                    None => Value::Null,
                };
                if let Some(reason) = property_problem(constraint, name, &value)
                    && self.covers(Entity::Node(node))
                {
                    return Err(violated(constraint, Entity::Node(node), &reason));
                }
            }
        }
        Ok(())
    }

    /// The ids of properties; `None` if nothing has one of them.
    fn keys(&self, names: &[Arc<str>]) -> Result<Option<Vec<KeyId>>> {
        let keys = names.iter().map(|name| self.graph.key_id(name));
        Ok(keys.collect::<Result<Option<Vec<_>>, _>>()?)
    }

    /// The position of the indexed property by which the fewest nodes are found.
    fn most_selective(&self, label: LabelId, keys: &[KeyId]) -> Result<Option<usize>> {
        let mut best = None;
        for (at, key) in keys.iter().enumerate() {
            if let Some(estimate) = self.graph.lookup_estimate(Some(label), *key)?
                && best.is_none_or(|(fewest, _)| estimate < fewest)
            {
                best = Some((estimate, at));
            }
        }
        Ok(best.map(|(_, at)| at))
    }

    /// The node's values, if it has all of them.
    fn values(&self, node: i64, keys: &[KeyId]) -> Result<Option<Vec<Value>>> {
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let value = self.graph.node_property(node, *key)?;
            if value.is_null() {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    /// Fails if another node with the label has the values of this one.
    fn unique(
        &self,
        constraint: &Constraint,
        label: LabelId,
        (keys, index): (&[KeyId], usize),
        node: i64,
    ) -> Result<()> {
        if !self.graph.has_node(node)? || !self.graph.has_label(node, label)? {
            return Ok(());
        }
        let Some(values) = self.values(node, keys)? else { return Ok(()) };
        let mut candidates = Vec::new();
        self.graph.lookup(Some(label), keys[index], &values[index], &mut candidates)?;
        for other in candidates.into_iter().filter(|other| *other != node) {
            self.budget.step()?;
            if !self.graph.has_label(other, label)? {
                continue;
            }
            let Some(others) = self.values(other, keys)? else { continue };
            let is_same =
                values.iter().zip(&others).all(|(one, two)| equals(one, two) == Some(true));
            if is_same && self.covers(Entity::Node(other)) && self.covers(Entity::Node(node)) {
                return Err(duplicate(constraint, (node, other), &values));
            }
        }
        Ok(())
    }

    /// Fails if any two nodes with the label have the same values.
    fn unique_in_label(&self, constraint: &Constraint, label: LabelId) -> Result<()> {
        let (Rule::Unique(keys) | Rule::Key(keys)) = &constraint.rule else { return Ok(()) };
        let Some(keys) = self.keys(keys)? else { return Ok(()) };
        let mut seen: FastMap<GroupKey, i64> = FastMap::default();
        let mut held = self.budget.hold();
        self.pages(Some(label), |nodes| {
            for &node in nodes {
                self.budget.step()?;
                let Some(values) = self.values(node, &keys)? else { continue };
                // Not equal even to itself.
                let has_nan = |value: &Value| equals(value, value) != Some(true);
                if values.iter().any(has_nan) || !self.covers(Entity::Node(node)) {
                    continue;
                }
                let key = GroupKey::of(values.iter());
                held.keep(key.held())?;
                if let Some(other) = seen.insert(key, node) {
                    return Err(duplicate(constraint, (node, other), &values));
                }
            }
            Ok(())
        })
    }

    fn edges(
        &self,
        constraint: &Constraint,
        kind: TypeId,
        changed: &ChangedEntities,
    ) -> Result<()> {
        for &edge in &changed.edges {
            self.edge(constraint, kind, edge)?;
        }
        if matches!(constraint.rule, Rule::Ends(_)) {
            for &node in &changed.unlabelled {
                if self.graph.has_node(node)? {
                    self.edges_of(constraint, kind, node, Direction::Both)?;
                }
            }
        }
        Ok(())
    }

    fn edges_of(
        &self,
        constraint: &Constraint,
        kind: TypeId,
        node: i64,
        direction: Direction,
    ) -> Result<()> {
        let mut hops: Vec<Hop> = Vec::new();
        self.graph.edges(node, direction, &[kind], &mut hops)?;
        hops.iter().try_for_each(|hop| self.edge(constraint, kind, hop.edge))
    }

    fn edge(&self, constraint: &Constraint, kind: TypeId, id: i64) -> Result<()> {
        self.budget.step()?;
        let Some(edge) = self.graph.edge(id)?.filter(|edge| edge.kind == kind) else {
            return Ok(());
        };
        let reason = match &constraint.rule {
            Rule::Ends(pairs) => self.ends_problem(constraint, pairs, (edge.start, edge.end))?,
            rule => {
                let name = &rule.properties()[0];
                let value = match self.graph.key_id(name)? {
                    Some(key) => self.graph.edge_property(id, key)?,
                    None => Value::Null,
                };
                property_problem(constraint, name, &value)
            }
        };
        match reason {
            Some(reason) if self.covers(Entity::Edge(id)) => {
                Err(violated(constraint, Entity::Edge(id), &reason))
            }
            _ => Ok(()),
        }
    }

    fn ends_problem(
        &self,
        constraint: &Constraint,
        pairs: &[(Arc<str>, Arc<str>)],
        (start, end): (i64, i64),
    ) -> Result<Option<String>> {
        let has = |node: i64, name: &str| match self.graph.label_id(name)? {
            Some(label) => self.graph.has_label(node, label),
            None => Ok(false),
        };
        for (from, to) in pairs {
            if has(start, from)? && has(end, to)? {
                return Ok(None);
            }
        }
        let kind = constraint.target.name();
        let pairs = pairs.iter().map(|(from, to)| format!("from :{from} to :{to}"));
        let pairs = pairs.collect::<Vec<_>>().join(", or ");
        Ok(Some(format!("a :{kind} must go {pairs}")))
    }
}

/// What is wrong with a property of a node or relationship, by itself.
fn property_problem(constraint: &Constraint, name: &str, value: &Value) -> Option<String> {
    let whose = constraint.target.name();
    match &constraint.rule {
        Rule::Exists(_) | Rule::Key(_) if value.is_null() => {
            Some(format!("a :{whose} must have the property {name}"))
        }
        Rule::Typed(_, types) if !value.is_null() && !has_type(types, value) => {
            let types = format::types(types);
            Some(format!("{name} of a :{whose} must be {types}, not {}", shown(value)))
        }
        _ => None,
    }
}

fn has_type(types: &[PropertyType], value: &Value) -> bool {
    types.iter().any(|kind| kind.holds(value))
}

fn duplicate(constraint: &Constraint, nodes: (i64, i64), values: &[Value]) -> Error {
    let (older, newer) = (nodes.0.min(nodes.1), nodes.0.max(nodes.1));
    let keys = constraint.rule.properties().iter();
    let same = keys.zip(values).map(|(key, value)| format!("{key} = {}", shown(value)));
    let same = same.collect::<Vec<_>>().join(" and ");
    let whose = constraint.target.name();
    let reason = format!("node {older} is also a :{whose} with {same}");
    violated(constraint, Entity::Node(newer), &reason)
}

fn violated(constraint: &Constraint, entity: Entity, reason: &str) -> Error {
    let shown = match entity {
        Entity::Node(id) => format!("node {id}"),
        Entity::Edge(id) => format!("relationship {id}"),
    };
    let name = &constraint.name;
    Error::violation(entity, format!("{shown} would violate the constraint {name}: {reason}"))
}

/// A value for a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => {
            let start: String = text.chars().take(SHOWN).collect();
            let more = if start.len() < text.len() { "…" } else { "" };
            format!("\"{start}{more}\"")
        }
        value => match plain_text(value) {
            Some(text) => text.into_owned(),
            None => value.type_name().to_owned(),
        },
    }
}
