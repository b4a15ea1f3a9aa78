use isolith_types::SymbolKind::{Class, Constant, Enum, Function, Interface, Method, Module, Type};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, field_text, named, text_of};

pub(super) static JAVASCRIPT: Table = Table { grammar: isolith_grammars::javascript, ..SHARED };

pub(super) static TYPESCRIPT: Table = Table { grammar: isolith_grammars::typescript, ..SHARED };

pub(super) static TSX: Table = Table { grammar: isolith_grammars::tsx, ..SHARED };

const SHARED: Table = Table {
    grammar: isolith_grammars::javascript,
    rules: &[
        ("function_declaration", named(Function)),
        ("generator_function_declaration", named(Function)),
        ("function_signature", named(Function)),
        ("class_declaration", named(Class)),
        ("abstract_class_declaration", named(Class)),
        ("class", named(Class)),
        ("class_body", Action::Enter),
        ("method_definition", named(Method)),
        ("method_signature", named(Method)),
        ("abstract_method_signature", named(Method)),
        ("field_definition", Action::Ask(field)),
        ("public_field_definition", Action::Ask(field)),
        ("interface_declaration", named(Interface)),
        ("type_alias_declaration", named(Type)),
        ("enum_declaration", named(Enum)),
        ("internal_module", Action::Ask(module)),
        ("module", Action::Ask(module)),
        ("export_statement", Action::Wrap),
        ("ambient_declaration", Action::Wrap),
        ("lexical_declaration", Action::Wrap),
        ("variable_declaration", Action::Wrap),
        ("variable_declarator", Action::Ask(variable)),
        ("expression_statement", Action::Wrap),
        ("assignment_expression", Action::Ask(assignment)),
        ("object", Action::Enter),
        ("pair", Action::Ask(pair)),
        ("statement_block", Action::Enter),
        ("if_statement", Action::EnterLarge),
        ("else_clause", Action::EnterLarge),
        ("try_statement", Action::EnterLarge),
        ("return_statement", Action::EnterLarge),
        ("call_expression", Action::EnterLarge),
        ("new_expression", Action::EnterLarge),
        ("arguments", Action::EnterLarge),
        ("parenthesized_expression", Action::EnterLarge),
        ("sequence_expression", Action::EnterLarge),
        ("unary_expression", Action::EnterLarge),
        ("await_expression", Action::EnterLarge),
        ("as_expression", Action::EnterLarge),
        ("satisfies_expression", Action::EnterLarge),
        ("function_expression", Action::EnterLarge),
        ("arrow_function", Action::EnterLarge),
        ("comment", Action::Comment),
        ("decorator", Action::Attribute),
    ],
    bodies: &[],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};

fn is_function(value: Node<'_>) -> bool {
    matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function")
}

/// `const f = () => …` is a function, `const c = class …` a class, other values are
/// constants, of which objects may have methods. What is only imported is none.
fn variable<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = node.child_by_field_name("name").filter(|name| name.kind() == "identifier");
    let Some(name) = name.map(|name| text_of(name, text)) else { return Answer::Skip };
    let Some(value) = node.child_by_field_name("value") else {
        return Found::symbol(Constant, name).into();
    };
    if text_of(value, text).starts_with("require(") {
        return Answer::Skip;
    }
    valued(name, value).into()
}

/// `const Box = memo(function …)`: what React wraps stays a function.
fn is_component(name: &str, call: Node<'_>) -> bool {
    let first = call.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    name.starts_with(char::is_uppercase) && first.is_some_and(is_function)
}

fn valued<'t>(name: &str, value: Node<'t>) -> Option<Found<'t>> {
    let found = match value.kind() {
        _ if is_function(value) => Found::symbol(Function, name)?,
        "call_expression" if is_component(name, value) => Found::symbol(Function, name)?,
        "class" => Found::symbol(Class, name)?,
        "object" => Found::symbol(Constant, name)?.with_inside(Inside::Members),
        "call_expression"
        | "parenthesized_expression"
        | "as_expression"
        | "satisfies_expression"
        | "new_expression" => Found::symbol(Constant, name)?.with_inside(Inside::Code),
        _ => return Found::symbol(Constant, name),
    };
    Some(found.with_value(value))
}

/// `exports.x = function`, `Foo.prototype.bar = function`, `module.exports = …`.
fn assignment<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let (Some(left), Some(right)) =
        (node.child_by_field_name("left"), node.child_by_field_name("right"))
    else {
        return Answer::Skip;
    };
    if right.kind() == "assignment_expression" {
        // Of `a = b.c = function` the last name is taken.
        return Answer::Wrap;
    }
    if text_of(left, text) == "module.exports" {
        let name = field_text(right, "name", text);
        return match name.filter(|_| right.kind() != "class") {
            Some(name) if is_function(right) => valued(name, right).into(),
            _ => Answer::Wrap,
        };
    }
    if !(is_function(right) || right.kind() == "class") {
        return Answer::Enter;
    }
    let (name, owner) = match left.kind() {
        "identifier" => (text_of(left, text), None),
        "member_expression" => {
            let name = field_text(left, "property", text).unwrap_or_default();
            (name, field_text(left, "object", text).and_then(owner))
        }
        _ => return Answer::Enter,
    };
    valued(name, right).map(|found| found.owned_by(owner)).into()
}

/// The type that `Foo.prototype` or `Foo` stands for. What is exported has none.
fn owner(object: &str) -> Option<&str> {
    let object = object.strip_suffix(".prototype").unwrap_or(object);
    let name = object.rsplit('.').next().unwrap_or(object);
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    (plain && !matches!(name, "exports" | "this" | "window" | "self" | "global")).then_some(name)
}

/// A function as the value of a field is a method.
fn field<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).or_else(|| field_text(node, "property", text));
    match (name, node.child_by_field_name("value")) {
        (Some(name), Some(value)) if is_function(value) => {
            Found::symbol(Method, name).map(|found| found.with_value(value)).into()
        }
        _ => Answer::Skip,
    }
}

fn pair<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(value) = node.child_by_field_name("value") else { return Answer::Skip };
    if is_function(value) {
        let key = field_text(node, "key", text).unwrap_or_default().trim_matches(['"', '\'']);
        return Found::symbol(Method, key).map(|found| found.with_value(value)).into();
    }
    match value.kind() {
        "object" | "call_expression" => Answer::Enter,
        _ => Answer::Skip,
    }
}

fn module<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let name = field_text(node, "name", text).unwrap_or_default();
    Found::symbol(Module, name.trim_matches(['"', '\''])).into()
}
