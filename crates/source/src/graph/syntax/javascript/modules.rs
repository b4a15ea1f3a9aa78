use isolith_types::DefinitionKind as Kind;
use isolith_types::Imported;
use tree_sitter::Node;

use super::{Field, is_function};
use crate::graph::build::{Build, Enter, child_of, children, named};
use crate::graph::scope::Source;
use crate::graph::syntax::shared;

/// What a module gives if no name is asked for.
const DEFAULT: &str = "default";

/// `import`, and `import type`, which is gone when the program runs.
pub(super) fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    typed(build, node, import_values)
}

/// `export`, and `export type`.
pub(super) fn export<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    typed(build, node, export_values)
}

/// Notes what is imported, as types where that is written in front of it.
fn typed<'t, T>(
    build: &mut Build<'t>,
    node: Node<'t>,
    note: impl FnOnce(&mut Build<'t>, Node<'t>) -> T,
) -> T {
    let before = build.imports.len();
    let noted = note(build, node);
    if children(node).any(|child| matches!(child.kind(), "type" | "typeof")) {
        build.only_types(before);
    }
    noted
}

fn import_values<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(module) = build.child(node, Field::Source).map(|source| unquoted(build, source))
    else {
        return Enter::Over;
    };
    let Some(clause) = child_of(node, "import_clause") else {
        shared::import(build, node, module, Imported::Module, None, false);
        return Enter::Over;
    };
    for part in named(clause) {
        match part.kind() {
            "identifier" => {
                let name = build.of(part);
                shared::import(
                    build,
                    part,
                    module,
                    Imported::Name(DEFAULT.to_owned()),
                    Some(name),
                    false,
                );
            }
            "namespace_import" => {
                let name = named(part).next().map(|name| build.of(name));
                shared::import(build, part, module, Imported::Module, name, false);
            }
            "named_imports" => {
                for one in named(part) {
                    if let Some(name) = build.field(one, Field::Name) {
                        let bound = build.field(one, Field::Alias).unwrap_or(name);
                        let what = Imported::Name(name.to_owned());
                        typed(build, one, |build, one| {
                            shared::import(build, one, module, what, Some(bound), false);
                        });
                    }
                }
            }
            _ => {}
        }
    }
    Enter::Over
}

fn export_values<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let source = build.child(node, Field::Source).map(|source| unquoted(build, source));
    let module = source.unwrap_or_default();
    if let Some(clause) = child_of(node, "export_clause") {
        for one in named(clause) {
            if let Some(name) = build.field(one, Field::Name) {
                let bound = build.field(one, Field::Alias).unwrap_or(name);
                let what = Imported::Name(name.to_owned());
                typed(build, one, |build, one| {
                    shared::passed_on(build, one, module, what, Some(bound));
                });
            }
        }
        return Enter::Over;
    }
    if source.is_some() {
        match child_of(node, "namespace_export").and_then(|part| named(part).next()) {
            Some(name) => {
                let name = build.of(name);
                shared::passed_on(build, node, module, Imported::Module, Some(name));
            }
            None => shared::passed_on(build, node, module, Imported::All, None),
        }
        return Enter::Over;
    }
    build.export_until(node.end_byte());
    if children(node).any(|child| child.kind() == "default") {
        return default(build, node);
    }
    Enter::Into
}

fn default<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let value = build.child(node, Field::Declaration).or_else(|| build.child(node, Field::Value));
    let Some(value) = value else { return Enter::Into };
    let name = match value.kind() {
        "identifier" => Some(value),
        _ => build.child(value, Field::Name).filter(|_| value.kind().contains("declaration")),
    };
    if let Some(name) = name {
        let what = Imported::Name(build.of(name).to_owned());
        shared::passed_on(build, node, "", what, Some(DEFAULT));
        return Enter::Into;
    }
    let kind = match value.kind() {
        "class" => Kind::Class,
        _ if is_function(value) => Kind::Function,
        _ => Kind::Variable,
    };
    let Some(index) = build.note(node, value, DEFAULT, kind, None) else { return Enter::Into };
    if let Some(draft) = build.draft(index) {
        draft.definition.exported = true;
        if kind == Kind::Variable {
            draft.value = Source::Value(value);
        }
    }
    build.wrap(value, index);
    Enter::Inside(None, Some(index))
}

/// `const x = require('y')`, `const { a } = require('y')`.
pub(super) fn require<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    value: Node<'t>,
) -> bool {
    let is_call = value.kind() == "call_expression";
    if !is_call || build.field(value, Field::Function) != Some("require") {
        return false;
    }
    let argument = build.child(value, Field::Arguments).and_then(|list| named(list).next());
    let Some(module) = argument.filter(|argument| argument.kind() == "string") else {
        return false;
    };
    let module = unquoted(build, module);
    match name.kind() {
        "identifier" => {
            let bound = build.of(name);
            shared::import(build, node, module, Imported::Module, Some(bound), false);
        }
        "object_pattern" => {
            for part in named(name) {
                let key = build.field(part, Field::Key).unwrap_or_else(|| build.of(part));
                let bound = build.field(part, Field::Value).unwrap_or_else(|| build.of(part));
                shared::import(
                    build,
                    part,
                    module,
                    Imported::Name(key.to_owned()),
                    Some(bound),
                    false,
                );
            }
        }
        _ => return false,
    }
    true
}

/// `module.exports = …` and `exports.x = …`. False if it is something else.
pub(super) fn exports<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    left: Node<'t>,
    right: Node<'t>,
) -> bool {
    if !build.is_outside_functions() {
        return false;
    }
    let object = build.field(left, Field::Object).unwrap_or_default();
    let Some(property) = build.child(left, Field::Property) else { return false };
    let name = build.of(property);
    match (object, name) {
        ("module", "exports") => whole(build, node, right),
        ("exports" | "module.exports", _) => match right.kind() {
            "identifier" => {
                let what = Imported::Name(build.of(right).to_owned());
                shared::passed_on(build, node, "", what, Some(name));
            }
            _ => {
                let kind = if is_function(right) { Kind::Function } else { Kind::Variable };
                note(build, node, property, name, right, kind);
            }
        },
        _ => return false,
    }
    true
}

fn whole<'t>(build: &mut Build<'t>, node: Node<'t>, right: Node<'t>) {
    match right.kind() {
        "identifier" => {
            let what = Imported::Name(build.of(right).to_owned());
            shared::passed_on(build, node, "", what, Some(DEFAULT));
        }
        "object" => {
            for part in named(right) {
                let key = build.field(part, Field::Key).unwrap_or_else(|| build.of(part));
                let value = build.child(part, Field::Value).unwrap_or(part);
                if matches!(value.kind(), "identifier" | "shorthand_property_identifier") {
                    let what = Imported::Name(build.of(value).to_owned());
                    shared::passed_on(build, part, "", what, Some(key));
                }
            }
        }
        _ if is_function(right) => note(build, node, right, DEFAULT, right, Kind::Function),
        "class" => note(build, node, right, DEFAULT, right, Kind::Class),
        _ => {}
    }
}

fn note<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    text: &str,
    value: Node<'t>,
    kind: Kind,
) {
    let Some(index) = build.note(node, name, text, kind, None) else { return };
    build.wrap(value, index);
    if let Some(draft) = build.draft(index) {
        draft.definition.exported = true;
        if kind == Kind::Variable {
            draft.value = Source::Value(value);
        }
    }
}

fn unquoted<'t>(build: &Build<'t>, string: Node<'t>) -> &'t str {
    build.of(string).trim_matches(['"', '\'', '`'])
}
