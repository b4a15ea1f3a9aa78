use std::collections::HashMap;

use crate::ast::{
    Expr, ExprKind, LabelExpr, Name, NodePattern, PathPattern, Quantifier, RelPattern,
};
use crate::error::{Detail, Result};
use crate::ir::{
    Ex, ListComprehension, Pattern, PatternNode, PatternPath, PatternRel, Slot, Symbol,
};

use super::{Checker, Type};

/// A pattern being built, and the slots it has so far.
#[derive(Default)]
pub(super) struct PatternBuilder {
    pattern: Pattern,
    nodes: HashMap<Slot, usize>,
    rels: HashMap<Slot, usize>,
    /// Whether new variables are forbidden.
    closed: bool,
}

impl Checker<'_> {
    /// Checks the patterns of one `MATCH` and declares their variables.
    pub(super) fn match_pattern(&mut self, patterns: &[PathPattern]) -> Result<Pattern> {
        let mut builder = PatternBuilder::default();
        for pattern in patterns {
            self.read_path(&mut builder, pattern)?;
        }
        Ok(builder.pattern)
    }

    /// Checks a pattern that may not declare variables.
    pub(super) fn closed_pattern(&mut self, pattern: &PathPattern) -> Result<Pattern> {
        let mut builder = PatternBuilder { closed: true, ..PatternBuilder::default() };
        self.read_path(&mut builder, pattern)?;
        Ok(builder.pattern)
    }

    fn read_path(&mut self, builder: &mut PatternBuilder, path: &PathPattern) -> Result<()> {
        if path.shortest.is_some() && path.steps.len() != 1 {
            let message = "a shortest path must have exactly one relationship between two nodes";
            return self.error(path.span, Detail::InvalidRelationshipPattern, message);
        }
        if let Some(name) = &path.variable
            && self.scope.find(&name.text).is_some()
        {
            return self.already_bound(name);
        }
        let start = self.read_node(builder, &path.start)?;
        let mut from = start;
        let mut rels = Vec::new();
        for (rel, node) in &path.steps {
            // The relationship's variable is declared before that of the next node.
            let at = self.read_rel(builder, rel, from)?;
            let to = self.read_node(builder, node)?;
            builder.pattern.rels[at].to = to;
            builder.pattern.rels[at].shortest = path.shortest;
            if path.shortest.is_some() {
                self.check_shortest(&builder.pattern.rels[at], path)?;
            }
            rels.push(at);
            from = to;
        }
        if let Some(name) = &path.variable {
            if self.scope.find(&name.text).is_some() {
                return self.already_bound(name);
            }
            let slot = self.declare(&name.text, Type::Path);
            builder.pattern.paths.push(PatternPath { slot, start, rels });
        }
        Ok(())
    }

    fn check_shortest(&self, rel: &PatternRel, path: &PathPattern) -> Result<()> {
        if rel.length.is_some_and(|(min, _)| min > 1) {
            let message = "the minimum length of a shortest path must be 0 or 1";
            return self.error(path.span, Detail::InvalidRelationshipPattern, message);
        }
        if rel.bound {
            let message = "the relationships of a shortest path cannot be already bound";
            return self.error(path.span, Detail::VariableAlreadyBound, message);
        }
        Ok(())
    }

    fn read_node(&mut self, builder: &mut PatternBuilder, node: &NodePattern) -> Result<usize> {
        let labels = self.symbols(&node.labels);
        let mut bound = false;
        let slot = match &node.variable {
            None => self.slot(),
            Some(name) => match self.scope.find(&name.text).cloned() {
                Some(variable) => {
                    self.expect_kind(name, &variable.kind, &Type::Node)?;
                    bound = true;
                    variable.slot
                }
                None if builder.closed => return self.undefined(name),
                None => self.declare(&name.text, Type::Node),
            },
        };
        let properties = self.pattern_properties(&node.properties)?;
        if let Some(choice) = &node.choice {
            let condition = self.label_condition(slot, choice);
            builder.pattern.conditions.push(condition);
        }
        if let Some(filter) = &node.filter {
            builder.pattern.conditions.extend(self.filters(filter)?);
        }
        if let Some(&at) = builder.nodes.get(&slot) {
            let known = &mut builder.pattern.nodes[at];
            known.labels.extend(labels);
            known.properties.extend(properties);
            return Ok(at);
        }
        let at = builder.pattern.nodes.len();
        builder.nodes.insert(slot, at);
        builder.pattern.nodes.push(PatternNode { slot, bound, labels, properties });
        Ok(at)
    }

    fn read_rel(
        &mut self,
        builder: &mut PatternBuilder,
        rel: &RelPattern,
        from: usize,
    ) -> Result<usize> {
        let types = self.symbols(&rel.types);
        let mut bound = false;
        let kind = if rel.length.is_some() {
            Type::List(Box::new(Type::Relationship))
        } else {
            Type::Relationship
        };
        let slot = match &rel.variable {
            None => self.slot(),
            Some(name) => match self.scope.find(&name.text).cloned() {
                Some(variable) => {
                    self.expect_kind(name, &variable.kind, &kind)?;
                    if builder.rels.contains_key(&variable.slot) {
                        let message =
                            format!("the relationship {} occurs twice in the pattern", name.text);
                        let detail = Detail::RelationshipUniquenessViolation;
                        return self.error(name.span, detail, message);
                    }
                    bound = true;
                    variable.slot
                }
                None if builder.closed => return self.undefined(name),
                None => self.declare(&name.text, kind),
            },
        };
        let properties = self.pattern_properties(&rel.properties)?;
        if let Some(choice) = &rel.choice {
            let condition = self.type_condition(slot, choice, rel.length.is_some());
            builder.pattern.conditions.push(condition);
        }
        if let Some(filter) = &rel.filter {
            if rel.length.is_some() {
                return self.unsupported(rel.span, "WHERE in a variable-length relationship");
            }
            builder.pattern.conditions.extend(self.filters(filter)?);
        }
        let at = builder.pattern.rels.len();
        builder.rels.insert(slot, at);
        builder.pattern.rels.push(PatternRel {
            slot,
            bound,
            types,
            properties,
            from,
            to: from,
            direction: rel.direction,
            length: rel.length.map(|(min, max)| (min.unwrap_or(1), max.unwrap_or(u64::MAX))),
            shortest: None,
            named: rel.variable.is_some() || rel.choice.is_some(),
        });
        Ok(at)
    }

    /// Whether a relationship, or each of a list of them, satisfies a type expression.
    fn type_condition(&mut self, slot: Slot, choice: &LabelExpr, many: bool) -> Ex {
        if !many {
            return self.label_condition(slot, choice);
        }
        let each = self.slot();
        let filter = Some(self.label_condition(each, choice));
        let it = ListComprehension { slot: each, list: Ex::Slot(slot), filter, map: None };
        Ex::Quantifier(Quantifier::All, Box::new(it))
    }

    fn undefined<T>(&self, name: &Name) -> Result<T> {
        let message = format!("the variable {} is not defined", name.text);
        self.error(name.span, Detail::UndefinedVariable, message)
    }

    pub(super) fn expect_kind(&self, name: &Name, known: &Type, wanted: &Type) -> Result<()> {
        // For lists, compare the element types as well.
        if known.may_be(wanted) && known.element().may_be(&wanted.element()) {
            return Ok(());
        }
        let message = format!("{} is {}, not {}", name.text, known.name(), wanted.name());
        self.error(name.span, Detail::VariableTypeConflict, message)
    }

    fn pattern_properties(&mut self, properties: &Option<Expr>) -> Result<Vec<(Symbol, Ex)>> {
        let Some(expr) = properties else { return Ok(Vec::new()) };
        match &*expr.kind {
            ExprKind::Map(entries) => {
                let mut result = Vec::new();
                for (key, value) in entries {
                    let symbol = self.symbol(key);
                    result.push((symbol, self.expression(value)?.0));
                }
                Ok(result)
            }
            _ => {
                let message = "a parameter cannot be used as the properties of a pattern";
                self.error(expr.span, Detail::InvalidParameterUse, message)
            }
        }
    }
}
