use std::ops::Range;

use isolith_types::SymbolKind::{Class, Constant, Function, Type};
use tree_sitter::Node;

use super::{Action, Answer, Found, Name, Table, define, named, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::python,
    rules: &[
        ("function_definition", named(Function)),
        ("class_definition", named(Class)),
        ("decorated_definition", Action::Wrap),
        ("decorator", Action::Attribute),
        ("type_alias_statement", define(Type, Name::Field("left"))),
        ("expression_statement", Action::Wrap),
        ("assignment", Action::Ask(assignment)),
        ("block", Action::Enter),
        ("if_statement", Action::Enter),
        ("else_clause", Action::Enter),
        ("elif_clause", Action::Enter),
        ("try_statement", Action::Enter),
        ("except_clause", Action::Enter),
        ("finally_clause", Action::Enter),
        ("with_statement", Action::Enter),
        ("comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &[],
    docstring: Some(docstring),
    clauses: false,
};

/// Names at the level of the file, and those in capitals at the level of a class: the
/// others there are fields.
fn assignment<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(left) = node.child_by_field_name("left") else { return Answer::Skip };
    let name = text_of(left, text);
    let top = node.start_position().column == 0;
    let capitals = !name.contains(|c: char| c.is_lowercase());
    if left.kind() != "identifier" || !(top || capitals) {
        return Answer::Skip;
    }
    Found::symbol(Constant, name).into()
}

fn docstring(body: Node<'_>, _text: &str) -> Option<Range<usize>> {
    let first = body.named_child(0)?;
    let string = first.named_child(0).filter(|_| first.kind() == "expression_statement")?;
    (string.kind() == "string").then(|| string.byte_range())
}
