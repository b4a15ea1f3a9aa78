use isolith_types::SymbolKind::{Constant, Function, Interface, Method, Struct, Type};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, bare_type, child_of, field_text, named};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::go,
    rules: &[
        ("function_declaration", named(Function)),
        ("method_declaration", Action::Ask(method)),
        ("type_declaration", Action::Wrap),
        ("type_spec", Action::Ask(type_spec)),
        ("type_alias", named(Type)),
        ("const_declaration", Action::Wrap),
        ("const_spec", named(Constant)),
        ("var_declaration", Action::Wrap),
        ("var_spec_list", Action::Wrap),
        ("var_spec", named(Constant)),
        ("comment", Action::Comment),
    ],
    bodies: &["field_declaration_list"],
    inner_docs: &["//go:build", "// +build"],
    docstring: None,
    clauses: false,
};

fn method<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let receiver = node.child_by_field_name("receiver");
    let declared = receiver.and_then(|list| child_of(list, "parameter_declaration"));
    let owner = declared.and_then(|one| field_text(one, "type", text)).map(bare_type);
    let name = field_text(node, "name", text).unwrap_or_default();
    Found::symbol(Method, name).map(|found| found.owned_by(owner)).into()
}

fn type_spec<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    let value = node.child_by_field_name("type");
    let kind = match value.map(|value| value.kind()) {
        Some("struct_type") => Struct,
        Some("interface_type") => Interface,
        _ => Type,
    };
    let found = Found::symbol(kind, name).map(|found| found.with_inside(Inside::Nothing));
    let members = value.and_then(|value| child_of(value, "field_declaration_list"));
    match members.and(value) {
        Some(value) => found.map(|found| found.with_value(value)).into(),
        None => found.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_bare() {
        for written in ["*Tree[K, V]", "Tree", "*Tree", "Tree[int]"] {
            assert_eq!(bare_type(written), "Tree", "{written}");
        }
    }
}
