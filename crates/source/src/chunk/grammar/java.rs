use isolith_types::SymbolKind::{Class, Constant, Enum, Interface, Method, Struct};
use tree_sitter::Node;

use super::{Action, Answer, Found, Table, child_of, field_text, named, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::java,
    rules: &[
        ("class_declaration", named(Class)),
        ("interface_declaration", named(Interface)),
        ("annotation_type_declaration", named(Interface)),
        ("enum_declaration", named(Enum)),
        ("record_declaration", named(Struct)),
        ("method_declaration", named(Method)),
        ("constructor_declaration", named(Method)),
        ("compact_constructor_declaration", named(Method)),
        ("field_declaration", Action::Ask(field)),
        ("constant_declaration", Action::Ask(constant)),
        ("class_body", Action::Enter),
        ("interface_body", Action::Enter),
        ("annotation_type_body", Action::Enter),
        ("enum_body", Action::Enter),
        ("enum_body_declarations", Action::Enter),
        ("constructor_body", Action::EnterLarge),
        ("block", Action::EnterLarge),
        ("modifiers", Action::Modifiers),
        ("marker_annotation", Action::Attribute),
        ("annotation", Action::Attribute),
        ("line_comment", Action::Comment),
        ("block_comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// A field that is `static final`.
fn field<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let modifiers = child_of(node, "modifiers").map(|modifiers| text_of(modifiers, text));
    match modifiers {
        Some(words) if words.contains("static") && words.contains("final") => constant(node, text),
        _ => Answer::Skip,
    }
}

fn constant<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let declarator = node.child_by_field_name("declarator");
    let name = declarator.and_then(|declarator| field_text(declarator, "name", text));
    Found::symbol(Constant, name.unwrap_or_default()).into()
}
