use std::sync::Arc;

use isolith_types::{
    Certainty, CodeEdge, CodeNode, DefinitionKind, EdgeKind, FileGraph, Import, Imported, Origin,
    Reference, ReferenceKind,
};

use crate::look::{Found, Look};
use crate::modules;
use crate::value::{At, Evaluate, Value};
use crate::{Outline, Project, Resolution, documents, tests};

/// If a name has more definitions than this, a call on something unknown means none of them.
const MOST_CANDIDATES: usize = 3;

/// Finds out what the names in a file mean: those that it imports, and those that it
/// refers to.
pub fn resolve(
    path: &str,
    graph: &Arc<Outline>,
    references: &[Reference],
    project: &dyn Project,
) -> Resolution {
    let look = Look::new(project, path, Arc::clone(graph));
    let mut edges = Edges { evaluate: Evaluate::new(&look), edges: Vec::new() };
    edges.imports();
    for reference in references {
        edges.reference(reference);
    }
    let edges = tests::with_tests(path, graph, edges.once());
    Resolution { edges, keys: look.into_keys() }
}

struct Edges<'l, 'p> {
    evaluate: Evaluate<'l, 'p>,
    edges: Vec<CodeEdge>,
}

impl Edges<'_, '_> {
    /// Each edge at the first line that says so, and as sure as the surest of them. An import
    /// is of types alone if all of them are.
    fn once(self) -> Vec<CodeEdge> {
        let mut edges = self.edges;
        edges.sort_unstable();
        // In this order equal edges are neighbours, the surest and first of them in front.
        edges.dedup_by(|b, a| a.kind == b.kind && a.from == b.from && a.to == b.to);
        edges
    }

    fn add(&mut self, kind: EdgeKind, from: Option<u32>, to: CodeNode, sure: Certainty, line: u32) {
        let is_own = to.definition == from && *to.path == *self.evaluate.look.own().path;
        // Naming oneself says nothing, but calling oneself does.
        if !is_own || kind == EdgeKind::Calls {
            let certainty = sure;
            self.edges.push(CodeEdge { kind, from, to, certainty, type_only: false, line });
        }
    }

    fn add_import(&mut self, import: &Import, to: CodeNode) {
        let own = self.evaluate.look.own();
        if to.definition.is_some() || *to.path != *own.path {
            let Import { type_only, line, .. } = *import;
            let (kind, certainty) = (EdgeKind::Imports, Certainty::Resolved);
            self.edges.push(CodeEdge { kind, from: None, to, certainty, type_only, line });
        }
    }

    fn imports(&mut self) {
        let own = self.evaluate.look.own().clone();
        for (index, import) in own.graph.imports.iter().enumerate() {
            if import.module.is_empty() {
                continue;
            }
            let origin = Origin::Import(index as u32);
            let value = match import.what {
                Imported::Name(_) => self.evaluate.begin(&origin, At::new(&own, false)),
                _ => Value::Unknown,
            };
            let to = match value {
                // A module that is taken out of its package stands for both.
                Value::File(file) if own.graph.language == "python" => {
                    let to = CodeNode { path: file.path.to_string(), definition: None };
                    self.add_import(import, to);
                    continue;
                }
                Value::Found(found) => Some(found.node()),
                Value::File(file) => {
                    Some(CodeNode { path: file.path.to_string(), definition: None })
                }
                _ => None,
            };
            let (located, _) = modules::locate(self.evaluate.look, &own, &import.module);
            for path in modules::paths(self.evaluate.look, &located) {
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
            for (to, sure) in documents::meant(self.evaluate.look, target) {
                self.add(EdgeKind::Documents, *within, to, sure, *line);
            }
            return;
        }
        let own = self.evaluate.look.own().clone();
        let types = matches!(kind, ReferenceKind::Inherit | ReferenceKind::Implement);
        let class = self.distant_class(*within);
        let at = At::new(&own, types).with_class(class.as_ref());
        let value = self.evaluate.begin(target, at);
        match self.meant(value, *kind) {
            Some(found) => {
                let found = self.defined(found);
                let edge = edge_kind(*kind, *within, &own.graph, &found);
                self.add(edge, *within, found.node(), Certainty::Resolved, *line);
            }
            None if *kind == ReferenceKind::Call => self.candidates(reference),
            None => {}
        }
    }

    /// In C++ a method that is written away from its class sees the members all the same.
    fn distant_class(&self, within: Option<u32>) -> Option<Found> {
        let own = self.evaluate.look.own();
        let around = own.graph.definitions.get(within? as usize)?;
        if own.graph.language != "cpp" || around.kind != DefinitionKind::Method {
            return None;
        }
        match (&around.owner, around.parent) {
            (Some(owner), _) => match self.evaluate.begin(owner, At::new(own, true)) {
                Value::Found(class) => Some(class),
                _ => None,
            },
            (None, parent) => own.found(parent?).filter(|class| class.definition().kind.is_type()),
        }
    }

    /// The definition that a value is.
    fn meant(&self, value: Value, kind: ReferenceKind) -> Option<Found> {
        match value {
            Value::Found(found) => Some(found),
            Value::Applied(base, _) => self.meant(*base, kind),
            // A module that is called is what it gives by default.
            Value::File(file) if kind == ReferenceKind::Call => {
                match self.evaluate.exported(&file, "default", At::new(&file, false)) {
                    Value::Found(found) => Some(found),
                    _ => None,
                }
            }
            Value::Super(class) => {
                let base = class.definition().bases.first()?;
                let base = self.evaluate.value(base, At::new(&class.file, true));
                self.meant(base, ReferenceKind::Use)
            }
            _ => None,
        }
    }

    /// The definition of what is only declared, if there is one and no other.
    fn defined(&self, declared: Found) -> Found {
        const MOST: usize = 12;
        let own = declared.definition();
        if !own.declared {
            return declared;
        }
        let named = self.evaluate.look.named(&own.name, MOST).unwrap_or_default();
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

    /// A method that is called on something unknown is one of few, or nothing is said.
    fn candidates(&mut self, reference: &Reference) {
        let Origin::Member(object, name) = &reference.target else { return };
        let own = self.evaluate.look.own().clone();
        let object = self.evaluate.begin(object, At::new(&own, false));
        let object = self.evaluate.settled(object, At::new(&own, false));
        if !matches!(object, Value::Unknown) {
            return;
        }
        let Some(named) = self.evaluate.look.named(name, 4 * MOST_CANDIDATES) else { return };
        let methods: Vec<&Found> = named
            .iter()
            .filter(|found| {
                let kind = found.definition().kind;
                matches!(kind, DefinitionKind::Method)
                    && family(&found.file.graph.language) == family(&own.graph.language)
            })
            .collect();
        if methods.len() <= MOST_CANDIDATES {
            for method in methods {
                let (to, sure) = (method.node(), Certainty::Candidate);
                self.add(EdgeKind::Calls, reference.within, to, sure, reference.line);
            }
        }
    }
}

fn edge_kind(kind: ReferenceKind, within: Option<u32>, graph: &FileGraph, to: &Found) -> EdgeKind {
    let is_contract = |kind| matches!(kind, DefinitionKind::Interface | DefinitionKind::Trait);
    let own = within.and_then(|index| graph.definitions.get(index as usize));
    match kind {
        ReferenceKind::Call => EdgeKind::Calls,
        ReferenceKind::Implement => EdgeKind::Implements,
        // Some languages write both alike.
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
