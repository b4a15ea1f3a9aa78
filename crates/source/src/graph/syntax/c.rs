use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::scope::{Bound, ScopeKind, Source};

/// C and C++ share a table: what the one does not have, it never meets.
pub(super) static TABLE: Table = Table {
    kinds: &[
        ("preproc_include", Rule::Ask(include), Form::Unknown),
        ("preproc_def", Rule::Ask(constant), Form::Unknown),
        ("preproc_function_def", Rule::Ask(macro_definition), Form::Unknown),
        ("function_definition", Rule::Ask(function), Form::Unknown),
        ("declaration", Rule::Ask(declaration), Form::Unknown),
        ("field_declaration", Rule::Ask(declaration), Form::Unknown),
        ("parameter_declaration", Rule::Ask(parameter), Form::Unknown),
        ("optional_parameter_declaration", Rule::Ask(parameter), Form::Unknown),
        ("for_range_loop", Rule::Ask(for_each), Form::Unknown),
        ("class_specifier", Rule::Ask(class), Form::Ask(own_name)),
        ("struct_specifier", Rule::Ask(class), Form::Ask(own_name)),
        ("union_specifier", Rule::Ask(class), Form::Ask(own_name)),
        ("enum_specifier", Rule::Ask(class), Form::Ask(own_name)),
        ("enumerator", Rule::Ask(enumerator), Form::Unknown),
        ("type_definition", Rule::Ask(alias), Form::Unknown),
        ("alias_declaration", Rule::Ask(alias), Form::Unknown),
        ("namespace_definition", Rule::Ask(namespace), Form::Unknown),
        ("using_declaration", Rule::Skip, Form::Unknown),
        ("type_parameter_declaration", Rule::Ask(type_parameter), Form::Unknown),
        ("template_declaration", Rule::Block, Form::Unknown),
        ("lambda_expression", Rule::Ask(shared::closure), Form::Unknown),
        ("compound_statement", Rule::Block, Form::Unknown),
        ("for_statement", Rule::Block, Form::Unknown),
        ("call_expression", Rule::Call(Field::Function), Form::Call(Field::Function)),
        ("new_expression", Rule::Call(Field::Type), Form::Ask(made)),
        (
            "field_expression",
            Rule::Member(Field::Field),
            Form::Member(Field::Argument, Field::Field),
        ),
        (
            "qualified_identifier",
            Rule::Member(Field::Name),
            Form::Member(Field::Scope, Field::Name),
        ),
        ("template_function", Rule::Pass, Form::Field(Field::Name)),
        ("template_type", Rule::Pass, Form::Ask(generic)),
        ("identifier", Rule::Name, Form::Name),
        ("namespace_identifier", Rule::Pass, Form::Name),
        ("type_identifier", Rule::Type, Form::Name),
        ("type_descriptor", Rule::Pass, Form::Field(Field::Type)),
        ("this", Rule::Pass, Form::Ask(this)),
        ("pointer_expression", Rule::Pass, Form::Field(Field::Argument)),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("subscript_expression", Rule::Pass, Form::Element(Field::Argument)),
        ("cast_expression", Rule::Pass, Form::Ask(made)),
        ("assignment_expression", Rule::Pass, Form::Field(Field::Right)),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: true,
    in_order: true,
    read_type: None,
    callee: None,
};

/// Only what is in quotes is looked for in the project.
fn include<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(path) = build.child(node, Field::Path) {
        let text = build.of(path).trim_matches(['"', '<', '>']);
        shared::import(build, node, text, Imported::All, None, true);
    }
    Enter::Over
}

fn constant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let index = build.define(node, name, Kind::Constant);
        shared::export(build, index, true);
    }
    Enter::Over
}

fn macro_definition<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let index = build.define(node, name, Kind::Macro);
        shared::export(build, index, true);
    }
    Enter::Over
}

/// What a declarator declares, past pointers, references and arrays, and whether it is a
/// function.
fn declared<'t>(build: &Build<'t>, declarator: Node<'t>) -> (Node<'t>, bool) {
    const DEEPEST: usize = 8;
    let (mut node, mut function) = (declarator, false);
    for _ in 0..DEEPEST {
        let inner = match node.kind() {
            "function_declarator" => {
                // `int (*f)(int)` declares a pointer.
                let inner = build.child(node, Field::Declarator);
                function = inner.is_some_and(|inner| inner.kind() != "parenthesized_declarator");
                inner
            }
            "pointer_declarator" | "array_declarator" | "init_declarator" => {
                build.child(node, Field::Declarator)
            }
            "reference_declarator" | "parenthesized_declarator" => named(node).next(),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    (node, function)
}

/// Of `A::B::f` the last name, and the class before it.
fn split<'t>(build: &Build<'t>, name: Node<'t>) -> (Node<'t>, Option<Node<'t>>) {
    let (mut name, mut owner) = (name, None);
    while name.kind() == "qualified_identifier" {
        let Some(inner) = build.child(name, Field::Name) else { break };
        owner = build.child(name, Field::Scope).or(owner);
        name = inner;
    }
    (name, owner)
}

fn is_static<'t>(build: &Build<'t>, node: Node<'t>) -> bool {
    named(node)
        .any(|child| child.kind() == "storage_class_specifier" && build.of(child) == "static")
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(declarator) = build.child(node, Field::Declarator) else { return Enter::Into };
    let (whole, is_function) = declared(build, declarator);
    let (name, owner) = split(build, whole);
    if !is_function {
        return Enter::Into;
    }
    build.pass(whole);
    let member = owner.is_some() || matches!(build.scopes.kind(build.scope), ScopeKind::Class(_));
    let kind = if member { Kind::Method } else { Kind::Function };
    let index = match owner {
        Some(_) => build.note(node, name, build.of(name), kind, build.within),
        None => build.define(node, name, kind),
    };
    let Some(index) = index else { return Enter::Into };
    build.sign(index, node, build.child(node, Field::Body));
    let scope = build.open(ScopeKind::Function(Some(index)));
    if let Some(owner) = owner {
        build.scopes.bind(scope, "this", 0, Bound::Local(Source::Type(owner)));
    }
    let hidden = is_static(build, node) && !member;
    let typed = build.child(node, Field::Type);
    if let Some(draft) = build.draft(index) {
        draft.owner = owner;
        draft.value = typed.map_or(Source::Unknown, Source::Type);
        draft.definition.exported = !hidden;
    }
    Enter::Inside(Some(scope), Some(index))
}

/// Variables, fields, and functions that are defined elsewhere.
fn declaration<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let known = named_type(build, node);
    let in_class = matches!(build.scopes.kind(build.scope), ScopeKind::Class(_));
    let mut cursor = node.walk();
    let declarators: Vec<Node<'t>> =
        node.children_by_field_name("declarator", &mut cursor).collect();
    for declarator in declarators {
        let (whole, is_function) = declared(build, declarator);
        let (name, owner) = split(build, whole);
        let value = build.child(declarator, Field::Value);
        if is_function && (in_class || build.is_outside_functions()) {
            prototype(build, node, whole, in_class);
        } else if owner.is_none() && matches!(name.kind(), "identifier" | "field_identifier") {
            let kind = if in_class { Kind::Field } else { Kind::Variable };
            let before = build.drafts.len() as u32;
            shared::variable(build, node, name, kind, shared::source(known, value));
            if build.drafts.len() as u32 > before {
                let exported = !is_static(build, node);
                shared::export(build, Some(before), exported);
            }
        }
    }
    Enter::Into
}

/// The type that a declaration names; `auto` names none.
fn named_type<'t>(build: &Build<'t>, node: Node<'t>) -> Option<Node<'t>> {
    let typed = build.child(node, Field::Type)?;
    (typed.kind() != "placeholder_type_specifier").then_some(typed)
}

fn prototype<'t>(build: &mut Build<'t>, node: Node<'t>, name: Node<'t>, in_class: bool) {
    build.pass(name);
    let kind = if in_class { Kind::Method } else { Kind::Function };
    let typed = build.child(node, Field::Type);
    let Some(index) = build.define(node, name, kind) else { return };
    build.sign(index, node, None);
    if let Some(draft) = build.draft(index) {
        draft.definition.declared = true;
        draft.definition.exported = true;
        draft.value = typed.map_or(Source::Unknown, Source::Type);
    }
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let inside = build.scopes.function(build.scope);
    let in_function = matches!(build.scopes.kind(inside), ScopeKind::Function(_));
    if let Some(declarator) = build.child(node, Field::Declarator).filter(|_| in_function) {
        let (name, _) = declared(build, declarator);
        if name.kind() == "identifier" {
            let source = shared::source(build.child(node, Field::Type), None);
            build.bind(build.scope, name, node.start_byte(), source);
        }
    }
    Enter::Into
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    let known = named_type(build, node);
    if let (Some(declarator), Some(right)) =
        (build.child(node, Field::Declarator), build.child(node, Field::Right))
    {
        let (name, _) = declared(build, declarator);
        let source = match known {
            Some(known) => Source::Type(known),
            None => Source::Element(std::rc::Rc::new(Source::Value(right))),
        };
        build.bind(scope, name, node.start_byte(), source);
    }
    Enter::Inside(Some(scope), None)
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let wrapped = build.take_wrapped(node);
    let has_body = build.child(node, Field::Body).is_some();
    let kind = match node.kind() {
        "class_specifier" => Kind::Class,
        "union_specifier" => Kind::Union,
        "enum_specifier" => Kind::Enum,
        _ => Kind::Struct,
    };
    if let Some(index) = wrapped {
        return Enter::Inside(Some(build.open(ScopeKind::Class(index))), Some(index));
    }
    // Without a body it is only named: `struct x *p`.
    let name = build.child(node, Field::Name).filter(|_| has_body);
    let Some(name) = name else { return Enter::Into };
    let clause = child_of(node, "base_class_clause").into_iter().flat_map(named);
    let is_base = |base: &Node<'_>| {
        matches!(base.kind(), "type_identifier" | "qualified_identifier" | "template_type")
    };
    let bases = clause.filter(is_base).map(|base| (base, ReferenceKind::Inherit)).collect();
    let found = shared::class(build, node, name, kind, bases);
    shared::export(build, found.map(|(index, _)| index), true);
    shared::inside(found)
}

fn enumerator<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let index = shared::field(build, node, name, Kind::Constant, Source::Unknown);
        shared::export(build, index, true);
        // The names of an enum are seen beside it too.
        let outer = build.scopes.around(build.scope).nth(1);
        if let (Some(index), Some(outer)) = (index, outer) {
            let text = build.of(name);
            build.scopes.bind(outer, text, node.start_byte(), Bound::Definition(index));
        }
    }
    Enter::Into
}

/// `typedef struct { … } name` names the struct.
fn alias<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let name = build.child(node, Field::Name).or_else(|| {
        build.child(node, Field::Declarator).map(|declarator| declared(build, declarator).0)
    });
    let (Some(name), Some(typed)) = (name, build.child(node, Field::Type)) else {
        return Enter::Into;
    };
    let anonymous =
        build.child(typed, Field::Body).is_some() && build.child(typed, Field::Name).is_none();
    let kind = match typed.kind() {
        "enum_specifier" if anonymous => Kind::Enum,
        "union_specifier" if anonymous => Kind::Union,
        "struct_specifier" if anonymous => Kind::Struct,
        _ => Kind::Type,
    };
    // A type that has the name already is not another one.
    if build.field(typed, Field::Name) == Some(build.of(name)) {
        build.pass(name);
        return Enter::Into;
    }
    let source = if kind == Kind::Type { Source::Alias(typed) } else { Source::Unknown };
    let index = shared::field(build, node, name, kind, source);
    shared::export(build, index, true);
    if let Some(index) = index.filter(|_| anonymous) {
        build.wrap(typed, index);
    }
    Enter::Into
}

fn namespace<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    match build.child(node, Field::Name) {
        Some(name) => shared::namespace(build, node, name),
        None => Enter::Into,
    }
}

fn type_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = named(node).next() {
        shared::type_parameter(build, name, None);
    }
    Enter::Into
}

fn made<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Type);
    class.map_or(Origin::Unknown, |class| build.instance(class, place))
}

/// `struct x` is what `x` is.
fn own_name<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let name = build.child(node, Field::Name);
    name.map_or(Origin::Unknown, |name| build.origin(name, place))
}

/// Pointers that own what they point to are used like it.
fn generic<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let base = build.child(node, Field::Name);
    let arguments = build.child(node, Field::Arguments);
    let pointer = base.is_some_and(|base| {
        matches!(build.of(base), "unique_ptr" | "shared_ptr" | "weak_ptr" | "optional")
    });
    match arguments.and_then(|list| named(list).next()).filter(|_| pointer) {
        Some(inner) => build.origin(inner, place),
        None => build.applied(base, arguments, place),
    }
}

fn this<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    match build.scopes.find("this", place.scope, node.start_byte(), false, false) {
        Some(_) => build.name("this", node.start_byte(), place),
        None => build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::This),
    }
}
