use std::ops::Range;

use isolith_types::SymbolKind::{Enum, Function, Interface, Macro, Method, Struct, Type};
use tree_sitter::Node;

use super::{Action, Answer, Found, Name, Table, block, child_of, define, text_of};

const NAME: Name = Name::Child("name");

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::graphql,
    rules: &[
        ("document", Action::Enter),
        ("definition", Action::Wrap),
        ("executable_definition", Action::Wrap),
        ("type_system_definition", Action::Wrap),
        ("type_system_extension", Action::Wrap),
        ("type_definition", Action::Wrap),
        ("type_extension", Action::Wrap),
        ("object_type_definition", define(Struct, NAME)),
        ("input_object_type_definition", define(Struct, NAME)),
        ("interface_type_definition", define(Interface, NAME)),
        ("enum_type_definition", define(Enum, NAME)),
        ("union_type_definition", define(Type, NAME)),
        ("scalar_type_definition", define(Type, NAME)),
        ("directive_definition", define(Macro, NAME)),
        ("object_type_extension", block(NAME)),
        ("interface_type_extension", block(NAME)),
        ("fields_definition", Action::Enter),
        ("field_definition", Action::Ask(field)),
        ("operation_definition", define(Function, NAME)),
        ("fragment_definition", define(Function, Name::Child("fragment_name"))),
        ("description", Action::Attribute),
        ("comment", Action::Comment),
    ],
    bodies: &[
        "fields_definition",
        "input_fields_definition",
        "enum_values_definition",
        "selection_set",
    ],
    inner_docs: &[],
    docstring: Some(description),
    clauses: false,
};

/// A field is a method if it takes arguments, or belongs to what clients ask for first.
fn field<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let around = node.parent().and_then(|fields| fields.parent());
    let owner = around.and_then(|node| child_of(node, "name")).map(|name| text_of(name, text));
    let is_entry = matches!(owner, Some("Query" | "Mutation" | "Subscription"));
    let name = child_of(node, "name").map(|name| text_of(name, text));
    match name {
        Some(name) if is_entry || child_of(node, "arguments_definition").is_some() => {
            Found::symbol(Method, name).into()
        }
        _ => Answer::Skip,
    }
}

fn description(body: Node<'_>, _: &str) -> Option<Range<usize>> {
    let first = body.parent()?.child(0)?;
    (first.kind() == "description").then(|| first.byte_range())
}
