//! What several languages have in common.

use isolith_types::DefinitionKind as Kind;
use isolith_types::{Import, Imported, ReferenceKind};
use tree_sitter::Node;

use super::Field;
use crate::graph::build::{Build, Enter, line};
use crate::graph::scope::{Bound, ScopeKind, Source};

/// Notes a function, whose name is not to be visited again. Gives its index and the scope
/// of its inside.
pub(super) fn function<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    returns: Option<Node<'t>>,
) -> Option<(u32, u32)> {
    build.pass(name);
    let member = matches!(build.scopes.kind(build.scope), ScopeKind::Class(_));
    let kind = if member { Kind::Method } else { Kind::Function };
    let index = build.define(node, name, kind)?;
    build.sign(index, node, build.child(node, Field::Body));
    let scope = build.open(ScopeKind::Function(Some(index)));
    build.draft(index)?.value = returns.map_or(Source::Unknown, Source::Type);
    Some((index, scope))
}

/// Notes a type, whose name is not to be visited again, with what it is made from.
pub(super) fn class<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    kind: Kind,
    bases: Vec<(Node<'t>, ReferenceKind)>,
) -> Option<(u32, u32)> {
    build.pass(name);
    let index = build.define(node, name, kind)?;
    build.sign(index, node, build.child(node, Field::Body));
    let around = build.within.replace(index);
    for (base, kind) in &bases {
        build.type_site(*base, *kind);
        build.pass(*base);
    }
    build.within = around;
    build.draft(index)?.bases = bases.into_iter().map(|(base, _)| base).collect();
    let scope = build.open(ScopeKind::Class(index));
    Some((index, scope))
}

/// Notes a member that is not a function.
pub(super) fn field<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    kind: Kind,
    source: Source<'t>,
) -> Option<u32> {
    build.pass(name);
    let index = build.define(node, name, kind)?;
    build.sign(index, node, build.child(node, Field::Value));
    build.draft(index)?.value = source;
    Some(index)
}

/// A variable: a definition at the level of a file or type, a name of its own otherwise.
pub(super) fn variable<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    name: Node<'t>,
    kind: Kind,
    source: Source<'t>,
) {
    if build.is_outside_functions() {
        field(build, node, name, kind, source);
    } else {
        build.bind(build.scope, name, node.end_byte(), source);
    }
}

/// The source of a variable with a type, a value, or neither.
pub(super) fn source<'t>(typed: Option<Node<'t>>, value: Option<Node<'t>>) -> Source<'t> {
    match (typed, value) {
        (Some(typed), _) => Source::Type(typed),
        (None, Some(value)) => Source::Value(value),
        (None, None) => Source::Unknown,
    }
}

/// Whether a definition can be seen by others, if it is one.
pub(super) fn export(build: &mut Build<'_>, index: Option<u32>, exported: bool) {
    if let Some(draft) = index.and_then(|index| build.draft(index)) {
        draft.definition.exported = exported;
    }
}

pub(super) fn inside(found: Option<(u32, u32)>) -> Enter {
    match found {
        Some((index, scope)) => Enter::Inside(Some(scope), Some(index)),
        None => Enter::Into,
    }
}

/// A namespace, whose names are seen by all that is in it.
pub(super) fn namespace<'t>(build: &mut Build<'t>, node: Node<'t>, name: Node<'t>) -> Enter {
    build.pass(name);
    let Some(index) = build.define(node, name, Kind::Module) else { return Enter::Into };
    export(build, Some(index), true);
    let scope = build.open(ScopeKind::Namespace);
    Enter::Inside(Some(scope), Some(index))
}

/// The parameter of a type, which stands for its bound.
pub(super) fn type_parameter<'t>(build: &mut Build<'t>, name: Node<'t>, bound: Option<Node<'t>>) {
    build.pass(name);
    let source = bound.map_or(Source::Unknown, Source::Alias);
    let text = build.of(name);
    build.scopes.bind(build.scope, text, 0, Bound::Local(source));
}

/// Notes an import, and binds its name.
pub(super) fn import<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    module: &str,
    what: Imported,
    bound: Option<&'t str>,
    exported: bool,
) {
    let import = imported(build, node, module, what, bound, exported);
    build.import(import, bound, node.start_byte());
}

/// What is only passed on to others has no name in the file itself.
pub(super) fn passed_on<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    module: &str,
    what: Imported,
    bound: Option<&'t str>,
) {
    let import = imported(build, node, module, what, bound, true);
    build.import(import, None, node.start_byte());
}

fn imported(
    build: &Build<'_>,
    node: Node<'_>,
    module: &str,
    what: Imported,
    bound: Option<&str>,
    exported: bool,
) -> Import {
    Import {
        module: module.to_owned(),
        what,
        bound: bound.map(str::to_owned),
        exported,
        line: line(node),
        within: build.within,
        type_only: false,
    }
}

/// A value that is given back.
pub(super) fn returns<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(value) = node.named_child(0) {
        build.returned(value);
    }
    Enter::Into
}

/// Something without a name that has parameters.
pub(super) fn closure<'t>(_build: &mut Build<'t>, _node: Node<'t>) -> Enter {
    Enter::Open(ScopeKind::Function(None))
}
