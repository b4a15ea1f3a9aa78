use std::rc::Rc;

use isolith_types::DefinitionKind as Kind;
use isolith_types::Origin;
use tree_sitter::Node;

use super::{Field, give_members, is_function, modules};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::scope::{ScopeKind, Source};
use crate::graph::syntax::Place;

/// A name of the file is a definition, and so is a function anywhere. Other names of
/// functions are their own affair.
pub(super) fn variable<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let value = build.child(node, Field::Value);
    if let Some(value) = value
        && modules::require(build, node, name, value)
    {
        return Enter::Over;
    }
    let source = match (build.child(node, Field::Type), value) {
        (Some(typed), _) => Source::Type(typed),
        (None, Some(value)) => Source::Value(value),
        // The variable of `for (const x of …)` is bound by the loop.
        (None, None) => Source::Unknown,
    };
    let definable = value.filter(|value| is_function(*value) || value.kind() == "class");
    if name.kind() != "identifier" || (definable.is_none() && !build.is_outside_functions()) {
        let outside = build.is_outside_functions();
        pattern(build, name, &source, node.end_byte(), outside.then_some(node));
        return Enter::Into;
    }
    define(build, node, name, value, source)
}

fn define<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    value: Option<Node<'t>>,
    source: Source<'t>,
) -> Enter {
    build.pass(name);
    let text = build.of(name);
    let function = value.filter(|value| is_function(*value));
    let class = value.filter(|value| value.kind() == "class");
    let kind = match () {
        () if function.is_some() => Kind::Function,
        () if class.is_some() => Kind::Class,
        () if !text.contains(char::is_lowercase) => Kind::Constant,
        () => Kind::Variable,
    };
    let Some(index) = build.define(node, name, kind) else { return Enter::Into };
    match function.or(class) {
        Some(inner) => build.wrap(inner, index),
        None => build.sign(index, node, value.filter(|value| value.kind() == "object")),
    }
    give_members(build, value, index);
    let exported = build.is_exporting(node);
    if let Some(draft) = build.draft(index) {
        draft.definition.exported = exported;
        if function.is_none() && class.is_none() {
            draft.value = source;
        }
    }
    Enter::Inside(None, Some(index))
}

/// The names in a pattern, each with the part of the source that it stands for. With a
/// declaration they are definitions.
pub(super) fn pattern<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    source: &Source<'t>,
    at: usize,
    declared: Option<Node<'t>>,
) {
    let part = |name: &'t str| match source {
        Source::Unknown => Source::Unknown,
        source => Source::Member(Rc::new(source.clone()), name),
    };
    match node.kind() {
        "identifier" | "shorthand_property_identifier_pattern" => {
            let name = build.of(node);
            let source = match node.kind() {
                "identifier" => source.clone(),
                _ => part(name),
            };
            match declared.and_then(|_| build.define(node, node, Kind::Variable)) {
                Some(index) => {
                    build.pass(node);
                    let exported = build.is_exporting(node);
                    if let Some(draft) = build.draft(index) {
                        draft.value = source;
                        draft.definition.exported = exported;
                    }
                }
                None => build.bind(build.scope, node, at, source),
            }
        }
        "pair_pattern" => {
            let key = build.field(node, Field::Key).unwrap_or_default();
            if let Some(value) = build.child(node, Field::Value) {
                pattern(build, value, &part(key), at, declared);
            }
        }
        "assignment_pattern" | "object_assignment_pattern" => {
            let right = build.child(node, Field::Right);
            let source = match (source, right) {
                (Source::Unknown, Some(right)) => Source::Value(right),
                (source, _) => source.clone(),
            };
            if let Some(left) = build.child(node, Field::Left) {
                pattern(build, left, &source, at, declared);
            }
        }
        "object_pattern" => {
            for child in named(node) {
                pattern(build, child, source, at, declared);
            }
        }
        "array_pattern" => {
            for child in named(node) {
                pattern(build, child, &Source::Unknown, at, declared);
            }
        }
        "rest_pattern" => {
            for child in named(node) {
                pattern(build, child, &Source::Unknown, at, declared);
            }
        }
        _ => {}
    }
}

/// Parameters without types, as JavaScript has them.
pub(super) fn parameters<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for parameter in named(node) {
        pattern(build, parameter, &Source::Unknown, node.start_byte(), None);
    }
    Enter::Into
}

pub(super) fn typed_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Pattern) else { return Enter::Into };
    let source = match (build.child(node, Field::Type), build.child(node, Field::Value)) {
        (Some(typed), _) => Source::Type(typed),
        (None, Some(value)) => Source::Value(value),
        (None, None) => Source::Unknown,
    };
    // `constructor(private x: X)` is a field besides.
    let is_field = child_of(node, "accessibility_modifier").is_some();
    if let Some(class) = build.scopes.class(build.scope).filter(|_| is_field) {
        let text = build.of(name);
        if build.is_new_member(class, text)
            && let Some(index) = build.note(node, name, text, Kind::Field, Some(class))
        {
            build.sign(index, node, None);
            if let Some(draft) = build.draft(index) {
                draft.value = source.clone();
            }
        }
    }
    // What is seen inside a function type is not the function's.
    pattern(build, name, &source, name.start_byte(), None);
    Enter::Into
}

pub(super) fn catch<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let Some(parameter) = build.child(node, Field::Parameter) {
        let around = std::mem::replace(&mut build.scope, scope);
        pattern(build, parameter, &Source::Unknown, node.start_byte(), None);
        build.scope = around;
    }
    Enter::Inside(Some(scope), None)
}

pub(super) fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
        && build.child(node, Field::Kind).is_some()
    {
        let of = build.field(node, Field::Operator) == Some("of");
        let source = match of {
            true => Source::Element(Rc::new(Source::Value(right))),
            false => Source::Unknown,
        };
        let around = std::mem::replace(&mut build.scope, scope);
        pattern(build, left, &source, left.start_byte(), None);
        build.scope = around;
    }
    Enter::Inside(Some(scope), None)
}

/// `exports.x = …`, `X.prototype.y = …`, `this.x = …`.
pub(super) fn assignment<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    else {
        return Enter::Into;
    };
    if left.kind() != "member_expression" || modules::exports(build, node, left, right) {
        return Enter::Into;
    }
    let (Some(object), Some(property)) =
        (build.child(left, Field::Object), build.child(left, Field::Property))
    else {
        return Enter::Into;
    };
    let prototype = build.field(object, Field::Property) == Some("prototype");
    let owner = match prototype {
        true => build.child(object, Field::Object).unwrap_or(object),
        false => object,
    };
    let place = Place { scope: build.scope, types: false, left: 3 };
    let class = match build.origin(owner, place) {
        Origin::This(class) => class,
        Origin::Definition(class) if prototype || is_function(right) => class,
        _ => return Enter::Into,
    };
    let name = build.of(property);
    if !build.is_new_member(class, name) {
        return Enter::Into;
    }
    let kind = if is_function(right) { Kind::Method } else { Kind::Field };
    let Some(index) = build.note(node, property, name, kind, Some(class)) else {
        return Enter::Into;
    };
    if is_function(right) {
        build.wrap(right, index);
    } else if let Some(draft) = build.draft(index) {
        draft.value = Source::Value(right);
    }
    Enter::Into
}
