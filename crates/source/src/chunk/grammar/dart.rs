use isolith_types::SymbolKind::{Class, Constant, Enum, Function, Interface, Type};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Inside, Name, Table, bare_type, child_of, define, field_text,
    first_children, named, text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::dart,
    rules: &[
        ("class_declaration", named(Class)),
        ("mixin_declaration", named(Interface)),
        ("enum_declaration", named(Enum)),
        ("extension_declaration", Action::Ask(extension)),
        ("extension_type_declaration", named(Class)),
        ("function_declaration", Action::Ask(function)),
        ("getter_declaration", Action::Ask(function)),
        ("setter_declaration", Action::Ask(function)),
        ("external_function_declaration", Action::Ask(function)),
        ("method_declaration", Action::Ask(function)),
        ("declaration", Action::Ask(constructor)),
        ("type_alias", define(Type, Name::Child("type_identifier"))),
        ("top_level_variable_declaration", Action::Ask(variable)),
        ("member_declaration", Action::Wrap),
        ("class_body", Action::Enter),
        ("enum_body", Action::Enter),
        ("extension_body", Action::Enter),
        ("annotation", Action::Attribute),
        ("comment", Action::Comment),
        ("documentation_comment", Action::Comment),
    ],
    bodies: &["class_body", "function_body"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

fn extension<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let extended = field_text(node, "class", text).map(bare_type);
    let name = extended.or_else(|| field_text(node, "name", text)).unwrap_or_default();
    Found::named(name).map(|found| found.with_inside(Inside::Members)).into()
}

fn function<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(mut signature) = node.child_by_field_name("signature") else { return Answer::Skip };
    if signature.kind() == "method_signature" {
        let inner = first_children(signature).find(|child| child.kind().ends_with("_signature"));
        signature = inner.unwrap_or(signature);
    }
    signed(signature, text).into()
}

/// Members without a body: constructors and abstract methods, not fields.
fn constructor<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    match first_children(node).find(|child| child.kind().ends_with("_signature")) {
        Some(signature) => signed(signature, text).into(),
        None => Answer::Skip,
    }
}

fn signed<'t>(signature: Node<'_>, text: &str) -> Option<Found<'t>> {
    match signature.kind() {
        "operator_signature" => Found::symbol(Function, field_text(signature, "operator", text)?),
        // `Foo.named(…)`: the last of the names.
        kind if kind.contains("constructor") => {
            let names = first_children(signature).filter(|child| child.kind() == "identifier");
            Found::symbol(Function, text_of(names.last()?, text))
        }
        _ => Found::symbol(Function, field_text(signature, "name", text)?),
    }
}

fn variable<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let list = child_of(node, "static_final_declaration_list")
        .or_else(|| child_of(node, "initialized_identifier_list"));
    let first = list.and_then(|list| list.named_child(0));
    let name = first.and_then(|first| {
        first.child_by_field_name("name").or_else(|| child_of(first, "identifier"))
    });
    Found::symbol(Constant, name.map(|name| text_of(name, text)).unwrap_or_default()).into()
}
