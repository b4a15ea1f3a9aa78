use isolith_types::SymbolKind::Heading;
use tree_sitter::Node;

use super::{Action, Answer, Found, Table, first_children, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::toml,
    rules: &[
        ("table", Action::Ask(table)),
        ("pair", Action::Ask(pair)),
        ("comment", Action::Comment),
    ],
    bodies: &["pair"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// `[a.b]` is called `a.b`. Elements of arrays have no name of their own.
fn table<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    key(node, text).into()
}

/// Only the outermost keys are visited; they begin no chunk.
fn pair<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    key(node, text).map(|found| Found { declared: true, ..found }).into()
}

fn key<'t>(node: Node<'t>, text: &str) -> Option<Found<'t>> {
    let key = first_children(node).find(|child| child.kind().ends_with("_key"))?;
    Found::symbol(Heading, text_of(key, text).trim_matches(['"', '\'']))
}
