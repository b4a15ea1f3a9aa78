use isolith_types::SymbolKind::{Constant, Function};
use tree_sitter::Node;

use super::{Action, Answer, Found, Table, field_text, named};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::bash,
    rules: &[
        ("function_definition", named(Function)),
        ("variable_assignment", Action::Ask(assignment)),
        ("declaration_command", Action::Wrap),
        ("if_statement", Action::Branch),
        ("elif_clause", Action::Enter),
        ("else_clause", Action::Enter),
        ("compound_statement", Action::Enter),
        ("subshell", Action::EnterLarge),
        ("comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &["#!"],
    docstring: None,
    clauses: false,
};

/// Names in capitals are constants by custom.
fn assignment<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    if name.contains(|c: char| c.is_lowercase()) {
        return Answer::Skip;
    }
    Found::symbol(Constant, name).into()
}
