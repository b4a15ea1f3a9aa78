//! Describes how a query would run, without running it.

use crate::error::Result;
use crate::graph::Direction;
use crate::ir::{CreateItem, Project, QueryStep, SetOp, Slot, Subquery, Symbol};
use crate::plan::{self, BoundRel, Expand, Op, Seek, Total, VarExpand};
use crate::value::Datum;

use super::{EdgeSelector, Flow, Run};

/// The names of the columns of a plan.
pub(crate) const COLUMNS: [&str; 2] = ["operator", "details"];

/// Passes the operators of a query to `sink`, in the order in which a row passes them. Those of
/// subqueries are indented.
pub(super) fn explain(
    run: &Run<'_>,
    sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
) -> Result<()> {
    let mut plan = Plan { run, lines: Vec::new(), depth: 0 };
    plan.union(&run.program.union)?;
    for (operator, details) in plan.lines {
        run.budget.step()?;
        if sink(vec![Datum::Text(operator), Datum::Text(details)])? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

struct Plan<'p, 'r> {
    run: &'p Run<'r>,
    lines: Vec<(String, String)>,
    depth: usize,
}

impl<'r> Plan<'_, 'r> {
    fn line(&mut self, operator: &str, details: impl Into<String>) {
        let indent = "  ".repeat(self.depth);
        self.lines.push((format!("{indent}{operator}"), details.into()));
    }

    fn union(&mut self, subquery: &'r Subquery) -> Result<()> {
        for (at, steps) in subquery.parts.iter().enumerate() {
            if at > 0 {
                self.line(if subquery.union_all { "UnionAll" } else { "Union" }, "");
            }
            self.steps(steps)?;
        }
        Ok(())
    }

    fn within(&mut self, inner: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        inner(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn steps(&mut self, steps: &'r [QueryStep]) -> Result<()> {
        let mut ops = Vec::new();
        for step in steps {
            match step {
                QueryStep::Match(pattern) => ops.extend(plan::clause(self.run, pattern)?),
                QueryStep::Project(project) => {
                    let mut before = std::mem::take(&mut ops);
                    plan::shorten(&mut before, project);
                    self.ops(&before)?;
                    self.project(project);
                }
                other => {
                    self.ops(&std::mem::take(&mut ops))?;
                    self.step(other)?;
                }
            }
        }
        self.ops(&ops)
    }

    fn step(&mut self, step: &'r QueryStep) -> Result<()> {
        match step {
            QueryStep::Match(_) | QueryStep::Project(_) => {}
            QueryStep::Unwind { slot, .. } => self.line("Unwind", self.name(*slot)),
            QueryStep::Create(items) => self.create("Create", items),
            QueryStep::Merge(merge) => {
                self.line("Merge", "");
                return self.within(|plan| {
                    plan.ops(&plan::clause(plan.run, &merge.pattern)?)?;
                    plan.create("CreateIfNotFound", &merge.create);
                    Ok(())
                });
            }
            QueryStep::Set(ops) => self.set(ops),
            QueryStep::Delete { detach, .. } => {
                self.line(if *detach { "DetachDelete" } else { "Delete" }, "");
            }
            QueryStep::Foreach { slot, body, .. } => {
                self.line("Foreach", self.name(*slot));
                return self.within(|plan| plan.steps(body));
            }
            QueryStep::Call(call) => {
                let optional = if call.optional { "OptionalCall" } else { "Call" };
                self.line(optional, self.names(&call.columns));
                return self.within(|plan| plan.union(&call.subquery));
            }
            QueryStep::Procedure(call) => {
                let slots: Vec<Slot> = call.outputs.iter().map(|(_, slot)| *slot).collect();
                self.line("Procedure", self.names(&slots));
            }
        }
        Ok(())
    }

    fn create(&mut self, operator: &str, items: &[CreateItem]) {
        let described = items.iter().filter_map(|item| match item {
            CreateItem::Node { slot, labels, .. } => {
                let labels: String = labels.iter().map(|label| format!(":{label}")).collect();
                Some(format!("({}{labels})", self.name(*slot)))
            }
            CreateItem::Rel { slot, kind, from, to, .. } => {
                let (from, to) = (self.name(*from), self.name(*to));
                Some(format!("({from})-[{}:{kind}]->({to})", self.name(*slot)))
            }
            CreateItem::Path { .. } => None,
        });
        let described: Vec<String> = described.collect();
        self.line(operator, described.join(", "));
    }

    fn set(&mut self, ops: &[SetOp]) {
        let described = ops.iter().map(|op| match op {
            SetOp::Property { key, .. } => format!(".{key}"),
            SetOp::All { slot, .. } => self.name(*slot),
            SetOp::Labels { slot, labels, .. } => {
                let labels: String = labels.iter().map(|label| format!(":{label}")).collect();
                format!("{}{labels}", self.name(*slot))
            }
        });
        let described: Vec<String> = described.collect();
        self.line("Set", described.join(", "));
    }

    fn project(&mut self, project: &Project) {
        let columns = self.names(&project.columns);
        let grouped = project.aggregates.is_some();
        self.line(if grouped { "Aggregate" } else { "Project" }, columns);
        for (applies, operator) in [
            (project.distinct, "Distinct"),
            (!project.order.is_empty(), "Sort"),
            (project.skip.is_some(), "Skip"),
            (project.limit.is_some(), "Limit"),
            (project.filter.is_some(), "Filter"),
        ] {
            if applies {
                self.line(operator, "");
            }
        }
    }

    fn ops(&mut self, ops: &[Op<'r>]) -> Result<()> {
        ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op<'r>) -> Result<()> {
        match op {
            // What earlier clauses bound; no rows are found here.
            Op::CheckNode { .. } => {}
            Op::Labels { slot, labels } => {
                self.line("Filter", format!("{}{}", self.name(*slot), self.symbols(labels, "")));
            }
            Op::Scan { slot, label } => self.scan(*slot, *label)?,
            Op::Seek { slot, seek } => match seek {
                Seek::Id(_) => self.line("NodeById", self.name(*slot)),
                Seek::Property { key, .. } => {
                    let key = self.run.name(*key);
                    self.line("NodesByProperty", format!("{}.{key}", self.name(*slot)));
                }
            },
            Op::Expand(it) => self.expand(it),
            Op::VarExpand(it) => self.var_expand("VarLengthExpand", it),
            Op::Reach(it) => self.var_expand("DistinctEnds", it),
            Op::Weight(it) => {
                let details = self.hop(it.from, None, &it.ways, None, None);
                self.line("Degree", details);
            }
            Op::Total { what, .. } => match what {
                Total::Nodes(label) => {
                    let label = label.map(|label| self.symbols(&[label], ""));
                    self.line("CountNodes", label.unwrap_or_default());
                }
                Total::Relationships(types) => {
                    self.line("CountRelationships", self.symbols(types, "|"));
                }
            },
            Op::BoundRel(it) | Op::BoundRels(it) => self.bound(it),
            Op::Shortest(it) => {
                let details = self.hop(it.from, Some(it.to), &it.ways, Some(it.rel), None);
                self.line(if it.all { "AllShortestPaths" } else { "ShortestPath" }, details);
            }
            Op::NodeProperty { slot, key, .. } | Op::RelProperty { slot, key, .. } => {
                self.line("Filter", format!("{}.{}", self.name(*slot), self.run.name(*key)));
            }
            Op::Filter(ex) => {
                let mut slots = Vec::new();
                ex.visit(&mut |ex| {
                    if let crate::ir::Ex::Slot(slot) = ex
                        && !slots.contains(slot)
                    {
                        slots.push(*slot);
                    }
                });
                self.line("Filter", self.names(&slots));
            }
            Op::Path { slot, .. } => self.line("Path", self.name(*slot)),
            Op::Optional { ops, slots } => {
                self.line("Optional", self.names(slots));
                return self.within(|plan| plan.ops(ops));
            }
            Op::Unwind { slot, .. } => self.line("Unwind", self.name(*slot)),
            // Only `steps` makes these.
            Op::Call(_) | Op::Procedure(_) => {}
        }
        Ok(())
    }

    fn scan(&mut self, slot: Slot, label: Option<Symbol>) -> Result<()> {
        let (operator, shown, count) = match label {
            None => ("AllNodes", String::new(), self.run.graph.node_count(None)?),
            Some(symbol) => {
                let count = match self.run.label(symbol)? {
                    Some(label) => self.run.graph.node_count(Some(label))?,
                    None => 0,
                };
                ("NodesByLabel", self.symbols(&[symbol], ""), count)
            }
        };
        let count = isolith_types::counted(usize::try_from(count).unwrap_or(usize::MAX), "node");
        self.line(operator, format!("{}{shown}, {count}", self.name(slot)));
        Ok(())
    }

    fn expand(&mut self, it: &Expand<'r>) {
        let details = self.hop(it.from, Some(it.to), &it.ways, Some(it.rel), None);
        self.line(if it.to_bound { "ExpandInto" } else { "Expand" }, details);
    }

    fn var_expand(&mut self, operator: &str, it: &VarExpand<'r>) {
        let length = Some((it.min, it.max));
        let details = self.hop(it.from, Some(it.to), &it.ways, Some(it.rel), length);
        self.line(operator, details);
    }

    fn bound(&mut self, it: &BoundRel<'r>) {
        self.line("BoundRelationship", self.name(it.rel.slot));
    }

    /// A relationship as in a pattern.
    fn hop(
        &self,
        from: Slot,
        to: Option<Slot>,
        ways: &EdgeSelector<'r>,
        rel: Option<Slot>,
        length: Option<(u64, u64)>,
    ) -> String {
        let length = match length {
            None => String::new(),
            Some((min, u64::MAX)) => format!("*{min}.."),
            Some((min, max)) => format!("*{min}..{max}"),
        };
        let rel = rel.map(|rel| self.name(rel)).unwrap_or_default();
        let (left, right) = match ways.direction {
            Direction::Out => ("-", "->"),
            Direction::In => ("<-", "-"),
            Direction::Both => ("-", "-"),
        };
        let to = to.map(|to| self.name(to)).unwrap_or_default();
        let types = self.symbols(ways.types, "|");
        format!("({}){left}[{rel}{types}{length}]{right}({to})", self.name(from))
    }

    /// Labels that are all required, or types of which one is, if there is a separator.
    fn symbols(&self, symbols: &[Symbol], or: &str) -> String {
        let names: Vec<&str> = symbols.iter().map(|symbol| &**self.run.name(*symbol)).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!(":{}", names.join(if or.is_empty() { ":" } else { or })),
        }
    }

    /// The variable of a slot; empty if it has none.
    fn name(&self, slot: Slot) -> String {
        let names = &self.run.program.variables;
        names.get(slot).cloned().flatten().map(|name| name.to_string()).unwrap_or_default()
    }

    fn names(&self, slots: &[Slot]) -> String {
        let names: Vec<String> = slots.iter().map(|slot| self.name(*slot)).collect();
        names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
