mod bind;
mod modules;
mod types;

use isolith_types::DefinitionKind as Kind;
use isolith_types::{Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::origin::instance;
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("function_declaration", Rule::Ask(function), Form::Unknown),
        ("generator_function_declaration", Rule::Ask(function), Form::Unknown),
        ("function_signature", Rule::Ask(function), Form::Unknown),
        ("function_expression", Rule::Ask(closure), Form::Unknown),
        ("generator_function", Rule::Ask(closure), Form::Unknown),
        ("arrow_function", Rule::Ask(closure), Form::Unknown),
        ("class_declaration", Rule::Ask(class), Form::Unknown),
        ("abstract_class_declaration", Rule::Ask(class), Form::Unknown),
        ("class", Rule::Ask(class), Form::Unknown),
        ("method_definition", Rule::Ask(method), Form::Unknown),
        ("method_signature", Rule::Ask(method), Form::Unknown),
        ("abstract_method_signature", Rule::Ask(method), Form::Unknown),
        ("field_definition", Rule::Ask(field), Form::Unknown),
        ("public_field_definition", Rule::Ask(field), Form::Unknown),
        ("property_signature", Rule::Ask(field), Form::Unknown),
        ("pair", Rule::Ask(field), Form::Unknown),
        ("interface_declaration", Rule::Ask(types::interface), Form::Unknown),
        ("type_alias_declaration", Rule::Ask(types::alias), Form::Unknown),
        ("enum_declaration", Rule::Ask(types::enumeration), Form::Unknown),
        ("internal_module", Rule::Ask(types::namespace), Form::Unknown),
        ("module", Rule::Ask(types::namespace), Form::Unknown),
        ("type_parameter", Rule::Ask(types::parameter), Form::Unknown),
        ("object", Rule::Ask(members), Form::Unknown),
        ("object_type", Rule::Ask(members), Form::Unknown),
        ("variable_declarator", Rule::Ask(bind::variable), Form::Unknown),
        ("required_parameter", Rule::Ask(bind::typed_parameter), Form::Unknown),
        ("optional_parameter", Rule::Ask(bind::typed_parameter), Form::Unknown),
        ("formal_parameters", Rule::Ask(bind::parameters), Form::Unknown),
        ("catch_clause", Rule::Ask(bind::catch), Form::Unknown),
        ("for_in_statement", Rule::Ask(bind::for_each), Form::Unknown),
        ("for_statement", Rule::Block, Form::Unknown),
        ("function_type", Rule::Block, Form::Unknown),
        ("constructor_type", Rule::Block, Form::Unknown),
        ("call_signature", Rule::Block, Form::Unknown),
        ("construct_signature", Rule::Block, Form::Unknown),
        ("index_signature", Rule::Block, Form::Unknown),
        ("statement_block", Rule::Block, Form::Unknown),
        ("return_statement", Rule::Ask(returns), Form::Unknown),
        ("assignment_expression", Rule::Ask(bind::assignment), Form::Field(Field::Right)),
        ("import_statement", Rule::Ask(modules::import), Form::Unknown),
        ("export_statement", Rule::Ask(modules::export), Form::Unknown),
        ("call_expression", Rule::Call(Field::Function), Form::Call(Field::Function)),
        ("new_expression", Rule::Call(Field::Constructor), Form::Ask(made)),
        ("member_expression", MEMBER, Form::Member(Field::Object, Field::Property)),
        ("subscript_expression", Rule::Pass, Form::Element(Field::Object)),
        ("identifier", Rule::Name, Form::Name),
        ("shorthand_property_identifier", Rule::Name, Form::Name),
        ("this", Rule::Pass, Form::This),
        ("super", Rule::Pass, Form::Super),
        ("await_expression", Rule::Pass, Form::Awaited),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("non_null_expression", Rule::Pass, Form::Same),
        ("satisfies_expression", Rule::Pass, Form::Same),
        ("as_expression", Rule::Pass, Form::Ask(types::cast)),
        ("ternary_expression", Rule::Pass, Form::Field(Field::Consequence)),
        ("binary_expression", Rule::Pass, Form::Ask(either)),
        ("type_identifier", Rule::Type, Form::Name),
        (
            "nested_type_identifier",
            Rule::Member(Field::Name),
            Form::Member(Field::Module, Field::Name),
        ),
        ("nested_identifier", MEMBER, Form::Member(Field::Object, Field::Property)),
        ("generic_type", Rule::Pass, Form::Applied(Field::Name, Field::TypeArguments)),
        ("union_type", Rule::Pass, Form::Ask(types::any)),
        ("intersection_type", Rule::Pass, Form::Ask(types::any)),
        ("array_type", Rule::Pass, Form::Ask(types::array)),
        ("type_annotation", Rule::Pass, Form::Same),
        ("parenthesized_type", Rule::Pass, Form::Same),
        ("readonly_type", Rule::Pass, Form::Same),
        ("constraint", Rule::Pass, Form::Same),
        ("this_type", Rule::Pass, Form::Ask(types::this)),
        ("type_query", Rule::Pass, Form::Ask(types::query)),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Never,
    bare_members: false,
    in_order: false,
    read_type: None,
    callee: None,
};

const MEMBER: Rule = Rule::Member(Field::Property);

pub(super) fn is_function(value: Node<'_>) -> bool {
    matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function")
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    build.pass(name);
    match build.define(node, name, Kind::Function) {
        Some(index) => body(build, node, node, index),
        None => Enter::Into,
    }
}

/// The inside of a function that is a definition. `whole` has the name, `node` the rest.
fn body<'t>(build: &mut Build<'t>, whole: Node<'t>, node: Node<'t>, index: u32) -> Enter {
    let inner = build.child(node, Field::Body);
    build.sign(index, whole, inner);
    let scope = build.open(ScopeKind::Function(Some(index)));
    let typed = build.child(node, Field::ReturnType);
    let exported = build.is_exporting(whole);
    if let Some(draft) = build.draft(index) {
        draft.definition.exported |= exported;
        draft.value = typed.map_or(Source::Unknown, Source::Type);
        if let Some(inner) = inner.filter(|inner| inner.kind() != "statement_block") {
            draft.returns.push((inner, scope));
        }
    }
    if let Some(parameter) = build.child(node, Field::Parameter) {
        build.bind(scope, parameter, parameter.start_byte(), Source::Unknown);
    }
    Enter::Inside(Some(scope), Some(index))
}

/// A function without a name of its own may have been given one.
fn closure<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(index) = build.take_wrapped(node) {
        return body(build, node, node, index);
    }
    let scope = build.open(ScopeKind::Function(None));
    for field in [Field::Parameter, Field::Name] {
        if let Some(name) = build.child(node, field) {
            build.bind(scope, name, name.start_byte(), Source::Unknown);
        }
    }
    Enter::Inside(Some(scope), None)
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let name = build.child(node, Field::Name);
    if let Some(name) = name {
        build.pass(name);
    }
    let index = match (build.take_wrapped(node), name) {
        (Some(index), _) => index,
        (None, Some(name)) => match build.define(node, name, Kind::Class) {
            Some(index) => index,
            None => return Enter::Open(ScopeKind::Block),
        },
        (None, None) => return Enter::Open(ScopeKind::Block),
    };
    build.sign(index, node, build.child(node, Field::Body));
    let around = build.within.replace(index);
    let mut bases = Vec::new();
    let heritage = child_of(node, "class_heritage");
    for clause in heritage.into_iter().flat_map(named) {
        let (kind, parts) = match clause.kind() {
            "extends_clause" => (
                ReferenceKind::Inherit,
                build.child(clause, Field::Value).into_iter().collect::<Vec<_>>(),
            ),
            "implements_clause" => (ReferenceKind::Implement, named(clause).collect()),
            _ => (ReferenceKind::Inherit, vec![clause]),
        };
        for base in parts {
            types::base(build, base, kind);
            bases.push(base);
        }
    }
    build.within = around;
    let exported = build.is_exporting(node);
    if let Some(draft) = build.draft(index) {
        draft.bases = bases;
        draft.definition.exported |= exported;
    }
    let scope = build.open(ScopeKind::Class(index));
    Enter::Inside(Some(scope), Some(index))
}

fn method<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let is_member = matches!(build.scopes.kind(build.scope), ScopeKind::Class(_));
    if !is_member {
        return Enter::Open(ScopeKind::Function(None));
    }
    let text = build.of(name);
    let kind = if text == "constructor" {
        Kind::Constructor
    } else if build.has_word(node, "get") || build.has_word(node, "set") {
        Kind::Property
    } else {
        Kind::Method
    };
    let Some(index) = build.note(node, name, text.trim_matches(['"', '\'']), kind, build.within)
    else {
        return Enter::Open(ScopeKind::Function(None));
    };
    if let Some(draft) = build.draft(index) {
        draft.definition.exported = !text.starts_with('#');
    }
    body(build, node, node, index)
}

/// A field of a class, an interface or an object that has a name.
fn field<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let ScopeKind::Class(class) = build.scopes.kind(build.scope) else { return Enter::Into };
    let name = [Field::Name, Field::Property, Field::Key]
        .into_iter()
        .find_map(|field| build.child(node, field));
    let value = build.child(node, Field::Value);
    let Some(name) = name else { return Enter::Into };
    let text = build.of(name).trim_matches(['"', '\'']);
    let function = value.filter(|value| is_function(*value));
    let kind = if function.is_some() { Kind::Method } else { Kind::Field };
    build.is_new_member(class, text);
    let Some(index) = build.note(node, name, text, kind, build.within) else {
        return Enter::Into;
    };
    let source = match (build.child(node, Field::Type), value) {
        (Some(typed), _) => Source::Type(typed),
        (None, Some(value)) => Source::Value(value),
        (None, None) => Source::Unknown,
    };
    match function {
        Some(function) => build.wrap(function, index),
        None => build.sign(index, node, None),
    }
    give_members(build, value, index);
    if let Some(draft) = build.draft(index) {
        draft.definition.exported = !text.starts_with('#');
        draft.value = if function.is_some() { Source::Unknown } else { source };
    }
    Enter::Inside(None, Some(index))
}

/// What an object has belongs to the definition that it is the value of.
fn give_members<'t>(build: &mut Build<'t>, value: Option<Node<'t>>, index: u32) {
    let mut value = value;
    while let Some(inner) =
        value.filter(|value| matches!(value.kind(), "as_expression" | "satisfies_expression"))
    {
        value = inner.named_child(0);
    }
    if let Some(value) = value.filter(|value| matches!(value.kind(), "object" | "object_type")) {
        build.wrap(value, index);
    }
}

fn members<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    match build.take_wrapped(node) {
        Some(index) => Enter::Open(ScopeKind::Class(index)),
        None => Enter::Open(ScopeKind::Block),
    }
}

fn returns<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let nothing = |value: &Node<'_>| matches!(value.kind(), "null" | "undefined");
    if let Some(value) = node.named_child(0).filter(|value| !nothing(value)) {
        build.returned(value);
    }
    Enter::Into
}

/// `new X()` is a value of X.
fn made<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Constructor);
    class.map_or(Origin::Unknown, |class| instance(build.origin(class, place)))
}

/// `a ?? b`, `a || b`: what is known of either.
fn either<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    if !matches!(build.field(node, Field::Operator), Some("??" | "||" | "&&")) {
        return Origin::Unknown;
    }
    let side = |field: Field| {
        build.child(node, field).map_or(Origin::Unknown, |side| build.origin(side, place))
    };
    match side(Field::Left) {
        Origin::Unknown => side(Field::Right),
        left => left,
    }
}
