use isolith_types::SymbolKind::{Class, Constant, Function, Method, Module};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, field_text, named, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::ruby,
    rules: &[
        ("class", named(Class)),
        ("module", Action::Ask(module)),
        ("singleton_class", Action::Enter),
        ("method", named(Function)),
        ("singleton_method", Action::Ask(singleton_method)),
        ("assignment", Action::Ask(assignment)),
        ("body_statement", Action::Enter),
        ("block_body", Action::Enter),
        ("call", Action::Ask(call)),
        ("argument_list", Action::Enter),
        ("do_block", Action::Enter),
        ("block", Action::Enter),
        ("begin", Action::EnterLarge),
        ("if", Action::EnterLarge),
        ("unless", Action::EnterLarge),
        ("then", Action::EnterLarge),
        ("else", Action::EnterLarge),
        ("comment", Action::Comment),
    ],
    bodies: &[],
    inner_docs: &["#!", "# frozen_string_literal"],
    docstring: None,
    clauses: false,
};

/// Modules are mixed into classes, so what they define are methods.
fn module<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    Found::symbol(Module, name).map(|found| found.with_inside(Inside::Members)).into()
}

/// `def self.x` belongs to what is around it, `def Foo.x` to `Foo`.
fn singleton_method<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let object = field_text(node, "object", text).filter(|object| *object != "self");
    let name = field_text(node, "name", text).unwrap_or_default();
    Found::symbol(Method, name).map(|found| found.owned_by(object)).into()
}

fn assignment<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(left) = node.child_by_field_name("left") else { return Answer::Skip };
    if left.kind() != "constant" {
        return Answer::Skip;
    }
    let found = Found::symbol(Constant, text_of(left, text));
    // `Point = Struct.new(:x) do … end` has methods.
    let right = node.child_by_field_name("right");
    match right.filter(|right| right.child_by_field_name("block").is_some()) {
        Some(_) => found.map(|found| found.with_inside(Inside::Members)).into(),
        None => found.into(),
    }
}

/// `private def x` defines, and a block may, but most calls do not.
fn call<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    if node.child_by_field_name("block").is_some() {
        return Answer::Enter;
    }
    match field_text(node, "method", text) {
        Some(
            "private"
            | "protected"
            | "public"
            | "module_function"
            | "memoize"
            | "private_class_method"
            | "helper_method"
            | "new",
        ) => Answer::Wrap,
        _ => Answer::Skip,
    }
}
