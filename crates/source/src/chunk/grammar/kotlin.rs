use isolith_types::SymbolKind::{Class, Constant, Enum, Function, Interface, Type};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Name, Table, bare_type, block, child_of, define, field_text,
    first_children, named, text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::kotlin,
    rules: &[
        ("class_declaration", Action::Ask(class)),
        ("object_declaration", named(Class)),
        ("companion_object", block(Name::Fixed("Companion"))),
        ("function_declaration", Action::Ask(function)),
        ("secondary_constructor", define(Function, Name::Fixed("constructor"))),
        ("property_declaration", Action::Ask(property)),
        ("type_alias", define(Type, Name::Field("type"))),
        ("class_body", Action::Enter),
        ("enum_class_body", Action::Enter),
        ("function_body", Action::EnterLarge),
        ("block", Action::EnterLarge),
        ("modifiers", Action::Modifiers),
        ("annotation", Action::Attribute),
        ("line_comment", Action::Comment),
        ("block_comment", Action::Comment),
    ],
    bodies: &["class_body", "enum_class_body", "function_body", "block"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

fn class<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    let kind = if first_children(node).any(|child| child.kind() == "interface") {
        Interface
    } else if child_of(node, "enum_class_body").is_some() {
        Enum
    } else {
        Class
    };
    Found::symbol(kind, name).into()
}

/// `fun Foo.bar()` is a member of `Foo`: the type stands before the name.
fn function<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(name) = node.child_by_field_name("name") else { return Answer::Skip };
    let before = first_children(node).take_while(|child| child.start_byte() < name.start_byte());
    let receiver = before
        .filter(|child| {
            matches!(child.kind(), "user_type" | "nullable_type" | "parenthesized_type")
        })
        .last()
        .map(|receiver| bare_type(text_of(receiver, text).trim_end_matches('?')));
    Found::symbol(Function, text_of(name, text)).map(|found| found.owned_by(receiver)).into()
}

/// At the level of the file, or `const`.
fn property<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let top = node.start_position().column == 0;
    let modifiers = child_of(node, "modifiers").map(|modifiers| text_of(modifiers, text));
    let fixed = modifiers.is_some_and(|words| words.split_whitespace().any(|word| word == "const"));
    let name = child_of(node, "variable_declaration")
        .and_then(|declaration| child_of(declaration, "identifier"));
    match name.filter(|_| top || fixed) {
        Some(name) => Found::symbol(Constant, text_of(name, text)).into(),
        None => Answer::Skip,
    }
}
