use isolith_types::SymbolKind::{Constant, Enum, Function, Struct};
use tree_sitter::Node;

use super::{Action, Answer, Found, Table, child_of, first_children, named, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::zig,
    rules: &[
        ("function_declaration", named(Function)),
        ("variable_declaration", Action::Ask(variable)),
        ("test_declaration", Action::Ask(test)),
        ("struct_declaration", Action::Enter),
        ("enum_declaration", Action::Enter),
        ("union_declaration", Action::Enter),
        ("opaque_declaration", Action::Enter),
        ("block", Action::EnterLarge),
        ("comment", Action::Comment),
    ],
    bodies: &["struct_declaration", "enum_declaration", "union_declaration", "opaque_declaration"],
    inner_docs: &["//!"],
    docstring: None,
    clauses: false,
};

/// Types are values here: `const Foo = struct { … }`. What is only imported is none.
fn variable<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(name) = child_of(node, "identifier").map(|name| text_of(name, text)) else {
        return Answer::Skip;
    };
    let call = child_of(node, "builtin_function").map(|call| text_of(call, text));
    if call.is_some_and(|call| call.starts_with("@import")) {
        return Answer::Skip;
    }
    let value = first_children(node).find(|child| child.kind().ends_with("_declaration"));
    let kind = match value.map(|value| value.kind()) {
        Some("struct_declaration" | "union_declaration" | "opaque_declaration") => Struct,
        Some("enum_declaration" | "error_set_declaration") => Enum,
        _ => Constant,
    };
    Found::symbol(kind, name).into()
}

fn test<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = child_of(node, "string").or_else(|| child_of(node, "identifier"));
    let name = name.map(|name| text_of(name, text)).unwrap_or_default();
    Found::symbol(Function, name.trim_matches('"')).into()
}
