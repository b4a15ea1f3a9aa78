use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("using_directive", Rule::Ask(using), Form::Unknown),
        ("namespace_declaration", Rule::Ask(namespace), Form::Unknown),
        ("file_scoped_namespace_declaration", Rule::Ask(whole_file), Form::Unknown),
        ("class_declaration", Rule::Ask(class), Form::Unknown),
        ("struct_declaration", Rule::Ask(class), Form::Unknown),
        ("record_declaration", Rule::Ask(class), Form::Unknown),
        ("interface_declaration", Rule::Ask(class), Form::Unknown),
        ("enum_declaration", Rule::Ask(class), Form::Unknown),
        ("enum_member_declaration", Rule::Ask(constant), Form::Unknown),
        ("method_declaration", Rule::Ask(method), Form::Unknown),
        ("constructor_declaration", Rule::Ask(method), Form::Unknown),
        ("local_function_statement", Rule::Ask(method), Form::Unknown),
        ("property_declaration", Rule::Ask(property), Form::Unknown),
        ("field_declaration", Rule::Pass, Form::Unknown),
        ("variable_declaration", Rule::Ask(variables), Form::Unknown),
        ("parameter", Rule::Ask(parameter), Form::Unknown),
        ("implicit_parameter", Rule::Ask(implicit), Form::Unknown),
        ("declaration_expression", Rule::Ask(parameter), Form::Unknown),
        ("declaration_pattern", Rule::Ask(parameter), Form::Unknown),
        ("catch_declaration", Rule::Ask(parameter), Form::Unknown),
        ("foreach_statement", Rule::Ask(for_each), Form::Unknown),
        ("type_parameter", Rule::Ask(type_parameter), Form::Unknown),
        ("lambda_expression", Rule::Ask(shared::closure), Form::Unknown),
        ("anonymous_method_expression", Rule::Ask(shared::closure), Form::Unknown),
        ("block", Rule::Block, Form::Unknown),
        ("for_statement", Rule::Block, Form::Unknown),
        ("invocation_expression", Rule::Call(Field::Function), Form::Call(Field::Function)),
        ("object_creation_expression", Rule::Call(Field::Type), Form::Ask(made)),
        (
            "member_access_expression",
            Rule::Member(Field::Name),
            Form::Member(Field::Expression, Field::Name),
        ),
        ("qualified_name", Rule::Member(Field::Name), Form::Member(Field::Qualifier, Field::Name)),
        ("generic_name", Rule::Pass, Form::Ask(generic)),
        ("identifier", Rule::Name, Form::Name),
        ("argument", Rule::Ask(argument), Form::Unknown),
        ("attribute", Rule::Pass, Form::Unknown),
        ("nullable_type", Rule::Pass, Form::Field(Field::Type)),
        ("array_type", Rule::Pass, Form::Ask(array)),
        ("cast_expression", Rule::Pass, Form::Ask(made)),
        ("as_expression", Rule::Pass, Form::Ask(converted)),
        ("await_expression", Rule::Pass, Form::Awaited),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("element_access_expression", Rule::Pass, Form::Element(Field::Expression)),
        ("assignment_expression", Rule::Pass, Form::Field(Field::Right)),
        ("this", Rule::Pass, Form::This),
        ("base", Rule::Pass, Form::Super),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: true,
    in_order: true,
    read_type: None,
    callee: None,
};

/// `using A.B;` opens a namespace, `using C = A.B;` names one thing of it.
fn using<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let alias = build.child(node, Field::Name);
    let path = named(node).filter(|part| Some(*part) != alias).last();
    let Some(path) = path.map(|path| build.of(path)) else { return Enter::Over };
    match (alias.map(|alias| build.of(alias)), path.rsplit_once('.')) {
        (Some(alias), Some((module, name))) => {
            shared::import(
                build,
                node,
                module,
                Imported::Name(name.to_owned()),
                Some(alias),
                false,
            );
        }
        _ => shared::import(build, node, path, Imported::All, None, false),
    }
    Enter::Over
}

fn namespace<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    match build.child(node, Field::Name) {
        Some(name) => shared::namespace(build, node, name),
        None => Enter::Into,
    }
}

fn whole_file<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
        build.namespace = Some(build.of(name).to_owned());
    }
    Enter::Into
}

fn has<'t>(build: &Build<'t>, node: Node<'t>, word: &str) -> bool {
    named(node).any(|child| child.kind() == "modifier" && build.of(child) == word)
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let kind = match node.kind() {
        "interface_declaration" => Kind::Interface,
        "enum_declaration" => Kind::Enum,
        "struct_declaration" | "record_declaration" => Kind::Struct,
        _ => Kind::Class,
    };
    // An enum has a number's type in this place.
    let list = child_of(node, "base_list").filter(|_| kind != Kind::Enum);
    let bases = list.into_iter().flat_map(named).filter(|base| base.kind() != "argument_list");
    let bases = bases.map(|base| (base, ReferenceKind::Inherit)).collect();
    let public = has(build, node, "public");
    let found = shared::class(build, node, name, kind, bases);
    shared::export(build, found.map(|(index, _)| index), public);
    shared::inside(found)
}

fn constant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let index = shared::field(build, node, name, Kind::Constant, Source::Unknown);
        shared::export(build, index, true);
    }
    Enter::Into
}

fn method<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let tests = ["Fact", "Theory", "Test", "TestMethod", "TestCase"];
    let attributes = named(node).filter(|child| child.kind() == "attribute_list");
    let attributes: Vec<&str> = attributes.map(|list| build.of(list)).collect();
    let is_test = attributes.iter().any(|list| {
        let bare = list.trim_start_matches('[');
        tests.iter().any(|test| {
            bare.strip_prefix(test).is_some_and(|rest| rest.starts_with([']', '(', ',']))
        })
    });
    let returns =
        [Field::Returns, Field::Type].into_iter().find_map(|field| build.child(node, field));
    let found = shared::function(build, node, name, returns);
    let exported = !has(build, node, "private");
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = exported;
        draft.definition.test = is_test;
        if node.kind() == "constructor_declaration" {
            draft.definition.kind = Kind::Constructor;
        }
    }
    shared::inside(found)
}

fn property<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let source = shared::source(build.child(node, Field::Type), None);
    let index = shared::field(build, node, name, Kind::Property, source);
    let exported = !has(build, node, "private");
    shared::export(build, index, exported);
    match index {
        Some(index) => {
            let scope = build.open(ScopeKind::Function(None));
            Enter::Inside(Some(scope), Some(index))
        }
        None => Enter::Into,
    }
}

/// The type of a variable, unless it is `var`.
fn type_of<'t>(build: &Build<'t>, node: Node<'t>) -> Option<Node<'t>> {
    let typed = build.child(node, Field::Type);
    typed.filter(|typed| typed.kind() != "implicit_type" && build.of(*typed) != "var")
}

fn variables<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let typed = type_of(build, node);
    let kind = match build.scopes.kind(build.scope) {
        ScopeKind::Class(_) => Kind::Field,
        _ => Kind::Variable,
    };
    for one in named(node).filter(|child| child.kind() == "variable_declarator") {
        if let Some(name) = build.child(one, Field::Name) {
            let value = named(one).filter(|child| *child != name).last();
            shared::variable(build, one, name, kind, shared::source(typed, value));
        }
    }
    Enter::Into
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let source = shared::source(type_of(build, node), None);
        build.bind(build.scope, name, node.start_byte(), source);
    }
    Enter::Into
}

/// `f(name: value)` names a parameter of another function.
fn argument<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
    }
    Enter::Into
}

fn implicit<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.bind(build.scope, node, node.start_byte(), Source::Unknown);
    Enter::Over
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let (Some(name), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    {
        let source = match type_of(build, node) {
            Some(typed) => Source::Type(typed),
            None => Source::Element(std::rc::Rc::new(Source::Value(right))),
        };
        build.bind(scope, name, node.start_byte(), source);
    }
    Enter::Inside(Some(scope), None)
}

fn type_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        shared::type_parameter(build, name, None);
    }
    Enter::Into
}

fn made<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Type);
    class.map_or(Origin::Unknown, |class| build.instance(class, place))
}

fn converted<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Right);
    class.map_or(Origin::Unknown, |class| build.instance(class, place))
}

fn generic<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    build.applied(child_of(node, "identifier"), child_of(node, "type_argument_list"), place)
}

fn array<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let element = build.child(node, Field::Type);
    let element = element.map_or(Origin::Unknown, |element| build.origin(element, place));
    Origin::Applied(Box::new(Origin::Name("[]".to_owned())), vec![element])
}
