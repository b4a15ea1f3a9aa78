use isolith_types::SymbolKind::{Constant, Enum, Function, Interface, Macro, Module, Struct, Type};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Inside, Table, bare_type, child_of, field_text, named, text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::rust,
    rules: &[
        ("function_item", named(Function)),
        ("function_signature_item", named(Function)),
        ("struct_item", named(Struct)),
        ("union_item", named(Struct)),
        ("enum_item", named(Enum)),
        ("trait_item", named(Interface)),
        ("type_item", named(Type)),
        ("mod_item", named(Module)),
        ("const_item", named(Constant)),
        ("static_item", named(Constant)),
        ("macro_definition", named(Macro)),
        ("impl_item", Action::Ask(implementation)),
        ("macro_invocation", Action::Ask(macro_call)),
        ("declaration_list", Action::Enter),
        ("foreign_mod_item", Action::Enter),
        ("block", Action::EnterLarge),
        ("line_comment", Action::Comment),
        ("block_comment", Action::Comment),
        ("attribute_item", Action::Attribute),
    ],
    bodies: &["declaration_list"],
    inner_docs: &["//!", "/*!"],
    docstring: None,
    clauses: false,
};

/// `cfg_if! { … }` and its like hold items, which to the grammar are only tokens.
fn macro_call<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    match child_of(node, "token_tree") {
        Some(tokens) if text_of(tokens, text).starts_with('{') => Answer::Code(tokens),
        _ => Answer::Skip,
    }
}

fn implementation<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "type", text).map(bare_type).unwrap_or_default();
    Found::named(name).map(|found| found.with_inside(Inside::Members)).into()
}
