use std::rc::Rc;

use isolith_types::{DefinitionKind, Import, Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table};
use crate::graph::build::{Build, Enter, child_of, line, named};
use crate::graph::origin::{call as call_of, member};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("function_definition", Rule::Ask(function), Form::Unknown),
        ("class_definition", Rule::Ask(class), Form::Unknown),
        ("decorated_definition", Rule::Ask(decorated), Form::Unknown),
        ("lambda", Rule::Ask(lambda), Form::Unknown),
        ("assignment", Rule::Ask(assignment), Form::Field(Field::Right)),
        ("named_expression", Rule::Ask(walrus), Form::Field(Field::Value)),
        ("for_statement", Rule::Ask(for_each), Form::Unknown),
        ("for_in_clause", Rule::Ask(for_each), Form::Unknown),
        ("as_pattern", Rule::Ask(as_pattern), Form::Same),
        ("list_comprehension", Rule::Block, Form::Unknown),
        ("set_comprehension", Rule::Block, Form::Unknown),
        ("dictionary_comprehension", Rule::Block, Form::Unknown),
        ("generator_expression", Rule::Block, Form::Unknown),
        ("import_statement", Rule::Ask(import), Form::Unknown),
        ("import_from_statement", Rule::Ask(import_from), Form::Unknown),
        ("future_import_statement", Rule::Skip, Form::Unknown),
        ("return_statement", Rule::Ask(returns), Form::Unknown),
        ("keyword_argument", Rule::Ask(keyword), Form::Unknown),
        ("call", Rule::Call(Field::Function), Form::Ask(call)),
        (
            "attribute",
            Rule::Member(Field::Attribute),
            Form::Member(Field::Object, Field::Attribute),
        ),
        ("identifier", Rule::Name, Form::Name),
        ("await", Rule::Pass, Form::Awaited),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("conditional_expression", Rule::Pass, Form::Same),
        ("boolean_operator", Rule::Pass, Form::Ask(either)),
        ("subscript", Rule::Pass, Form::Element(Field::Value)),
        ("type", Rule::Pass, Form::Same),
        ("comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Stars,
    bare_members: false,
    in_order: false,
    read_type: Some(read_type),
    callee: None,
};

fn decorated<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(inner) = build.child(node, Field::Definition) else { return Enter::Into };
    let Some(name) = build.child(inner, Field::Name) else { return Enter::Into };
    let kind = match inner.kind() {
        "class_definition" => DefinitionKind::Class,
        _ => function_kind(build, node),
    };
    let Some(index) = build.define(node, name, kind) else { return Enter::Into };
    build.wrap(inner, index);
    Enter::Inside(None, Some(index))
}

/// A function in a class is a method; one that is read like a field is a property.
fn function_kind<'t>(build: &Build<'t>, node: Node<'t>) -> DefinitionKind {
    let property = || {
        decorators(build, node).any(|name| {
            matches!(name.rsplit('.').next(), Some("property" | "cached_property" | "setter"))
        })
    };
    match build.scopes.kind(build.scope) {
        ScopeKind::Class(_) if property() => DefinitionKind::Property,
        ScopeKind::Class(_) => DefinitionKind::Method,
        _ => DefinitionKind::Function,
    }
}

fn decorators<'t>(build: &Build<'t>, node: Node<'t>) -> impl Iterator<Item = &'t str> {
    let list = named(node).filter(|child| child.kind() == "decorator");
    let names: Vec<&str> = list.map(|one| build.of(one).trim_start_matches('@').trim()).collect();
    names.into_iter()
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    build.pass(name);
    let outer = node.parent().filter(|parent| parent.kind() == "decorated_definition");
    let index = match build.take_wrapped(node) {
        Some(index) => Some(index),
        None => {
            let kind = function_kind(build, node);
            build.define(node, name, kind)
        }
    };
    let Some(index) = index else { return Enter::Into };
    let class = match build.scopes.kind(build.scope) {
        ScopeKind::Class(class) => Some(class),
        _ => None,
    };
    build.sign(index, node, build.child(node, Field::Body));
    let text = build.of(name);
    let scope = build.open(ScopeKind::Function(Some(index)));
    let returns = build.child(node, Field::ReturnType);
    if let Some(draft) = build.draft(index) {
        draft.value = returns.map_or(Source::Unknown, Source::Type);
        draft.definition.exported = class.is_some() || !text.starts_with('_');
        draft.definition.test = text.starts_with("test_") || text == "test";
    }
    let own = |word: &str| outer.is_some_and(|outer| decorators(build, outer).any(|d| d == word));
    let receiver = match class {
        Some(_) if own("staticmethod") => None,
        Some(class) if own("classmethod") || text == "__new__" => Some(Source::Class(class)),
        Some(class) => Some(Source::This(class)),
        None => None,
    };
    if let Some(parameters) = build.child(node, Field::Parameters) {
        bind_parameters(build, scope, parameters, receiver);
    }
    Enter::Inside(Some(scope), Some(index))
}

fn lambda<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Function(None));
    if let Some(parameters) = build.child(node, Field::Parameters) {
        bind_parameters(build, scope, parameters, None);
    }
    Enter::Inside(Some(scope), None)
}

fn bind_parameters<'t>(
    build: &mut Build<'t>,
    scope: u32,
    parameters: Node<'t>,
    mut receiver: Option<Source<'t>>,
) {
    for parameter in named(parameters) {
        let typed = build.child(parameter, Field::Type).map_or(Source::Unknown, Source::Type);
        let (name, source) = match parameter.kind() {
            "identifier" => (Some(parameter), receiver.take().unwrap_or(Source::Unknown)),
            "typed_parameter" => {
                let inner = parameter.named_child(0);
                match inner.filter(|inner| inner.kind() == "identifier") {
                    Some(inner) => (Some(inner), receiver.take().unwrap_or(typed)),
                    None => (inner.and_then(|inner| inner.named_child(0)), Source::Unknown),
                }
            }
            "default_parameter" => {
                let value = build.child(parameter, Field::Value);
                (build.child(parameter, Field::Name), value.map_or(Source::Unknown, Source::Value))
            }
            "typed_default_parameter" => (build.child(parameter, Field::Name), typed),
            "list_splat_pattern" | "dictionary_splat_pattern" => {
                (parameter.named_child(0), Source::Unknown)
            }
            _ => (None, Source::Unknown),
        };
        receiver = None;
        if let Some(name) = name {
            build.bind(scope, name, parameters.start_byte(), source);
        }
    }
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    build.pass(name);
    let index = match build.take_wrapped(node) {
        Some(index) => Some(index),
        None => build.define(node, name, DefinitionKind::Class),
    };
    let Some(index) = index else { return Enter::Into };
    build.sign(index, node, build.child(node, Field::Body));
    let text = build.of(name);
    let bases: Vec<Node<'t>> = build
        .child(node, Field::Superclasses)
        .into_iter()
        .flat_map(named)
        .filter(|base| base.kind() != "keyword_argument")
        .collect();
    let around = build.within.replace(index);
    for base in &bases {
        build.type_site(*base, ReferenceKind::Inherit);
        if matches!(base.kind(), "identifier" | "attribute") {
            build.pass(*base);
        }
    }
    build.within = around;
    if let Some(draft) = build.draft(index) {
        draft.bases = bases;
        draft.definition.exported = !text.starts_with('_');
        draft.definition.test = text.starts_with("Test");
    }
    let scope = build.open(ScopeKind::Class(index));
    Enter::Inside(Some(scope), Some(index))
}

fn assignment<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(left) = build.child(node, Field::Left) else { return Enter::Into };
    let right = build.child(node, Field::Right);
    let source = match (build.child(node, Field::Type), right) {
        (Some(typed), _) => Source::Type(typed),
        (None, Some(right)) => Source::Value(right),
        (None, None) => Source::Unknown,
    };
    match left.kind() {
        "identifier" => assign_name(build, node, left, source),
        "attribute" => assign_field(build, node, left, source),
        "pattern_list" | "tuple_pattern" | "list_pattern" => {
            let rights: Vec<Node<'t>> = right
                .filter(|right| matches!(right.kind(), "expression_list" | "tuple"))
                .map(|right| named(right).collect())
                .unwrap_or_default();
            for (index, part) in named(left).enumerate() {
                let source = rights.get(index).map_or(Source::Unknown, |one| Source::Value(*one));
                match part.kind() {
                    "identifier" => assign_name(build, node, part, source),
                    "attribute" => assign_field(build, node, part, source),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    Enter::Into
}

/// A name of the file or of a class is a definition; one of a function is its own affair.
fn assign_name<'t>(build: &mut Build<'t>, node: Node<'t>, name: Node<'t>, source: Source<'t>) {
    if !build.is_outside_functions() {
        let scope = build.scopes.function(build.scope);
        build.bind(scope, name, node.end_byte(), source);
        return;
    }
    let text = build.of(name);
    build.pass(name);
    if build.scopes.has(build.scope, text) {
        return;
    }
    let capitals = !text.contains(char::is_lowercase);
    let kind = match build.scopes.kind(build.scope) {
        _ if capitals => DefinitionKind::Constant,
        ScopeKind::Class(_) => DefinitionKind::Field,
        _ => DefinitionKind::Variable,
    };
    if let ScopeKind::Class(class) = build.scopes.kind(build.scope) {
        build.is_new_member(class, text);
    }
    if let Some(index) = build.define(node, name, kind) {
        build.sign(index, node, None);
        if let Some(draft) = build.draft(index) {
            draft.value = source;
            draft.definition.exported = !text.starts_with('_');
        }
    }
}

/// `self.x = …` makes a field.
fn assign_field<'t>(build: &mut Build<'t>, node: Node<'t>, left: Node<'t>, source: Source<'t>) {
    let (Some(object), Some(name)) =
        (build.child(left, Field::Object), build.child(left, Field::Attribute))
    else {
        return;
    };
    let place = Place { scope: build.scope, types: false, left: 2 };
    let Origin::This(class) = build.origin(object, place) else { return };
    let text = build.of(name);
    if !build.is_new_member(class, text) {
        return;
    }
    if let Some(index) = build.note(node, name, text, DefinitionKind::Field, Some(class)) {
        build.sign(index, node, None);
        if let Some(draft) = build.draft(index) {
            draft.value = source;
            draft.definition.exported = !text.starts_with('_');
        }
    }
}

fn walrus<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let (Some(name), Some(value)) =
        (build.child(node, Field::Name), build.child(node, Field::Value))
    {
        let scope = build.scopes.function(build.scope);
        build.bind(scope, name, node.end_byte(), Source::Value(value));
    }
    Enter::Into
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let (Some(left), Some(right)) =
        (build.child(node, Field::Left), build.child(node, Field::Right))
    {
        let at = match node.kind() {
            // What a comprehension gives stands before what it goes over.
            "for_in_clause" => 0,
            _ => left.start_byte(),
        };
        let scope = build.scope;
        match left.kind() {
            "identifier" => {
                let source = Source::Element(Rc::new(Source::Value(right)));
                build.bind(scope, left, at, source);
            }
            _ => bind_all(build, left, at),
        }
    }
    Enter::Into
}

fn bind_all<'t>(build: &mut Build<'t>, pattern: Node<'t>, at: usize) {
    let scope = build.scope;
    for part in named(pattern) {
        match part.kind() {
            "identifier" => build.bind(scope, part, at, Source::Unknown),
            "tuple_pattern" | "list_pattern" | "pattern_list" => bind_all(build, part, at),
            _ => {}
        }
    }
}

/// `with x as y`, `except X as y`.
fn as_pattern<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let target = build.child(node, Field::Alias).or_else(|| child_of(node, "as_pattern_target"));
    let name = target.and_then(|target| match target.kind() {
        "identifier" => Some(target),
        _ => target.named_child(0),
    });
    if let (Some(name), Some(value)) = (name, node.named_child(0))
        && name.kind() == "identifier"
    {
        let caught = node.parent().is_some_and(|parent| parent.kind() == "except_clause");
        let source = if caught { Source::Type(value) } else { Source::Value(value) };
        let scope = build.scopes.function(build.scope);
        build.bind(scope, name, node.end_byte(), source);
    }
    Enter::Into
}

fn returns<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(value) = node.named_child(0).filter(|value| value.kind() != "none") {
        build.returned(value);
    }
    Enter::Into
}

fn keyword<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
    }
    Enter::Into
}

/// `import a.b` binds `a`; `import a.b as c` binds `c` to `a.b`.
fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for one in named(node) {
        let (module, alias) = match one.kind() {
            "aliased_import" => (build.field(one, Field::Name), build.field(one, Field::Alias)),
            _ => (Some(build.of(one)), None),
        };
        let Some(module) = module else { continue };
        let first = module.split('.').next().unwrap_or(module);
        match alias {
            Some(alias) => add(build, node, module, Imported::Module, Some(alias)),
            None if first == module => add(build, node, module, Imported::Module, Some(module)),
            None => {
                add(build, node, module, Imported::Module, None);
                add(build, node, first, Imported::Module, Some(first));
            }
        }
    }
    Enter::Over
}

fn import_from<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(module) = build.child(node, Field::ModuleName) else { return Enter::Over };
    let text = build.of(module);
    for one in named(node).filter(|one| *one != module) {
        match one.kind() {
            "wildcard_import" => add(build, node, text, Imported::All, None),
            "aliased_import" => {
                if let Some(name) = build.field(one, Field::Name) {
                    let alias = build.field(one, Field::Alias);
                    add(build, one, text, Imported::Name(name.to_owned()), alias);
                }
            }
            "dotted_name" => {
                let name = build.of(one);
                add(build, one, text, Imported::Name(name.to_owned()), Some(name));
            }
            _ => {}
        }
    }
    Enter::Over
}

fn add<'t>(
    build: &mut Build<'t>,
    node: Node<'t>,
    module: &str,
    what: Imported,
    bound: Option<&'t str>,
) {
    let import = Import {
        module: module.to_owned(),
        what,
        bound: bound.map(str::to_owned),
        exported: build.is_outside_functions(),
        line: line(node),
        within: build.within,
        type_only: is_for_types(build, node),
    };
    build.import(import, bound, node.start_byte());
}

/// Whether an import is below `if TYPE_CHECKING:`, where no program comes by.
fn is_for_types(build: &Build<'_>, node: Node<'_>) -> bool {
    let around = std::iter::successors(Some(node), Node::parent);
    let mut branches = around.filter(|one| one.kind() == "block").filter_map(|block| {
        let whole = block.parent().filter(|whole| whole.kind() == "if_statement")?;
        let is_first = build.child(whole, Field::Consequence) == Some(block);
        build.child(whole, Field::Condition).filter(|_| is_first)
    });
    branches.any(|condition| {
        let condition = build.of(condition);
        condition.rsplit('.').next() == Some("TYPE_CHECKING")
    })
}

/// `super()` and `cast(T, x)` are more than calls.
fn call<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let Some(function) = build.child(node, Field::Function) else { return Origin::Unknown };
    let first = || build.child(node, Field::Arguments).and_then(|list| named(list).next());
    match build.of(function) {
        "super" => build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::Super),
        "cast" | "t.cast" | "typing.cast" => match first() {
            Some(target) => build.instance(target, place),
            None => Origin::Unknown,
        },
        _ => call_of(build.origin(function, place)),
    }
}

/// `a or b`: what is known of either.
fn either<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let side = |field: Field| {
        build.child(node, field).map_or(Origin::Unknown, |side| build.origin(side, place))
    };
    match side(Field::Left) {
        Origin::Unknown => side(Field::Right),
        left => left,
    }
}

/// Annotations are written as values: `Optional[X]`, `X | None`, `"X"`.
fn read_type<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Option<Origin> {
    match node.kind() {
        "string" => Some(quoted(build, node, place)),
        "identifier" if build.of(node) == "Self" => {
            build.scopes.class(place.scope).map(Origin::Definition)
        }
        "binary_operator" => {
            let left = build.child(node, Field::Left).filter(|left| left.kind() != "none");
            let side = left.or_else(|| build.child(node, Field::Right))?;
            Some(build.origin(side, place))
        }
        "union_type" => {
            let side = named(node).find(|side| build.of(*side) != "None")?;
            Some(build.origin(side, place))
        }
        "subscript" | "generic_type" => {
            let mut parts = named(node);
            let base = parts.next()?;
            let arguments: Vec<Node<'t>> = match node.kind() {
                "generic_type" => {
                    parts.next().map(|list| named(list).collect()).unwrap_or_default()
                }
                _ => parts.collect(),
            };
            let name = build.of(base).rsplit('.').next().unwrap_or_default();
            let meant = arguments.iter().find(|one| build.of(**one) != "None");
            match name {
                "Optional" | "Union" | "Annotated" | "ClassVar" | "Final" | "Required" => {
                    meant.map(|one| build.origin(*one, place))
                }
                _ => {
                    let arguments = arguments.iter().take(4).map(|one| build.origin(*one, place));
                    let arguments = arguments.collect();
                    Some(Origin::Applied(Box::new(build.origin(base, place)), arguments))
                }
            }
        }
        _ => None,
    }
}

/// A name in quotes, for what is defined further down.
fn quoted<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let text = build.of(node).trim_matches(['"', '\'']);
    let text = text.split('|').map(str::trim).find(|part| *part != "None").unwrap_or_default();
    let plain =
        |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut parts = text.split('.');
    let Some(first) = parts.next().filter(plain) else { return Origin::Unknown };
    let mut origin = match first {
        "Self" => build.scopes.class(place.scope).map_or(Origin::Unknown, Origin::Definition),
        _ => build.name(first, node.start_byte(), place),
    };
    for part in parts {
        if !plain(&part) {
            return Origin::Unknown;
        }
        origin = member(origin, part);
    }
    origin
}
