use isolith_types::SymbolKind::{
    Class, Constant, Enum, Function, Interface, Macro, Method, Struct, Type,
};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Inside, Name, Table, bare_type, child_of, define, field_text, named,
    text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::swift,
    rules: &[
        ("class_declaration", Action::Ask(class)),
        ("protocol_declaration", named(Interface)),
        ("function_declaration", named(Function)),
        ("protocol_function_declaration", named(Method)),
        ("init_declaration", define(Method, Name::Fixed("init"))),
        ("deinit_declaration", define(Method, Name::Fixed("deinit"))),
        ("subscript_declaration", define(Method, Name::Fixed("subscript"))),
        ("macro_declaration", define(Macro, Name::Child("simple_identifier"))),
        ("property_declaration", Action::Ask(property)),
        ("typealias_declaration", named(Type)),
        ("class_body", Action::Enter),
        ("enum_class_body", Action::Enter),
        ("protocol_body", Action::Enter),
        ("function_body", Action::EnterLarge),
        ("statements", Action::EnterLarge),
        ("modifiers", Action::Modifiers),
        ("attribute", Action::Attribute),
        ("comment", Action::Comment),
        ("multiline_comment", Action::Comment),
    ],
    bodies: &["class_body", "enum_class_body", "protocol_body", "function_body"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// An extension defines no type, but its members have one.
fn class<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).map(bare_type).unwrap_or_default();
    let kind = match field_text(node, "declaration_kind", text) {
        Some("extension") => {
            return Found::named(name).map(|found| found.with_inside(Inside::Members)).into();
        }
        Some("struct") => Struct,
        Some("enum") => Enum,
        _ => Class,
    };
    Found::symbol(kind, name).into()
}

/// At the level of the file, or `static let`.
fn property<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let top = node.start_position().column == 0;
    let modifiers = child_of(node, "modifiers").map(|modifiers| text_of(modifiers, text));
    let binding = child_of(node, "value_binding_pattern").map(|binding| text_of(binding, text));
    let fixed = binding == Some("let") && modifiers.is_some_and(|words| words.contains("static"));
    let name = field_text(node, "name", text).unwrap_or_default();
    if (top || fixed) && node.child_by_field_name("computed_value").is_none() {
        return Found::symbol(Constant, name).into();
    }
    Answer::Skip
}
