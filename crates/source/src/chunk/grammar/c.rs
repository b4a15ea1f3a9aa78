use isolith_types::SymbolKind::{
    self, Class, Constant, Enum, Function, Interface, Macro, Module, Struct, Type,
};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Inside, Table, bare_type, child_of, field_text, first_children, named,
    text_of,
};

pub(super) static C: Table = Table { grammar: isolith_grammars::c, ..SHARED };

pub(super) static CPP: Table = Table { grammar: isolith_grammars::cpp, ..SHARED };

const SHARED: Table = Table {
    grammar: isolith_grammars::c,
    rules: &[
        ("function_definition", Action::Ask(function)),
        ("declaration", Action::Ask(declaration)),
        ("field_declaration", Action::Ask(member)),
        ("type_definition", Action::Ask(type_definition)),
        ("struct_specifier", Action::Ask(structure)),
        ("union_specifier", Action::Ask(structure)),
        ("class_specifier", Action::Ask(class)),
        ("enum_specifier", Action::Ask(enumeration)),
        ("alias_declaration", named(Type)),
        ("concept_definition", named(Interface)),
        ("namespace_definition", named(Module)),
        ("preproc_function_def", named(Macro)),
        ("preproc_def", Action::Ask(define_directive)),
        ("template_declaration", Action::Wrap),
        ("declaration_list", Action::Enter),
        ("field_declaration_list", Action::Enter),
        ("linkage_specification", Action::Enter),
        ("preproc_if", Action::Branch),
        ("preproc_ifdef", Action::Branch),
        ("preproc_else", Action::Branch),
        ("preproc_elif", Action::Branch),
        ("preproc_elifdef", Action::Branch),
        ("attribute_declaration", Action::Attribute),
        ("comment", Action::Comment),
    ],
    bodies: &["preproc_arg"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// The name that a declarator declares, which may stand behind pointers, brackets and
/// parameters, and whether it is that of a function.
fn declared(node: Node<'_>) -> Option<(Node<'_>, bool)> {
    const DEEPEST: usize = 32;
    let mut function = false;
    let mut current = node.child_by_field_name("declarator")?;
    for _ in 0..DEEPEST {
        match current.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name"
            | "operator_cast"
            | "template_function"
            | "template_method"
            | "primitive_type" => return Some((current, function)),
            // `(*f)(int)` is a variable, whatever it points to.
            "pointer_declarator" => function = false,
            "function_declarator" => function = true,
            _ => {}
        }
        let inner = current.child_by_field_name("declarator");
        current = inner.or_else(|| {
            first_children(current).filter(|child| child.is_named()).find(|child| {
                child.kind().ends_with("declarator") || child.kind().ends_with("identifier")
            })
        })?;
    }
    None
}

/// `Foo::bar` is `bar` of `Foo`.
fn found<'t>(kind: SymbolKind, name: &str) -> Option<Found<'t>> {
    let (scope, own) = match name.find("operator") {
        Some(at) => (name[..at].trim_end_matches(':'), &name[at..]),
        None => name.rsplit_once("::").unwrap_or(("", name)),
    };
    // `operator T() const` is `operator T`, but `operator()` and `operator<` are whole.
    let own = match own.strip_prefix("operator ") {
        Some(converted) => {
            &own[..own.len() - converted.len() + converted.find('(').unwrap_or(converted.len())]
        }
        None if own.starts_with("operator") => own,
        None => own.split(['<', '(']).next().unwrap_or(own),
    };
    let owner = Some(bare_type(scope)).filter(|owner| !owner.is_empty());
    Some(Found::symbol(kind, own)?.owned_by(owner))
}

fn function<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    match declared(node) {
        Some((name, _)) => found(Function, text_of(name, text)).into(),
        None => Answer::Skip,
    }
}

/// A prototype, a variable with a value, or a type that is defined on the way.
fn declaration<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some((name, is_function)) = declared(node) else { return Answer::Wrap };
    let kind = if is_function { Function } else { Constant };
    let external = child_of(node, "storage_class_specifier")
        .is_some_and(|storage| text_of(storage, text) == "extern");
    if !is_function && external {
        return Answer::Wrap;
    }
    let found = found(kind, text_of(name, text));
    found.map(|found| found.with_inside(Inside::Nothing)).into()
}

/// A method that is declared in its class and defined elsewhere.
fn member<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    match declared(node) {
        Some((name, true)) => {
            let found = found(Function, text_of(name, text));
            found.map(|found| Found { inside: Inside::Nothing, declared: true, ..found }).into()
        }
        _ => Answer::Enter,
    }
}

fn type_definition<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some((name, _)) = declared(node) else { return Answer::Skip };
    let value = node.child_by_field_name("type");
    let defined = value.filter(|value| value.child_by_field_name("body").is_some());
    let kind = match defined.map(|value| value.kind()) {
        Some("struct_specifier" | "union_specifier") => Struct,
        Some("enum_specifier") => Enum,
        _ => Type,
    };
    let found = Found::symbol(kind, text_of(name, text));
    let found = found.map(|found| found.with_inside(Inside::Nothing));
    match defined {
        Some(value) => found.map(|found| found.with_value(value)).into(),
        None => found.into(),
    }
}

fn structure<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    specifier(Struct, node, text)
}

fn class<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    specifier(Class, node, text)
}

fn enumeration<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    specifier(Enum, node, text)
}

/// Without a body it only mentions the type.
fn specifier<'t>(kind: SymbolKind, node: Node<'t>, text: &str) -> Answer<'t> {
    match (field_text(node, "name", text), node.child_by_field_name("body")) {
        (Some(name), Some(_)) => {
            let name = name.split('<').next().unwrap_or(name);
            Found::symbol(kind, name).into()
        }
        _ => Answer::Skip,
    }
}

/// Without a value it is a switch or the guard of a header.
fn define_directive<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    match (field_text(node, "name", text), node.child_by_field_name("value")) {
        (Some(name), Some(_)) => Found::symbol(Constant, name).into(),
        _ => Answer::Skip,
    }
}
