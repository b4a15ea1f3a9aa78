use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::origin::{call as call_of, instance};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("package_clause", Rule::Ask(package), Form::Unknown),
        ("import_spec", Rule::Ask(import), Form::Unknown),
        ("function_declaration", Rule::Ask(function), Form::Unknown),
        ("method_declaration", Rule::Ask(method), Form::Unknown),
        ("type_spec", Rule::Ask(class), Form::Unknown),
        ("type_alias", Rule::Ask(class), Form::Unknown),
        ("struct_type", Rule::Ask(members), Form::Unknown),
        ("interface_type", Rule::Ask(members), Form::Unknown),
        ("field_declaration", Rule::Ask(field), Form::Unknown),
        ("method_elem", Rule::Ask(method_spec), Form::Unknown),
        ("const_spec", Rule::Ask(constants), Form::Unknown),
        ("var_spec", Rule::Ask(variables), Form::Unknown),
        ("short_var_declaration", Rule::Ask(short), Form::Unknown),
        ("parameter_declaration", Rule::Ask(parameter), Form::Unknown),
        ("variadic_parameter_declaration", Rule::Ask(parameter), Form::Unknown),
        ("type_parameter_declaration", Rule::Ask(type_parameter), Form::Unknown),
        ("range_clause", Rule::Ask(range), Form::Unknown),
        ("func_literal", Rule::Ask(shared::closure), Form::Unknown),
        ("block", Rule::Block, Form::Unknown),
        ("if_statement", Rule::Block, Form::Unknown),
        ("for_statement", Rule::Block, Form::Unknown),
        ("expression_case", Rule::Block, Form::Unknown),
        ("type_case", Rule::Block, Form::Unknown),
        ("call_expression", Rule::Call(Field::Function), Form::Ask(call)),
        (
            "selector_expression",
            Rule::Member(Field::Field),
            Form::Member(Field::Operand, Field::Field),
        ),
        ("qualified_type", Rule::Member(Field::Name), Form::Member(Field::Package, Field::Name)),
        ("composite_literal", Rule::Pass, Form::Ask(made)),
        ("keyed_element", Rule::Ask(keyed), Form::Unknown),
        ("type_assertion_expression", Rule::Pass, Form::Ask(asserted)),
        ("unary_expression", Rule::Pass, Form::Field(Field::Operand)),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("index_expression", Rule::Pass, Form::Element(Field::Operand)),
        ("identifier", Rule::Name, Form::Name),
        ("package_identifier", Rule::Pass, Form::Name),
        ("type_identifier", Rule::Type, Form::Name),
        ("generic_type", Rule::Pass, Form::Applied(Field::Type, Field::TypeArguments)),
        ("pointer_type", Rule::Pass, Form::Same),
        ("slice_type", Rule::Pass, Form::Ask(list)),
        ("array_type", Rule::Pass, Form::Ask(list)),
        ("map_type", Rule::Pass, Form::Ask(list)),
        ("channel_type", Rule::Pass, Form::Ask(list)),
        ("parameter_list", Rule::Pass, Form::Ask(first_result)),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: false,
    in_order: true,
    read_type: None,
    callee: None,
};

fn package<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.namespace = named(node).next().map(|name| build.of(name).to_owned());
    Enter::Over
}

/// A package is called by the last part of its path, unless the import says otherwise.
fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(path) = build.field(node, Field::Path) else { return Enter::Over };
    let path = path.trim_matches(['"', '`']);
    match build.field(node, Field::Name) {
        Some("_") => shared::import(build, node, path, Imported::Module, None, false),
        Some(".") => shared::import(build, node, path, Imported::All, None, false),
        Some(name) => shared::import(build, node, path, Imported::Module, Some(name), false),
        None => {
            let mut parts = path.rsplit('/');
            let last = parts.next().unwrap_or(path);
            // The last part may be the version: `example.com/a/v2`.
            let version = last.strip_prefix('v').is_some_and(|v| v.parse::<u32>().is_ok());
            let name = if version { parts.next().unwrap_or(last) } else { last };
            shared::import(build, node, path, Imported::Module, Some(name), false);
        }
    }
    Enter::Over
}

fn is_public(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let text = build.of(name);
    let found = shared::function(build, node, name, build.child(node, Field::Result));
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = is_public(text);
        let kinds = ["Test", "Benchmark", "Fuzz", "Example"];
        draft.definition.test = kinds.iter().any(|kind| text.starts_with(kind));
    }
    shared::inside(found)
}

fn method<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let receiver = build.child(node, Field::Receiver).and_then(|list| named(list).next());
    let owner = receiver.and_then(|receiver| build.child(receiver, Field::Type));
    let owner = owner.map(|owner| match owner.kind() {
        "pointer_type" => owner.named_child(0).unwrap_or(owner),
        _ => owner,
    });
    build.pass(name);
    let text = build.of(name);
    let Some(index) = build.note(node, name, text, Kind::Method, None) else { return Enter::Into };
    build.sign(index, node, build.child(node, Field::Body));
    let scope = build.open(ScopeKind::Function(Some(index)));
    let result = build.child(node, Field::Result);
    if let Some(draft) = build.draft(index) {
        draft.owner = owner;
        draft.value = result.map_or(Source::Unknown, Source::Type);
        draft.definition.exported = is_public(text);
    }
    Enter::Inside(Some(scope), Some(index))
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let (Some(name), Some(body)) = (build.child(node, Field::Name), build.child(node, Field::Type))
    else {
        return Enter::Into;
    };
    let kind = match body.kind() {
        "struct_type" => Kind::Struct,
        "interface_type" => Kind::Interface,
        _ => Kind::Type,
    };
    let bases =
        embedded(build, body).into_iter().map(|base| (base, ReferenceKind::Inherit)).collect();
    let found = shared::class(build, node, name, kind, bases);
    let text = build.of(name);
    if let Some((index, _)) = found {
        build.wrap(body, index);
        shared::export(build, Some(index), is_public(text));
        if let Some(draft) = build.draft(index).filter(|_| kind == Kind::Type) {
            draft.value = Source::Alias(body);
        }
    }
    match found {
        Some((index, _)) => Enter::Inside(None, Some(index)),
        None => Enter::Into,
    }
}

/// Fields without a name, whose methods are those of the whole.
fn embedded<'t>(build: &Build<'t>, body: Node<'t>) -> Vec<Node<'t>> {
    let list = match body.kind() {
        "struct_type" => child_of(body, "field_declaration_list"),
        "interface_type" => Some(body),
        _ => None,
    };
    let parts = list.into_iter().flat_map(named);
    let types = parts.filter_map(|part| match part.kind() {
        "field_declaration" if build.child(part, Field::Name).is_none() => {
            build.child(part, Field::Type)
        }
        "type_elem" => part.named_child(0).filter(|_| part.named_child_count() == 1),
        _ => None,
    });
    let is_name = |one: &Node<'_>| {
        matches!(one.kind(), "type_identifier" | "qualified_type" | "generic_type")
    };
    types.filter(is_name).collect()
}

fn members<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    match build.take_wrapped(node) {
        Some(index) => Enter::Open(ScopeKind::Class(index)),
        None => Enter::Open(ScopeKind::Block),
    }
}

fn field<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if !matches!(build.scopes.kind(build.scope), ScopeKind::Class(_)) {
        return Enter::Into;
    }
    let typed = build.child(node, Field::Type);
    for name in named(node).filter(|child| child.kind() == "field_identifier") {
        let text = build.of(name);
        let index = build.note(node, name, text, Kind::Field, build.within);
        if let Some(draft) = index.and_then(|index| build.draft(index)) {
            draft.definition.exported = is_public(text);
            draft.value = shared::source(typed, None);
        }
    }
    Enter::Into
}

fn method_spec<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let text = build.of(name);
    let index = build.note(node, name, text, Kind::Method, build.within);
    let result = build.child(node, Field::Result);
    if let Some(draft) = index.and_then(|index| build.draft(index)) {
        draft.definition.exported = is_public(text);
        draft.value = result.map_or(Source::Unknown, Source::Type);
    }
    Enter::Open(ScopeKind::Block)
}

fn constants<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    declared(build, node, Kind::Constant)
}

fn variables<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    declared(build, node, Kind::Variable)
}

fn declared<'t>(build: &mut Build<'t>, node: Node<'t>, kind: Kind) -> Enter {
    let typed = build.child(node, Field::Type);
    let values = build.child(node, Field::Value);
    let names: Vec<Node<'t>> = named(node).filter(|child| child.kind() == "identifier").collect();
    for (index, name) in names.into_iter().enumerate() {
        let value = values.and_then(|values| named(values).nth(index));
        let before = build.drafts.len() as u32;
        shared::variable(build, node, name, kind, shared::source(typed, value));
        let text = build.of(name);
        if build.drafts.len() as u32 > before {
            shared::export(build, Some(before), is_public(text));
        }
    }
    Enter::Into
}

/// `a, err := f()`: the first name gets the first result.
fn short<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    else {
        return Enter::Into;
    };
    let values: Vec<Node<'t>> = named(right).collect();
    for (index, name) in named(left).enumerate().filter(|(_, name)| name.kind() == "identifier") {
        let source = values.get(index).map_or(Source::Unknown, |value| Source::Value(*value));
        build.bind(build.scope, name, node.end_byte(), source);
    }
    Enter::Into
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let typed = build.child(node, Field::Type);
    for name in named(node).filter(|child| child.kind() == "identifier") {
        build.bind(build.scope, name, node.start_byte(), shared::source(typed, None));
    }
    Enter::Into
}

fn type_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for name in named(node).filter(|child| child.kind() == "identifier") {
        shared::type_parameter(build, name, None);
    }
    Enter::Into
}

/// `for i, x := range xs`: the second name is the element.
fn range<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    {
        for (index, name) in named(left).enumerate() {
            let source = match index {
                1 => Source::Element(std::rc::Rc::new(Source::Value(right))),
                _ => Source::Unknown,
            };
            build.bind(build.scope, name, node.start_byte(), source);
        }
    }
    Enter::Into
}

/// The names of fields in a literal are not names of the file.
fn keyed<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let key = named(node).next().and_then(|element| element.named_child(0));
    if let Some(key) = key.filter(|key| key.kind() == "identifier") {
        build.pass(key);
    }
    Enter::Into
}

/// `new(T)` makes a T, `append(xs, …)` gives what `xs` is.
fn call<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let Some(function) = build.child(node, Field::Function) else { return Origin::Unknown };
    let first = || build.child(node, Field::Arguments).and_then(|list| named(list).next());
    match build.of(function) {
        "new" | "make" => first().map_or(Origin::Unknown, |made| build.instance(made, place)),
        "append" => first().map_or(Origin::Unknown, |list| build.origin(list, place)),
        _ => call_of(build.origin(function, place)),
    }
}

fn made<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Type);
    class.map_or(Origin::Unknown, |class| build.instance(class, place))
}

fn asserted<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    made(build, node, place)
}

/// A list of results is what the first of them is.
fn first_result<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let first = named(node).next().and_then(|first| build.child(first, Field::Type));
    first.map_or(Origin::Unknown, |typed| build.origin(typed, place))
}

fn list<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let element =
        [Field::Element, Field::Value].into_iter().find_map(|field| build.child(node, field));
    let element = element.map_or(Origin::Unknown, |element| build.origin(element, place));
    match instance(element) {
        Origin::Instance(element) => {
            Origin::Applied(Box::new(Origin::Name("slice".to_owned())), vec![*element])
        }
        _ => Origin::Unknown,
    }
}
