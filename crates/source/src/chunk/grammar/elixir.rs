use std::ops::Range;

use isolith_types::SymbolKind::{Constant, Function, Interface, Macro, Module};
use tree_sitter::Node;

use super::{Action, Answer, Found, Inside, Table, child_of, field_text, first_children, text_of};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::elixir,
    rules: &[
        ("call", Action::Ask(call)),
        ("unary_operator", Action::Ask(attribute)),
        ("do_block", Action::Enter),
        ("comment", Action::Comment),
    ],
    bodies: &["do_block"],
    inner_docs: &[],
    docstring: Some(moduledoc),
    clauses: true,
};

/// Everything is a call here, definitions too.
fn call<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(word) = field_text(node, "target", text) else { return Answer::Skip };
    let first = child_of(node, "arguments").and_then(|arguments| arguments.named_child(0));
    let found = match word {
        "defmodule" => first.and_then(|name| Found::symbol(Module, text_of(name, text))),
        "defprotocol" => first.and_then(|name| {
            let found = Found::symbol(Interface, text_of(name, text))?;
            Some(found.with_inside(Inside::Namespace))
        }),
        "defimpl" => first.and_then(|name| {
            Some(Found::named(text_of(name, text))?.with_inside(Inside::Namespace))
        }),
        "def" | "defp" | "defdelegate" => {
            first.and_then(|head| Found::symbol(Function, head_name(head, text)))
        }
        "defmacro" | "defmacrop" | "defguard" | "defguardp" => {
            first.and_then(|head| Found::symbol(Macro, head_name(head, text)))
        }
        "quote" | "if" | "unless" | "for" | "describe" => return Answer::Enter,
        _ => None,
    };
    found.into()
}

/// `f(x) when x > 0` is `f`.
fn head_name<'s>(head: Node<'_>, text: &'s str) -> &'s str {
    match head.kind() {
        "call" => field_text(head, "target", text).unwrap_or_default(),
        "binary_operator" => match head.child_by_field_name("left") {
            Some(left) if field_text(head, "operator", text) == Some("when") => {
                head_name(left, text)
            }
            _ => field_text(head, "operator", text).unwrap_or_default(),
        },
        _ => text_of(head, text),
    }
}

/// `@doc` documents what follows, `@spec` and the like belong to it, and what is left are
/// the constants of the language.
fn attribute<'t>(node: Node<'t>, text: &str) -> Answer<'t> {
    let Some(call) = node.child_by_field_name("operand").filter(|_| is_attribute(node, text))
    else {
        return Answer::Skip;
    };
    let word = field_text(call, "target", text).unwrap_or_else(|| text_of(call, text));
    match word {
        "doc" | "typedoc" => Answer::Comment,
        "spec" | "impl" | "deprecated" | "since" => Answer::Attribute,
        "moduledoc" | "behaviour" | "type" | "typep" | "opaque" | "callback" | "derive" => {
            Answer::Skip
        }
        _ if call.kind() == "call" => Found::symbol(Constant, word).into(),
        _ => Answer::Skip,
    }
}

fn is_attribute(node: Node<'_>, text: &str) -> bool {
    field_text(node, "operator", text) == Some("@")
}

fn moduledoc(body: Node<'_>, text: &str) -> Option<Range<usize>> {
    const FIRST: usize = 4;
    let mut statements = first_children(body).filter(|child| child.is_named()).take(FIRST);
    let doc = statements.find(|one| text_of(*one, text).starts_with("@moduledoc "))?;
    (!text_of(doc, text).ends_with("false")).then(|| doc.byte_range())
}
