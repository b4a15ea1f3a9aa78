use isolith_types::DefinitionKind as Kind;
use isolith_types::{Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, give_members};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::origin::instance;
use crate::graph::scope::{Bound, ScopeKind, Source};
use crate::graph::syntax::Place;

pub(super) fn interface<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(index) = declared(build, node, Kind::Interface) else { return Enter::Into };
    build.sign(index, node, build.child(node, Field::Body));
    let around = build.within.replace(index);
    let extends = child_of(node, "extends_type_clause");
    let bases: Vec<Node<'t>> = extends.into_iter().flat_map(named).collect();
    for one in &bases {
        base(build, *one, ReferenceKind::Inherit);
    }
    build.within = around;
    if let Some(draft) = build.draft(index) {
        draft.bases = bases;
    }
    let scope = build.open(ScopeKind::Class(index));
    if let Some(body) = build.child(node, Field::Body) {
        build.wrap(body, index);
    }
    Enter::Inside(Some(scope), Some(index))
}

pub(super) fn alias<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(index) = declared(build, node, Kind::Type) else { return Enter::Into };
    build.sign(index, node, None);
    let value = build.child(node, Field::Value);
    give_members(build, value, index);
    if let Some(draft) = build.draft(index) {
        draft.value = value.map_or(Source::Unknown, Source::Alias);
    }
    let scope = build.open(ScopeKind::Block);
    Enter::Inside(Some(scope), Some(index))
}

pub(super) fn enumeration<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(index) = declared(build, node, Kind::Enum) else { return Enter::Into };
    let body = build.child(node, Field::Body);
    build.sign(index, node, body);
    for one in body.into_iter().flat_map(named) {
        let name = build.child(one, Field::Name).unwrap_or(one);
        let text = build.of(name).trim_matches(['"', '\'']);
        build.note(one, name, text, Kind::Constant, Some(index));
    }
    Enter::Inside(None, Some(index))
}

pub(super) fn namespace<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(index) = declared(build, node, Kind::Module) else { return Enter::Into };
    let scope = build.open(ScopeKind::Namespace);
    Enter::Inside(Some(scope), Some(index))
}

fn declared<'t>(build: &mut Build<'t>, node: Node<'t>, kind: Kind) -> Option<u32> {
    let name = build.child(node, Field::Name)?;
    build.pass(name);
    let index = build.define(node, name, kind)?;
    let exported = build.is_exporting(node);
    build.draft(index)?.definition.exported = exported;
    Some(index)
}

/// `<T extends X>`: T stands for an X.
pub(super) fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
        let constraint = build.child(node, Field::Constraint);
        let source = constraint.map_or(Source::Unknown, Source::Alias);
        let text = build.of(name);
        build.scopes.bind(build.scope, text, 0, Bound::Local(source));
    }
    Enter::Into
}

/// A class or interface that another one is made from.
pub(super) fn base<'t>(build: &mut Build<'t>, node: Node<'t>, kind: ReferenceKind) {
    let name = match node.kind() {
        "generic_type" => build.child(node, Field::Name),
        "call_expression" => None,
        _ => Some(node),
    };
    let Some(name) = name else { return };
    if name.kind() == "identifier" || name.kind() == "member_expression" {
        build.site(name, kind);
    } else {
        build.type_site(name, kind);
    }
    if matches!(name.kind(), "identifier" | "type_identifier") {
        build.pass(name);
    }
}

/// `X | null` is an X; of `X | Y` the first that is known is taken.
pub(super) fn any<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let mut parts = named(node).map(|part| build.origin(part, place));
    parts.find(|origin| *origin != Origin::Unknown).unwrap_or(Origin::Unknown)
}

pub(super) fn array<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let array = Origin::Name("Array".to_owned());
    Origin::Applied(Box::new(array), vec![build.first(node, place)])
}

pub(super) fn this<'t>(build: &Build<'t>, _node: Node<'t>, place: Place) -> Origin {
    build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::Definition)
}

/// `typeof x`: such a value is what `x` is.
pub(super) fn query<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    match build.first(node, Place { types: false, ..place }) {
        Origin::Unknown => Origin::Unknown,
        value => Origin::Applied(Box::new(Origin::Name("typeof".to_owned())), vec![value]),
    }
}

/// `x as T` is a T; `x as const` is what x is.
pub(super) fn cast<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let mut parts = named(node);
    let value = parts.next();
    match parts.next() {
        Some(target) => instance(build.origin(target, Place { types: true, ..place })),
        None => value.map_or(Origin::Unknown, |value| build.origin(value, place)),
    }
}
