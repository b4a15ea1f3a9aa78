use isolith_types::SymbolKind::{Class, Constant, Enum, Function, Interface, Module, Type};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Inside, Table, bare_type, child_of, field_text, named, text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::scala,
    rules: &[
        ("package_clause", Action::Enter),
        ("package_object", named(Module)),
        ("class_definition", named(Class)),
        ("object_definition", named(Class)),
        ("trait_definition", named(Interface)),
        ("enum_definition", named(Enum)),
        ("function_definition", named(Function)),
        ("function_declaration", named(Function)),
        ("given_definition", Action::Ask(given)),
        ("extension_definition", Action::Ask(extension)),
        ("val_definition", Action::Ask(value)),
        ("type_definition", named(Type)),
        ("template_body", Action::Enter),
        ("with_template_body", Action::Enter),
        ("enum_body", Action::Enter),
        ("block", Action::EnterLarge),
        ("indented_block", Action::EnterLarge),
        ("modifiers", Action::Modifiers),
        ("annotation", Action::Attribute),
        ("comment", Action::Comment),
        ("block_comment", Action::Comment),
    ],
    bodies: &["template_body", "with_template_body", "enum_body"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// One without a name is known by its type.
fn given<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).or_else(|| field_text(node, "return_type", text));
    let found = Found::symbol(Constant, name.unwrap_or_default());
    found.map(|found| found.with_inside(Inside::Members)).into()
}

fn extension<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let parameter = node
        .child_by_field_name("parameters")
        .and_then(|parameters| child_of(parameters, "parameter"));
    let name = parameter.and_then(|parameter| field_text(parameter, "type", text)).map(bare_type);
    let found = Found::named(name.unwrap_or_default());
    found.map_or(Answer::Enter, |found| Answer::Found(found.with_inside(Inside::Members)))
}

/// Values in capitals or at the level of the file; the others are fields.
fn value<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let pattern = node.child_by_field_name("pattern").filter(|one| one.kind() == "identifier");
    let Some(name) = pattern.map(|pattern| text_of(pattern, text)) else { return Answer::Skip };
    if node.start_position().column > 0 && !name.starts_with(char::is_uppercase) {
        return Answer::Skip;
    }
    Found::symbol(Constant, name).into()
}
