use isolith_types::SymbolKind::{
    Class, Constant, Enum, Function, Interface, Method, Module, Struct, Type,
};
use tree_sitter::Node;

use super::{
    Action, Answer, Found, Name, Table, child_of, define, field_text, first_children, named,
    text_of,
};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::c_sharp,
    rules: &[
        ("namespace_declaration", named(Module)),
        ("file_scoped_namespace_declaration", named(Module)),
        ("class_declaration", named(Class)),
        ("struct_declaration", named(Struct)),
        ("record_declaration", named(Struct)),
        ("interface_declaration", named(Interface)),
        ("enum_declaration", named(Enum)),
        ("delegate_declaration", named(Type)),
        ("method_declaration", named(Method)),
        ("constructor_declaration", named(Method)),
        ("destructor_declaration", named(Method)),
        ("operator_declaration", define(Method, Name::Field("operator"))),
        ("local_function_statement", named(Function)),
        ("field_declaration", Action::Ask(field)),
        ("declaration_list", Action::Enter),
        ("global_statement", Action::Wrap),
        ("preproc_if", Action::Branch),
        ("preproc_else", Action::Branch),
        ("block", Action::EnterLarge),
        ("attribute_list", Action::Attribute),
        ("comment", Action::Comment),
    ],
    bodies: &["arrow_expression_clause"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

/// A field that is `const` or `static readonly`.
fn field<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let modifiers = first_children(node).filter(|child| child.kind() == "modifier");
    let fixed = modifiers
        .map(|modifier| text_of(modifier, text))
        .filter(|word| matches!(*word, "const" | "static" | "readonly"))
        .fold(0, |sum, word| sum + if word == "const" { 2 } else { 1 });
    if fixed < 2 {
        return Answer::Skip;
    }
    let declarator = child_of(node, "variable_declaration")
        .and_then(|declaration| child_of(declaration, "variable_declarator"));
    let name = declarator.and_then(|declarator| field_text(declarator, "name", text));
    Found::symbol(Constant, name.unwrap_or_default()).into()
}
