use crate::ast::{
    Clause, Expr, ExprKind, NodePattern, PathPattern, RelPattern, RemoveItem, SetItem,
};
use crate::error::{Detail, Result};
use crate::graph::Direction;
use crate::ir::{CreateItem, Ex, Match, Merge, Pattern, QueryStep, SetOp, Slot, Symbol};
use crate::value::Value;

use super::{Checker, Type};

impl Checker<'_> {
    /// Checks a clause that changes the graph.
    pub(super) fn write(&mut self, clause: &Clause) -> Result<QueryStep> {
        match clause {
            Clause::Create { patterns, .. } => {
                let mut items = Vec::new();
                for pattern in patterns {
                    if pattern.shortest.is_some() {
                        let message = "a shortest path cannot be created";
                        return self.error(pattern.span, Detail::UnexpectedSyntax, message);
                    }
                    self.create(pattern, &mut items)?;
                }
                Ok(QueryStep::Create(items))
            }
            Clause::Merge { pattern, on_create, on_match, .. } => {
                self.merge(pattern, on_create, on_match)
            }
            Clause::Set { items, .. } => {
                Ok(QueryStep::Set(items.iter().map(|item| self.set(item)).collect::<Result<_>>()?))
            }
            Clause::Remove { items, .. } => Ok(QueryStep::Set(
                items.iter().map(|item| self.remove(item)).collect::<Result<_>>()?,
            )),
            Clause::Delete { detach, targets, .. } => {
                let targets =
                    targets.iter().map(|target| self.delete(target)).collect::<Result<_>>()?;
                Ok(QueryStep::Delete { detach: *detach, targets })
            }
            _ => Ok(QueryStep::Set(Vec::new())),
        }
    }

    fn create(&mut self, path: &PathPattern, items: &mut Vec<CreateItem>) -> Result<()> {
        if let Some(name) = &path.variable
            && self.scope.find(&name.text).is_some()
        {
            return self.already_bound(name);
        }
        self.check_plain(path)?;
        let single = path.steps.is_empty();
        let start = self.create_node(&path.start, single, items)?;
        let (mut nodes, mut rels) = (vec![start], Vec::new());
        for (rel, node) in &path.steps {
            self.check_new_rel(rel)?;
            self.check_created_rel(rel, true)?;
            let from = nodes[nodes.len() - 1];
            let to = self.create_node(node, false, items)?;
            rels.push(self.create_rel(rel, from, to, items)?);
            nodes.push(to);
        }
        if let Some(name) = &path.variable {
            let slot = self.declare(&name.text, Type::Path);
            items.push(CreateItem::Path { slot, nodes, rels });
        }
        Ok(())
    }

    fn create_node(
        &mut self,
        node: &NodePattern,
        single: bool,
        items: &mut Vec<CreateItem>,
    ) -> Result<Slot> {
        if let Some(name) = &node.variable
            && let Some(variable) = self.scope.find(&name.text).cloned()
        {
            if single || !node.labels.is_empty() || node.properties.is_some() {
                return self.already_bound(name);
            }
            self.expect_kind(name, &variable.kind, &Type::Node)?;
            return Ok(variable.slot);
        }
        let properties = self.created_properties(&node.properties)?;
        let labels = node.labels.iter().map(|label| label.text.clone()).collect();
        let slot = match &node.variable {
            Some(name) => self.declare(&name.text, Type::Node),
            None => self.slot(),
        };
        items.push(CreateItem::Node { slot, labels, properties });
        Ok(slot)
    }

    fn create_rel(
        &mut self,
        rel: &RelPattern,
        from: Slot,
        to: Slot,
        items: &mut Vec<CreateItem>,
    ) -> Result<Slot> {
        let properties = self.created_properties(&rel.properties)?;
        let slot = match &rel.variable {
            Some(name) => self.declare(&name.text, Type::Relationship),
            None => self.slot(),
        };
        let (from, to) = if rel.direction == Direction::In { (to, from) } else { (from, to) };
        let kind = rel.types[0].text.clone();
        items.push(CreateItem::Rel { slot, kind, from, to, properties });
        Ok(slot)
    }

    /// Refuses conditions that say nothing of what to create.
    fn check_plain(&self, path: &PathPattern) -> Result<()> {
        let message = "what is created can only have a list of labels, one type, and properties";
        let is_plain = |choice: bool, filter: bool| !choice && !filter;
        for node in path.nodes() {
            if !is_plain(node.choice.is_some(), node.filter.is_some()) {
                return self.error(node.span, Detail::UnexpectedSyntax, message);
            }
        }
        for (rel, _) in &path.steps {
            if !is_plain(rel.choice.is_some(), rel.filter.is_some()) {
                return self.error(rel.span, Detail::UnexpectedSyntax, message);
            }
        }
        Ok(())
    }

    fn check_new_rel(&self, rel: &RelPattern) -> Result<()> {
        match &rel.variable {
            Some(name) if self.scope.find(&name.text).is_some() => self.already_bound(name),
            _ => Ok(()),
        }
    }

    fn check_created_rel(&self, rel: &RelPattern, directed: bool) -> Result<()> {
        if rel.length.is_some() {
            let message = "variable-length relationships cannot be created";
            return self.error(rel.span, Detail::CreatingVarLength, message);
        }
        if rel.types.len() != 1 {
            let message = "a new relationship must have exactly one type";
            return self.error(rel.span, Detail::NoSingleRelationshipType, message);
        }
        if directed && rel.direction == Direction::Both {
            let message = "a new relationship must have a direction";
            return self.error(rel.span, Detail::RequiresDirectedRelationship, message);
        }
        Ok(())
    }

    fn created_properties(&mut self, properties: &Option<Expr>) -> Result<Option<Ex>> {
        properties.as_ref().map(|expr| Ok(self.expression(expr)?.0)).transpose()
    }

    fn merge(
        &mut self,
        path: &PathPattern,
        on_create: &[SetItem],
        on_match: &[SetItem],
    ) -> Result<QueryStep> {
        if path.shortest.is_some() {
            let message = "a shortest path cannot be merged";
            return self.error(path.span, Detail::UnexpectedSyntax, message);
        }
        self.check_plain(path)?;
        let named = path.nodes().filter_map(|node| Some((node, node.variable.as_ref()?)));
        for (node, name) in named {
            let redeclared = !node.labels.is_empty() || node.properties.is_some();
            let known = self.scope.find(&name.text).is_some();
            if known && (redeclared || path.steps.is_empty()) {
                return self.already_bound(name);
            }
        }
        for (rel, _) in &path.steps {
            self.check_new_rel(rel)?;
            self.check_created_rel(rel, false)?;
        }
        let pattern = self.match_pattern(std::slice::from_ref(path))?;
        let create = self.merged_items(&pattern);
        let items = |checker: &mut Self, items: &[SetItem]| {
            items.iter().map(|item| checker.set(item)).collect::<Result<Vec<_>>>()
        };
        let on_create = items(self, on_create)?;
        let on_match = items(self, on_match)?;
        let pattern = Match { optional: false, pattern, filters: Vec::new() };
        Ok(QueryStep::Merge(Box::new(Merge { pattern, create, on_create, on_match })))
    }

    /// What to create if the pattern is not found: its slots that are not yet bound. The executor
    /// takes the properties from the pattern.
    fn merged_items(&self, pattern: &Pattern) -> Vec<CreateItem> {
        let mut items = Vec::new();
        let name = |symbol: Symbol| self.names[symbol.0 as usize].clone();
        for node in pattern.nodes.iter().filter(|node| !node.bound) {
            let labels = node.labels.iter().map(|label| name(*label)).collect();
            items.push(CreateItem::Node { slot: node.slot, labels, properties: None });
        }
        for rel in &pattern.rels {
            let (from, to) = match rel.direction {
                Direction::In => (rel.to, rel.from),
                _ => (rel.from, rel.to),
            };
            let (from, to) = (pattern.nodes[from].slot, pattern.nodes[to].slot);
            let kind = name(rel.types[0]);
            items.push(CreateItem::Rel { slot: rel.slot, kind, from, to, properties: None });
        }
        if let Some(path) = pattern.paths.first() {
            let mut nodes = vec![pattern.nodes[path.start].slot];
            nodes.extend(path.rels.iter().map(|&rel| pattern.nodes[pattern.rels[rel].to].slot));
            let rels = path.rels.iter().map(|&rel| pattern.rels[rel].slot).collect();
            items.push(CreateItem::Path { slot: path.slot, nodes, rels });
        }
        items
    }

    fn set(&mut self, item: &SetItem) -> Result<SetOp> {
        match item {
            SetItem::Property { target, key, value } => {
                let (target, _) = self.expression(target)?;
                let (value, _) = self.expression(value)?;
                Ok(SetOp::Property { target, key: key.clone(), value })
            }
            SetItem::All { variable, value, merge } => {
                let slot = self.resolve(&variable.text, variable.span)?.slot;
                let (value, _) = self.expression(value)?;
                Ok(SetOp::All { slot, value, merge: *merge })
            }
            SetItem::Labels { variable, labels } => {
                let known = self.resolve(&variable.text, variable.span)?.clone();
                self.expect_kind(variable, &known.kind, &Type::Node)?;
                let labels = labels.iter().map(|label| label.text.clone()).collect();
                Ok(SetOp::Labels { slot: known.slot, labels, remove: false })
            }
        }
    }

    fn remove(&mut self, item: &RemoveItem) -> Result<SetOp> {
        match item {
            RemoveItem::Property { target, key } => {
                let (target, _) = self.expression(target)?;
                let value = Ex::Value(Value::Null);
                Ok(SetOp::Property { target, key: key.clone(), value })
            }
            RemoveItem::Labels { variable, labels } => {
                let known = self.resolve(&variable.text, variable.span)?.clone();
                self.expect_kind(variable, &known.kind, &Type::Node)?;
                let labels = labels.iter().map(|label| label.text.clone()).collect();
                Ok(SetOp::Labels { slot: known.slot, labels, remove: true })
            }
        }
    }

    fn delete(&mut self, target: &Expr) -> Result<Ex> {
        if matches!(&*target.kind, ExprKind::HasLabels(..) | ExprKind::IsLabelled(..)) {
            let message = "DELETE takes nodes, relationships and paths; use REMOVE for labels";
            return self.error(target.span, Detail::InvalidDelete, message);
        }
        let (ex, kind) = self.expression(target)?;
        if !kind.may_be_any(&[Type::Node, Type::Relationship, Type::Path]) {
            let message =
                format!("DELETE takes nodes, relationships and paths, not {}", kind.name());
            return self.error(target.span, Detail::InvalidArgumentType, message);
        }
        Ok(ex)
    }
}
