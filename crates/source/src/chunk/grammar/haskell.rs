use isolith_types::SymbolKind::{Class, Function, Interface, Struct, Type};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, field_text, named};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::haskell,
    rules: &[
        ("declarations", Action::Enter),
        ("signature", Action::Ask(signature)),
        ("function", named(Function)),
        ("bind", named(Function)),
        ("data_type", named(Struct)),
        ("newtype", named(Struct)),
        ("data_family", named(Class)),
        ("type_synonym", named(Type)),
        ("class", named(Interface)),
        ("class_declarations", Action::Enter),
        ("instance", Action::Ask(instance)),
        ("instance_declarations", Action::Enter),
        ("comment", Action::Comment),
        ("haddock", Action::Comment),
    ],
    bodies: &["class_declarations", "instance_declarations", "match", "local_binds"],
    inner_docs: &[],
    docstring: None,
    clauses: true,
};

/// `f, g :: Int`: the first name stands for both.
fn signature<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let names = field_text(node, "name", text).or_else(|| field_text(node, "names", text));
    let first = names.and_then(|names| names.split(',').next()).unwrap_or_default();
    Found::symbol(Function, first).map(|found| found.with_inside(Inside::Nothing)).into()
}

/// What an instance defines belongs to the type that it is for.
fn instance<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let patterns = field_text(node, "patterns", text).unwrap_or_default();
    let first = patterns.trim_start_matches('(').split([' ', ')']).next().unwrap_or_default();
    let name = if first.is_empty() { field_text(node, "name", text) } else { Some(first) };
    let found = Found::named(name.unwrap_or_default());
    found.map(|found| found.with_inside(Inside::Members)).into()
}
