use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, named};
use crate::graph::origin::{call as call_of, instance, member};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("class", Rule::Ask(class), Form::Unknown),
        ("module", Rule::Ask(class), Form::Unknown),
        ("method", Rule::Ask(method), Form::Unknown),
        ("singleton_method", Rule::Ask(method), Form::Unknown),
        ("method_parameters", Rule::Ask(parameters), Form::Unknown),
        ("block_parameters", Rule::Ask(parameters), Form::Unknown),
        ("lambda_parameters", Rule::Ask(parameters), Form::Unknown),
        ("block", Rule::Block, Form::Unknown),
        ("do_block", Rule::Block, Form::Unknown),
        ("lambda", Rule::Ask(shared::closure), Form::Unknown),
        ("assignment", Rule::Ask(assignment), Form::Field(Field::Right)),
        ("operator_assignment", Rule::Ask(assignment), Form::Field(Field::Right)),
        ("call", Rule::Ask(invocation), Form::Ask(invoked)),
        ("scope_resolution", Rule::Member(Field::Name), Form::Ask(scoped)),
        ("constant", Rule::Name, Form::Name),
        ("identifier", Rule::Ask(bare), Form::Name),
        ("instance_variable", Rule::Pass, Form::Ask(instance_variable)),
        ("self", Rule::Pass, Form::This),
        ("super", Rule::Pass, Form::Super),
        ("parenthesized_statements", Rule::Pass, Form::Same),
        ("element_reference", Rule::Pass, Form::Element(Field::Object)),
        ("rescue", Rule::Ask(rescue), Form::Unknown),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: true,
    in_order: false,
    read_type: None,
    callee: Some(callee),
};

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let name = match name.kind() {
        "scope_resolution" => build.child(name, Field::Name).unwrap_or(name),
        _ => name,
    };
    let kind = if node.kind() == "module" { Kind::Module } else { Kind::Class };
    let base = build.child(node, Field::Superclass).and_then(|base| named(base).next());
    let is_name = |base: &Node<'_>| matches!(base.kind(), "constant" | "scope_resolution");
    let bases = base.filter(is_name).map(|base| (base, ReferenceKind::Inherit));
    let test = base.is_some_and(|base| build.of(base).ends_with("Test"));
    let found = shared::class(build, node, name, kind, bases.into_iter().collect());
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = true;
        draft.definition.test = test;
    }
    shared::inside(found)
}

fn method<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let text = build.of(name);
    let found = shared::function(build, node, name, None);
    if let Some((index, scope)) = found {
        let last = build.child(node, Field::Body).and_then(|body| named(body).last());
        if let Some(draft) = build.draft(index) {
            draft.definition.exported = true;
            draft.definition.test = text.starts_with("test_");
            if text == "initialize" {
                draft.definition.kind = Kind::Constructor;
            }
            draft.returns.extend(last.map(|last| (last, scope)));
        }
    }
    shared::inside(found)
}

fn parameters<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for one in named(node) {
        let name = build.child(one, Field::Name).unwrap_or(one);
        let value = build.child(one, Field::Value);
        build.pass(name);
        let source = shared::source(None, value);
        build.bind(build.scope, name, node.start_byte(), source);
    }
    Enter::Into
}

fn rescue<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let variable = build.child(node, Field::Variable).and_then(|one| named(one).next());
    if let Some(name) = variable {
        build.pass(name);
        build.bind(build.scope, name, node.start_byte(), Source::Unknown);
    }
    Enter::Into
}

fn assignment<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    else {
        return Enter::Into;
    };
    match left.kind() {
        "identifier" => {
            build.pass(left);
            let scope = build.scope;
            build.bind(scope, left, node.end_byte(), Source::Value(right));
        }
        "constant" => {
            let index = shared::field(build, node, left, Kind::Constant, Source::Value(right));
            shared::export(build, index, true);
        }
        "instance_variable" => {
            let text = build.of(left);
            if let Some(class) = build.scopes.class(build.scope)
                && build.is_new_member(class, text)
                && let Some(index) = build.note(node, left, text, Kind::Field, Some(class))
                && let Some(draft) = build.draft(index)
            {
                draft.value = Source::Value(right);
            }
        }
        "left_assignment_list" => {
            for name in named(left).filter(|name| name.kind() == "identifier") {
                build.pass(name);
                build.bind(build.scope, name, node.end_byte(), Source::Unknown);
            }
        }
        _ => {}
    }
    Enter::Into
}

/// A bare name that is not a variable is a call.
fn bare<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.site(node, ReferenceKind::Call);
    Enter::Over
}

fn invocation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Method) else { return Enter::Into };
    build.pass(name);
    let arguments = build.child(node, Field::Arguments);
    let receiver = build.child(node, Field::Receiver);
    match (receiver, build.of(name)) {
        (None, word @ ("require" | "require_relative")) => {
            let path = arguments.and_then(|list| named(list).next());
            if let Some(path) = path.filter(|path| path.kind() == "string") {
                let text = build.of(path).trim_matches(['"', '\'']);
                let module = match word {
                    "require_relative" if !text.starts_with('.') => format!("./{text}"),
                    _ => text.to_owned(),
                };
                shared::import(build, node, &module, Imported::All, None, true);
            }
            return Enter::Over;
        }
        (None, "include" | "extend" | "prepend") => {
            if let ScopeKind::Class(class) = build.scopes.kind(build.scope) {
                for one in arguments.into_iter().flat_map(named) {
                    build.type_site(one, ReferenceKind::Inherit);
                    build.pass(one);
                    if let Some(draft) = build.draft(class) {
                        draft.bases.push(one);
                    }
                }
                return Enter::Into;
            }
        }
        _ => {}
    }
    build.site(node, ReferenceKind::Call);
    Enter::Into
}

/// `C.new` is a call of C.
fn callee<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Option<Origin> {
    if node.kind() != "call" {
        return None;
    }
    let name = build.field(node, Field::Method)?;
    Some(match build.child(node, Field::Receiver) {
        Some(receiver) if name == "new" => build.origin(receiver, place),
        Some(receiver) => member(build.origin(receiver, place), name),
        None => build.method(name, place),
    })
}

fn invoked<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let callee = callee(build, node, place);
    match build.field(node, Field::Method) {
        Some("new") => callee.map_or(Origin::Unknown, instance),
        _ => callee.map_or(Origin::Unknown, call_of),
    }
}

fn scoped<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let Some(name) = build.field(node, Field::Name) else { return Origin::Unknown };
    match build.child(node, Field::Scope) {
        Some(scope) => member(build.origin(scope, place), name),
        None => Origin::Name(name.to_owned()),
    }
}

fn instance_variable<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    match build.scopes.class(place.scope) {
        Some(class) => member(Origin::This(class), build.of(node)),
        None => Origin::Unknown,
    }
}
