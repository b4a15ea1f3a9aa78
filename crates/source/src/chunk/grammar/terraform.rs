use isolith_types::SymbolKind::{Constant, Module, Struct};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, child_of, first_children, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::hcl,
    rules: &[
        ("body", Action::Enter),
        ("block", Action::Ask(block)),
        ("attribute", Action::Ask(attribute)),
        ("comment", Action::Comment),
    ],
    bodies: &["block_start"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// `resource "type" "name"` is called by its last label, and owned by the one before.
fn block<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let is_label = |child: &Node<'_>| matches!(child.kind(), "identifier" | "string_lit");
    let mut words = first_children(node).filter(is_label).map(|label| unquoted(label, text));
    let Some(kind) = words.next() else { return Answer::Skip };
    let labels: Vec<&str> = words.collect();
    let found = match (kind, &labels[..]) {
        ("locals", []) => return Answer::Enter,
        (_, []) => Found::named(kind),
        ("variable" | "output", [.., name]) => Found::symbol(Constant, name),
        ("module" | "provider", [.., name]) => Found::symbol(Module, name),
        (_, [name]) => Found::symbol(Struct, name).map(|found| found.owned_by(Some(kind))),
        (_, [.., owner, name]) => {
            Found::symbol(Struct, name).map(|found| found.owned_by(Some(owner)))
        }
    };
    found.map(|found| found.with_inside(Inside::Nothing)).into()
}

/// Of attributes, only those of `locals` and of files without blocks are visited.
fn attribute<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = child_of(node, "identifier").map(|name| text_of(name, text));
    name.and_then(|name| Found::symbol(Constant, name)).into()
}

fn unquoted<'s>(label: Node<'_>, text: &'s str) -> &'s str {
    text_of(label, text).trim_matches('"')
}
