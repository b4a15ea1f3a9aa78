use isolith_types::SymbolKind::{Constant, Function};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, child_of, field_text, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::lua,
    rules: &[
        ("function_declaration", Action::Ask(function)),
        ("variable_declaration", Action::Wrap),
        ("assignment_statement", Action::Ask(assignment)),
        ("table_constructor", Action::Enter),
        ("expression_list", Action::Enter),
        ("field", Action::Ask(field)),
        ("return_statement", Action::Enter),
        ("block", Action::EnterLarge),
        ("do_statement", Action::EnterLarge),
        ("if_statement", Action::EnterLarge),
        ("function_call", Action::EnterLarge),
        ("arguments", Action::EnterLarge),
        ("function_definition", Action::EnterLarge),
        ("comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &["#!"],
    docstring: None,
    clauses: false,
};

fn function<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    member_of(field_text(node, "name", text).unwrap_or_default()).into()
}

/// `M.sub.f` and `M:f` are `f` of `M`.
fn member_of<'t>(name: &str) -> Option<Found<'t>> {
    let (owner, own) = match name.rsplit_once(['.', ':']) {
        Some((owner, own)) => (Some(owner), own),
        None => (None, name),
    };
    let owner = owner.and_then(|owner| owner.rsplit('.').next());
    Some(Found::symbol(Function, own)?.owned_by(owner))
}

/// `M.f = function`, `local t = { … }`; other locals are constants at the file's level.
fn assignment<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = child_of(node, "variable_list").and_then(|list| list.named_child(0));
    let value = child_of(node, "expression_list").and_then(|list| list.named_child(0));
    let (Some(name), Some(value)) = (name, value) else { return Answer::Enter };
    let name = text_of(name, text);
    match value.kind() {
        "function_definition" => member_of(name).map(|found| found.with_value(value)).into(),
        _ if name.contains(['.', ':', '[']) => Answer::Enter,
        _ if text_of(value, text).starts_with("require") => Answer::Skip,
        "table_constructor" => {
            Found::symbol(Constant, name).map(|found| found.with_inside(Inside::Members)).into()
        }
        _ => Found::symbol(Constant, name).into(),
    }
}

fn field<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(value) = node.child_by_field_name("value") else { return Answer::Skip };
    match (value.kind(), field_text(node, "name", text)) {
        ("function_definition", Some(name)) => {
            Found::symbol(Function, name).map(|found| found.with_value(value)).into()
        }
        ("table_constructor", _) => Answer::Enter,
        _ => Answer::Skip,
    }
}
