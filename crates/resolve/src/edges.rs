use std::sync::Arc;

use isolith_types::{
    Certainty, CodeEdge, CodeNode, DefinitionKind, EdgeKind, FileGraph, Import, Imported, Origin,
    Reference, ReferenceKind,
};

use crate::evaluate::{EvalContext, Evaluator, Value};
use crate::modules;
use crate::project_view::{DefinitionRef, ProjectView};
use crate::{Outline, Project, Resolution, documents, tests};

/// A call on an unknown object has no candidates if more methods than this have the name.
const MAX_CANDIDATES: usize = 3;

/// Resolves the imports and references of a file to edges.
pub fn resolve(
    path: &str,
    graph: &Arc<Outline>,
    references: &[Reference],
    project: &dyn Project,
) -> Resolution {
    let view = ProjectView::new(project, path, Arc::clone(graph));
    let mut edges = Edges { evaluator: Evaluator::new(&view), edges: Vec::new() };
    edges.imports();
    for reference in references {
        edges.reference(reference);
    }
    let edges = tests::with_tests(path, graph, edges.deduplicated());
    Resolution { edges, keys: view.into_keys() }
}

struct Edges<'l, 'p> {
    evaluator: Evaluator<'l, 'p>,
    edges: Vec<CodeEdge>,
}

impl Edges<'_, '_> {
    /// Merges equal edges: the most certain one at its first line stays. An import is
    /// type-only if all its duplicates are.
    fn deduplicated(self) -> Vec<CodeEdge> {
        let mut edges = self.edges;
        edges.sort_unstable();
        // Sorting puts the most certain and first of equal edges in front.
        edges.dedup_by(|b, a| a.kind == b.kind && a.from == b.from && a.to == b.to);
        edges
    }

    fn add(&mut self, kind: EdgeKind, from: Option<u32>, to: CodeNode, sure: Certainty, line: u32) {
        let is_own = to.definition == from && *to.path == *self.evaluator.view.own().path;
        // A reference to itself says nothing, but a recursive call does.
        if !is_own || kind == EdgeKind::Calls {
            let certainty = sure;
            self.edges.push(CodeEdge { kind, from, to, certainty, type_only: false, line });
        }
    }

    fn add_import(&mut self, import: &Import, to: CodeNode) {
        let own = self.evaluator.view.own();
        if to.definition.is_some() || *to.path != *own.path {
            let Import { type_only, line, .. } = *import;
            let (kind, certainty) = (EdgeKind::Imports, Certainty::Resolved);
            self.edges.push(CodeEdge { kind, from: None, to, certainty, type_only, line });
        }
    }

    fn imports(&mut self) {
        let own = self.evaluator.view.own().clone();
        for (index, import) in own.graph.imports.iter().enumerate() {
            if import.module.is_empty() {
                continue;
            }
            let origin = Origin::Import(index as u32);
            let value = match import.what {
                Imported::Name(_) => {
                    self.evaluator.evaluate(&origin, EvalContext::new(&own, false))
                }
                _ => Value::Unknown,
            };
            let to = match value {
                // `from package import module` counts as an import of the module only.
                Value::File(file) if own.graph.language == "python" => {
                    let to = CodeNode { path: file.path.to_string(), definition: None };
                    self.add_import(import, to);
                    continue;
                }
                Value::Definition(found) => Some(found.node()),
                Value::File(file) => {
                    Some(CodeNode { path: file.path.to_string(), definition: None })
                }
                _ => None,
            };
            let (located, _) = modules::locate(self.evaluator.view, &own, &import.module);
            for path in modules::paths(self.evaluator.view, &located) {
                self.add_import(import, CodeNode { path, definition: None });
            }
            if let Some(to) = to {
                self.add_import(import, to);
            }
        }
    }

    fn reference(&mut self, reference: &Reference) {
        let Reference { within, kind, target, line } = reference;
        if *kind == ReferenceKind::Mention {
            for (to, sure) in documents::mentioned(self.evaluator.view, target) {
                self.add(EdgeKind::Documents, *within, to, sure, *line);
            }
            return;
        }
        let own = self.evaluator.view.own().clone();
        let types = matches!(kind, ReferenceKind::Inherit | ReferenceKind::Implement);
        let class = self.out_of_line_class(*within);
        let at = EvalContext::new(&own, types).with_class(class.as_ref());
        let value = self.evaluator.evaluate(target, at);
        match self.definition_of(value, *kind) {
            Some(found) => {
                let found = self.definition_of_declaration(found);
                let edge = edge_kind(*kind, *within, &own.graph, &found);
                self.add(edge, *within, found.node(), Certainty::Resolved, *line);
            }
            None if *kind == ReferenceKind::Call => self.candidates(reference),
            None => {}
        }
    }

    /// The class of a C++ method that is defined out of line: it sees the class's members.
    fn out_of_line_class(&self, within: Option<u32>) -> Option<DefinitionRef> {
        let own = self.evaluator.view.own();
        let around = own.graph.definitions.get(within? as usize)?;
        if own.graph.language != "cpp" || around.kind != DefinitionKind::Method {
            return None;
        }
        match (&around.owner, around.parent) {
            (Some(owner), _) => match self.evaluator.evaluate(owner, EvalContext::new(own, true)) {
                Value::Definition(class) => Some(class),
                _ => None,
            },
            (None, parent) => {
                own.definition(parent?).filter(|class| class.definition().kind.is_type())
            }
        }
    }

    /// The definition that a value refers to.
    fn definition_of(&self, value: Value, kind: ReferenceKind) -> Option<DefinitionRef> {
        match value {
            Value::Definition(found) => Some(found),
            Value::Applied(base, _) => self.definition_of(*base, kind),
            // Calling a module calls its default export.
            Value::File(file) if kind == ReferenceKind::Call => {
                match self.evaluator.exported(&file, "default", EvalContext::new(&file, false)) {
                    Value::Definition(found) => Some(found),
                    _ => None,
                }
            }
            Value::Super(class) => {
                let base = class.definition().bases.first()?;
                let base = self.evaluator.value(base, EvalContext::new(&class.file, true));
                self.definition_of(base, ReferenceKind::Use)
            }
            _ => None,
        }
    }

    /// The definition that belongs to a declaration, if there is exactly one.
    fn definition_of_declaration(&self, declared: DefinitionRef) -> DefinitionRef {
        const MAX_DEFINITIONS: usize = 12;
        let own = declared.definition();
        if !own.declared {
            return declared;
        }
        let named = self.evaluator.view.named(&own.name, MAX_DEFINITIONS).unwrap_or_default();
        let mut defined = named.iter().filter(|found| {
            let other = found.definition();
            let alike = other.qualified == own.qualified
                || other.qualified.ends_with(&format!(".{}", own.qualified))
                || own.qualified.ends_with(&format!(".{}", other.qualified));
            !other.declared
                && other.kind.is_callable()
                && alike
                && (other.exported || found.file.number == declared.file.number)
                && family(&found.file.graph.language) == family(&declared.file.graph.language)
        });
        match (defined.next(), defined.next()) {
            (Some(only), None) => only.clone(),
            _ => declared,
        }
    }

    /// Adds candidate edges for a method call on an unknown object, unless there are too many.
    fn candidates(&mut self, reference: &Reference) {
        let Origin::Member(object, name) = &reference.target else { return };
        let own = self.evaluator.view.own().clone();
        let object = self.evaluator.evaluate(object, EvalContext::new(&own, false));
        let object = self.evaluator.dereferenced(object, EvalContext::new(&own, false));
        if !matches!(object, Value::Unknown) {
            return;
        }
        let Some(named) = self.evaluator.view.named(name, 4 * MAX_CANDIDATES) else { return };
        let methods: Vec<&DefinitionRef> = named
            .iter()
            .filter(|found| {
                let kind = found.definition().kind;
                matches!(kind, DefinitionKind::Method)
                    && family(&found.file.graph.language) == family(&own.graph.language)
            })
            .collect();
        if methods.len() <= MAX_CANDIDATES {
            for method in methods {
                let (to, sure) = (method.node(), Certainty::Candidate);
                self.add(EdgeKind::Calls, reference.within, to, sure, reference.line);
            }
        }
    }
}

fn edge_kind(
    kind: ReferenceKind,
    within: Option<u32>,
    graph: &FileGraph,
    to: &DefinitionRef,
) -> EdgeKind {
    let is_contract = |kind| matches!(kind, DefinitionKind::Interface | DefinitionKind::Trait);
    let own = within.and_then(|index| graph.definitions.get(index as usize));
    match kind {
        ReferenceKind::Call => EdgeKind::Calls,
        ReferenceKind::Implement => EdgeKind::Implements,
        // Some languages use the same syntax for both.
        ReferenceKind::Inherit
            if is_contract(to.definition().kind)
                && own.is_some_and(|own| !is_contract(own.kind)) =>
        {
            EdgeKind::Implements
        }
        ReferenceKind::Inherit => EdgeKind::Inherits,
        ReferenceKind::Use => EdgeKind::References,
        ReferenceKind::Mention => EdgeKind::Documents,
    }
}

/// Languages that call each other's functions.
fn family(language: &str) -> &str {
    match language {
        "javascript" | "typescript" | "tsx" => "javascript",
        "c" | "cpp" => "c",
        other => other,
    }
}
