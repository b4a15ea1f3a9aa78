use isolith_types::SymbolKind::{Class, Constant, Enum, Function, Interface, Method, Module};
use tree_sitter::Node;

use super::{Action, Answer, Found, Table, child_of, field_text, named, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::php,
    rules: &[
        ("namespace_definition", Action::Ask(namespace)),
        ("class_declaration", named(Class)),
        ("interface_declaration", named(Interface)),
        ("trait_declaration", named(Interface)),
        ("enum_declaration", named(Enum)),
        ("function_definition", named(Function)),
        ("method_declaration", named(Method)),
        ("const_declaration", Action::Ask(constant)),
        ("declaration_list", Action::Enter),
        ("enum_declaration_list", Action::Enter),
        ("compound_statement", Action::Enter),
        ("if_statement", Action::Enter),
        ("return_statement", Action::EnterLarge),
        ("object_creation_expression", Action::Enter),
        ("anonymous_class", Action::Enter),
        ("attribute_list", Action::Attribute),
        ("comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

fn namespace<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    Found::symbol(Module, name).into()
}

fn constant<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let element = child_of(node, "const_element");
    let name = element.and_then(|element| child_of(element, "name"));
    Found::symbol(Constant, name.map(|name| text_of(name, text)).unwrap_or_default()).into()
}
