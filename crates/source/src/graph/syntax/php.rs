use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::origin::{call as call_of, member};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("namespace_definition", Rule::Ask(namespace), Form::Unknown),
        ("namespace_use_declaration", Rule::Ask(import), Form::Unknown),
        ("class_declaration", Rule::Ask(class), Form::Unknown),
        ("interface_declaration", Rule::Ask(class), Form::Unknown),
        ("trait_declaration", Rule::Ask(class), Form::Unknown),
        ("enum_declaration", Rule::Ask(class), Form::Unknown),
        ("use_declaration", Rule::Ask(traits), Form::Unknown),
        ("method_declaration", Rule::Ask(function), Form::Unknown),
        ("function_definition", Rule::Ask(function), Form::Unknown),
        ("anonymous_function", Rule::Ask(shared::closure), Form::Unknown),
        ("arrow_function", Rule::Ask(shared::closure), Form::Unknown),
        ("property_declaration", Rule::Ask(properties), Form::Unknown),
        ("property_promotion_parameter", Rule::Ask(promoted), Form::Unknown),
        ("simple_parameter", Rule::Ask(parameter), Form::Unknown),
        ("const_element", Rule::Ask(constant), Form::Unknown),
        ("enum_case", Rule::Ask(constant), Form::Unknown),
        ("assignment_expression", Rule::Ask(assignment), Form::Field(Field::Right)),
        ("foreach_statement", Rule::Ask(for_each), Form::Unknown),
        ("catch_clause", Rule::Ask(catch), Form::Unknown),
        ("return_statement", Rule::Ask(shared::returns), Form::Unknown),
        ("function_call_expression", Rule::Call(Field::Function), Form::Call(Field::Function)),
        ("member_call_expression", Rule::Ask(invocation), Form::Ask(invoked)),
        ("nullsafe_member_call_expression", Rule::Ask(invocation), Form::Ask(invoked)),
        ("scoped_call_expression", Rule::Ask(invocation), Form::Ask(invoked)),
        ("object_creation_expression", Rule::Ask(creation), Form::Ask(created)),
        (
            "member_access_expression",
            Rule::Member(Field::Name),
            Form::Member(Field::Object, Field::Name),
        ),
        ("class_constant_access_expression", Rule::Ask(access), Form::Ask(accessed)),
        ("named_type", Rule::Ask(named_type), Form::Same),
        ("optional_type", Rule::Pass, Form::Same),
        ("union_type", Rule::Pass, Form::Same),
        ("name", Rule::Pass, Form::Ask(name)),
        ("qualified_name", Rule::Pass, Form::Ask(qualified)),
        ("relative_scope", Rule::Pass, Form::Ask(relative)),
        ("variable_name", Rule::Pass, Form::Ask(variable)),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("clone_expression", Rule::Pass, Form::Same),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: false,
    in_order: false,
    read_type: None,
    callee: Some(callee),
};

fn namespace<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.field(node, Field::Name) {
        build.namespace = Some(name.to_owned());
    }
    Enter::Into
}

/// `use A\\B;`, `use A\\B as C;`, `use A\\{B, C};`, `use function A\\f;`
fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let prefix = child_of(node, "namespace_name").map(|prefix| build.of(prefix));
    let group = build.child(node, Field::Body).unwrap_or(node);
    for clause in named(group).filter(|child| child.kind() == "namespace_use_clause") {
        let Some(path) = named(clause).next().map(|path| build.of(path)) else { continue };
        let path = path.trim_start_matches('\\');
        let (inner, last) = path.rsplit_once('\\').unwrap_or(("", path));
        let module = match (prefix, inner) {
            (Some(prefix), "") => prefix.to_owned(),
            (Some(prefix), inner) => format!("{prefix}\\{inner}"),
            (None, inner) => inner.to_owned(),
        };
        let bound = build.field(clause, Field::Alias).unwrap_or(last);
        // What is in no namespace is called by its name anyway.
        if !module.is_empty() {
            let what = Imported::Name(last.to_owned());
            shared::import(build, clause, &module, what, Some(bound), false);
        }
    }
    Enter::Over
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let kind = match node.kind() {
        "interface_declaration" => Kind::Interface,
        "trait_declaration" => Kind::Trait,
        "enum_declaration" => Kind::Enum,
        _ => Kind::Class,
    };
    let mut bases = Vec::new();
    let clauses = [
        ("base_clause", ReferenceKind::Inherit),
        ("class_interface_clause", ReferenceKind::Implement),
    ];
    for (clause, kind) in clauses {
        let list = child_of(node, clause).into_iter().flat_map(named);
        bases.extend(list.map(|base| (base, kind)));
    }
    let test = build.of(name).ends_with("Test");
    let found = shared::class(build, node, name, kind, bases);
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = true;
        draft.definition.test = test;
    }
    shared::inside(found)
}

fn traits<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let ScopeKind::Class(class) = build.scopes.kind(build.scope) {
        for one in named(node).filter(|one| matches!(one.kind(), "name" | "qualified_name")) {
            build.type_site(one, ReferenceKind::Inherit);
            if let Some(draft) = build.draft(class) {
                draft.bases.push(one);
            }
        }
    }
    Enter::Over
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let hidden =
        child_of(node, "visibility_modifier").is_some_and(|word| build.of(word) == "private");
    let text = build.of(name);
    let found = shared::function(build, node, name, build.child(node, Field::ReturnType));
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = !hidden;
        if text == "__construct" {
            draft.definition.kind = Kind::Constructor;
        }
    }
    shared::inside(found)
}

fn properties<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let typed = build.child(node, Field::Type);
    for one in named(node).filter(|child| child.kind() == "property_element") {
        if let Some(name) = build.child(one, Field::Name) {
            property(build, node, name, typed);
        }
    }
    Enter::Into
}

fn property<'t>(build: &mut Build<'t>, node: Node<'t>, name: Node<'t>, typed: Option<Node<'t>>) {
    let Some(class) = build.scopes.class(build.scope) else { return };
    let text = build.of(name).trim_start_matches(['&', '$']);
    let index = build.note(node, name, text, Kind::Field, Some(class));
    if let Some(draft) = index.and_then(|index| build.draft(index)) {
        draft.value = shared::source(typed, None);
    }
}

/// `__construct(private X $x)` makes a field.
fn promoted<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        property(build, node, name, build.child(node, Field::Type));
    }
    parameter(build, node)
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let source = shared::source(build.child(node, Field::Type), None);
        build.bind(build.scope, name, node.start_byte(), source);
    }
    Enter::Into
}

fn constant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let name = build.child(node, Field::Name).or_else(|| child_of(node, "name"));
    if let Some(name) = name {
        let index = shared::field(build, node, name, Kind::Constant, Source::Unknown);
        shared::export(build, index, true);
    }
    Enter::Into
}

fn assignment<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
        && left.kind() == "variable_name"
    {
        let scope = build.scopes.function(build.scope);
        build.bind(scope, left, node.end_byte(), Source::Value(right));
    }
    Enter::Into
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let mut parts = named(node);
    let (over, each) = (parts.next(), parts.next());
    let name = each.and_then(|each| match each.kind() {
        "pair" => named(each).nth(1),
        _ => Some(each),
    });
    if let (Some(over), Some(name)) = (over, name)
        && name.kind() == "variable_name"
    {
        let source = Source::Element(std::rc::Rc::new(Source::Value(over)));
        build.bind(build.scope, name, node.start_byte(), source);
    }
    Enter::Into
}

fn catch<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let typed = build.child(node, Field::Type).and_then(|list| named(list).next());
    if let Some(name) = build.child(node, Field::Name) {
        build.bind(build.scope, name, node.start_byte(), shared::source(typed, None));
    }
    Enter::Into
}

fn invocation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.site(node, ReferenceKind::Call);
    Enter::Into
}

fn callee<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Option<Origin> {
    let object = match node.kind() {
        "member_call_expression" | "nullsafe_member_call_expression" => Field::Object,
        "scoped_call_expression" => Field::Scope,
        _ => return None,
    };
    let name = build.child(node, Field::Name).filter(|name| name.kind() == "name")?;
    let object = build.origin(build.child(node, object)?, place);
    Some(member(object, build.of(name)))
}

fn invoked<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    callee(build, node, place).map_or(Origin::Unknown, call_of)
}

fn class_name<'t>(node: Node<'t>) -> Option<Node<'t>> {
    named(node).find(|child| matches!(child.kind(), "name" | "qualified_name"))
}

fn creation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(class) = class_name(node) {
        build.type_site(class, ReferenceKind::Call);
    }
    Enter::Into
}

fn created<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    class_name(node).map_or(Origin::Unknown, |class| build.instance(class, place))
}

fn access<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.site(node, ReferenceKind::Use);
    Enter::Into
}

fn accessed<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let mut parts = named(node);
    let (Some(class), Some(name)) = (parts.next(), parts.next()) else { return Origin::Unknown };
    match build.of(name) {
        // `C::class` names the class itself.
        "class" => build.origin(class, place),
        name => member(build.origin(class, place), name),
    }
}

fn named_type<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.type_site(node, ReferenceKind::Use);
    Enter::Over
}

fn name<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    match build.of(node) {
        "self" | "static" => {
            build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::Definition)
        }
        text => build.name(text, node.start_byte(), place),
    }
}

/// `A\\B`: the first part may be imported, otherwise it is of the namespace at hand.
fn qualified<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let text = build.of(node);
    if text.starts_with('\\') {
        return Origin::Name(text.to_owned());
    }
    match (&build.namespace, text.split_once('\\')) {
        (_, None) => build.name(text, node.start_byte(), place),
        (Some(namespace), _) => Origin::Name(format!("\\{namespace}\\{text}")),
        (None, _) => Origin::Name(format!("\\{text}")),
    }
}

fn relative<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.scopes.class(place.scope);
    match (build.of(node), class) {
        ("parent", Some(class)) => Origin::Super(class),
        (_, Some(class)) => Origin::Definition(class),
        (_, None) => Origin::Unknown,
    }
}

/// `$this` is the object, other variables are what was assigned to them.
fn variable<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    match build.of(node) {
        "$this" => build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::This),
        name => match build.name(name, node.start_byte(), place) {
            Origin::Name(_) => Origin::Unknown,
            origin => origin,
        },
    }
}
