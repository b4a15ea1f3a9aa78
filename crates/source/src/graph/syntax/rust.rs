use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Adopted, Build, Enter, child_of, children, named};
use crate::graph::origin::{call as call_of, element};
use crate::graph::scope::{Bound, ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("function_item", Rule::Ask(function), Form::Unknown),
        ("function_signature_item", Rule::Ask(function), Form::Unknown),
        ("struct_item", Rule::Ask(class), Form::Unknown),
        ("enum_item", Rule::Ask(class), Form::Unknown),
        ("union_item", Rule::Ask(class), Form::Unknown),
        ("trait_item", Rule::Ask(class), Form::Unknown),
        ("impl_item", Rule::Ask(implementation), Form::Unknown),
        ("mod_item", Rule::Ask(module), Form::Unknown),
        ("type_item", Rule::Ask(alias), Form::Unknown),
        ("associated_type", Rule::Ask(alias), Form::Unknown),
        ("const_item", Rule::Ask(constant), Form::Unknown),
        ("static_item", Rule::Ask(constant), Form::Unknown),
        ("macro_definition", Rule::Ask(macro_definition), Form::Unknown),
        ("field_declaration", Rule::Ask(field), Form::Unknown),
        ("enum_variant", Rule::Ask(variant), Form::Unknown),
        ("use_declaration", Rule::Ask(import), Form::Unknown),
        ("extern_crate_declaration", Rule::Skip, Form::Unknown),
        ("attribute_item", Rule::Ask(attribute), Form::Unknown),
        ("parameter", Rule::Ask(parameter), Form::Unknown),
        ("type_parameter", Rule::Ask(type_parameter), Form::Unknown),
        ("closure_parameters", Rule::Ask(closure_parameters), Form::Unknown),
        ("closure_expression", Rule::Ask(shared::closure), Form::Unknown),
        ("let_declaration", Rule::Ask(binding), Form::Unknown),
        ("let_condition", Rule::Ask(binding), Form::Unknown),
        ("for_expression", Rule::Ask(for_each), Form::Unknown),
        ("match_arm", Rule::Ask(arm), Form::Unknown),
        ("block", Rule::Block, Form::Ask(last)),
        ("call_expression", Rule::Call(Field::Function), Form::Ask(call)),
        ("macro_invocation", Rule::Call(Field::Macro), Form::Unknown),
        ("token_tree", Rule::Ask(tokens), Form::Unknown),
        ("field_expression", Rule::Member(Field::Field), Form::Member(Field::Value, Field::Field)),
        ("scoped_identifier", Rule::Member(Field::Name), Form::Ask(path)),
        ("scoped_type_identifier", Rule::Member(Field::Name), Form::Ask(path)),
        ("generic_function", Rule::Pass, Form::Field(Field::Function)),
        ("struct_expression", Rule::Ask(made), Form::Ask(made_of)),
        ("field_initializer", Rule::Ask(initializer), Form::Unknown),
        ("identifier", Rule::Name, Form::Name),
        ("shorthand_field_identifier", Rule::Pass, Form::Name),
        ("self", Rule::Pass, Form::Name),
        ("crate", Rule::Pass, Form::Name),
        ("super", Rule::Pass, Form::Name),
        ("try_expression", Rule::Pass, Form::Same),
        ("await_expression", Rule::Pass, Form::Awaited),
        ("reference_expression", Rule::Pass, Form::Field(Field::Value)),
        ("unary_expression", Rule::Pass, Form::Same),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("index_expression", Rule::Pass, Form::Ask(indexed)),
        ("type_cast_expression", Rule::Pass, Form::Unknown),
        ("type_identifier", Rule::Type, Form::Name),
        ("generic_type", Rule::Pass, Form::Ask(generic)),
        ("reference_type", Rule::Pass, Form::Field(Field::Type)),
        ("pointer_type", Rule::Pass, Form::Field(Field::Type)),
        ("dynamic_type", Rule::Pass, Form::Field(Field::Trait)),
        ("abstract_type", Rule::Pass, Form::Field(Field::Trait)),
        ("array_type", Rule::Pass, Form::Ask(list)),
        ("line_comment", Rule::Skip, Form::Unknown),
        ("block_comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Paths,
    bare_members: false,
    in_order: true,
    read_type: None,
    callee: None,
};

fn is_public(node: Node<'_>) -> bool {
    child_of(node, "visibility_modifier").is_some()
}

fn function<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let found = shared::function(build, node, name, build.child(node, Field::ReturnType));
    let Some((index, scope)) = found else { return Enter::Into };
    let public = is_public(node) || build.scopes.class(build.scope).is_some();
    shared::export(build, Some(index), public);
    let own = build.scopes.find("Self", build.scope, 0, true, true).map(|(_, bound)| bound.clone());
    if let Some(Bound::Local(Source::Alias(class))) = own {
        if let Some(draft) = build.draft(index) {
            draft.owner = Some(class);
            draft.definition.kind = Kind::Method;
        }
        build.scopes.bind(scope, "self", 0, Bound::Local(Source::Type(class)));
    } else if let ScopeKind::Class(class) = build.scopes.kind(build.scope) {
        build.scopes.bind(scope, "self", 0, Bound::Local(Source::This(class)));
        build.scopes.bind(scope, "Self", 0, Bound::Local(Source::Class(class)));
    }
    Enter::Inside(Some(scope), Some(index))
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let kind = match node.kind() {
        "enum_item" => Kind::Enum,
        "union_item" => Kind::Union,
        "trait_item" => Kind::Trait,
        _ => Kind::Struct,
    };
    let bounds = build.child(node, Field::Bounds).into_iter().flat_map(named);
    let is_type = |base: &Node<'_>| base.kind().contains("type");
    let bases = bounds.filter(is_type).map(|base| (base, ReferenceKind::Inherit)).collect();
    let found = shared::class(build, node, name, kind, bases);
    shared::export(build, found.map(|(index, _)| index), is_public(node));
    shared::inside(found)
}

/// `impl Trait for Type`: its functions belong to the type, wherever that is.
fn implementation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(class) = build.child(node, Field::Type) else { return Enter::Into };
    let scope = build.open(ScopeKind::Namespace);
    build.scopes.bind(scope, "Self", 0, Bound::Local(Source::Alias(class)));
    if let Some(base) = build.child(node, Field::Trait) {
        build.adopted.push(Adopted { class, base, scope });
    }
    Enter::Inside(Some(scope), None)
}

/// `mod a;` is another file, `mod a { … }` a part of this one.
fn module<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    if build.child(node, Field::Body).is_some() {
        let index = build.drafts.len() as u32;
        let enter = shared::namespace(build, node, name);
        shared::export(build, Some(index), is_public(node));
        return enter;
    }
    let text = build.of(name);
    build.next_is_test = false;
    shared::import(build, node, &format!("self::{text}"), Imported::Module, Some(text), true);
    Enter::Over
}

fn alias<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let value = build.child(node, Field::Type).map_or(Source::Unknown, Source::Alias);
    let index = shared::field(build, node, name, Kind::Type, value);
    shared::export(build, index, is_public(node));
    Enter::Into
}

fn constant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let source = shared::source(build.child(node, Field::Type), None);
    let index = shared::field(build, node, name, Kind::Constant, source);
    shared::export(build, index, is_public(node));
    Enter::Into
}

fn macro_definition<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let index = build.define(node, name, Kind::Macro);
        shared::export(build, index, true);
    }
    Enter::Over
}

fn field<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let (Some(name), ScopeKind::Class(_)) =
        (build.child(node, Field::Name), build.scopes.kind(build.scope))
    {
        let source = shared::source(build.child(node, Field::Type), None);
        let index = build.note(node, name, build.of(name), Kind::Field, build.within);
        shared::export(build, index, is_public(node));
        if let Some(draft) = index.and_then(|index| build.draft(index)) {
            draft.value = source;
        }
    }
    Enter::Into
}

fn variant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
        let index = build.note(node, name, build.of(name), Kind::Constant, build.within);
        shared::export(build, index, true);
    }
    Enter::Open(ScopeKind::Block)
}

fn attribute<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let text = build.of(node);
    build.next_is_test |= text.ends_with("test]") || text.contains("cfg(test)");
    Enter::Over
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(pattern) = build.child(node, Field::Pattern) {
        let source = shared::source(build.child(node, Field::Type), None);
        bind(build, pattern, node.start_byte(), source);
    }
    Enter::Into
}

fn type_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let bounds = build.child(node, Field::Bounds).and_then(|bounds| named(bounds).next());
        shared::type_parameter(build, name, bounds);
    }
    Enter::Into
}

fn closure_parameters<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for pattern in named(node).filter(|one| one.kind() != "parameter") {
        bind(build, pattern, node.start_byte(), Source::Unknown);
    }
    Enter::Into
}

fn binding<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(pattern) = build.child(node, Field::Pattern) {
        let value = build.child(node, Field::Value);
        let source = shared::source(build.child(node, Field::Type), value);
        bind(build, pattern, node.end_byte(), source);
    }
    Enter::Into
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let (Some(pattern), Some(value)) =
        (build.child(node, Field::Pattern), build.child(node, Field::Value))
    {
        let around = std::mem::replace(&mut build.scope, scope);
        let source = Source::Element(std::rc::Rc::new(Source::Value(value)));
        bind(build, pattern, value.end_byte(), source);
        build.scope = around;
    }
    Enter::Inside(Some(scope), None)
}

fn arm<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let Some(pattern) = build.child(node, Field::Pattern) {
        let around = std::mem::replace(&mut build.scope, scope);
        bind_all(build, pattern, node.start_byte(), 0);
        build.scope = around;
    }
    Enter::Inside(Some(scope), None)
}

/// The names in a pattern. What is inside of another thing is unknown.
fn bind<'t>(build: &mut Build<'t>, pattern: Node<'t>, at: usize, source: Source<'t>) {
    match pattern.kind() {
        "identifier" => build.bind(build.scope, pattern, at, source),
        "mut_pattern" | "ref_pattern" | "reference_pattern" => {
            if let Some(inner) = named(pattern).find(|inner| inner.kind() != "mutable_specifier") {
                bind(build, inner, at, source);
            }
        }
        // `Some(x)` and `Ok(x)` hold what types say without them.
        "tuple_struct_pattern"
            if matches!(build.field(pattern, Field::Type), Some("Some" | "Ok")) =>
        {
            if let Some(inner) = named(pattern).nth(1) {
                bind(build, inner, at, source);
            }
        }
        _ => bind_all(build, pattern, at, 0),
    }
}

fn bind_all<'t>(build: &mut Build<'t>, pattern: Node<'t>, at: usize, depth: usize) {
    const DEEPEST: usize = 12;
    for part in named(pattern).filter(|_| depth < DEEPEST) {
        match part.kind() {
            // A name in capitals is a constant or a variant that is compared with.
            "identifier" | "shorthand_field_identifier"
                if build.of(part).starts_with(|c: char| c.is_lowercase() || c == '_') =>
            {
                build.bind(build.scope, part, at, Source::Unknown);
            }
            _ => bind_all(build, part, at, depth + 1),
        }
    }
}

fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(argument) = build.child(node, Field::Argument) {
        tree(build, argument, String::new(), "", 0);
    }
    Enter::Over
}

/// The names in a tree of `use`, each with the path that leads to it. `last` is the last
/// name of that path.
fn tree<'t>(build: &mut Build<'t>, node: Node<'t>, path: String, last: &'t str, depth: usize) {
    const DEEPEST: usize = 12;
    let under = |more: &str| match path.is_empty() {
        true => more.to_owned(),
        false => format!("{path}::{more}"),
    };
    match node.kind() {
        _ if depth > DEEPEST => {}
        "scoped_use_list" => {
            let more = build.field(node, Field::Path);
            let prefix = more.map_or(path.clone(), under);
            let last = more.map_or(last, last_of);
            if let Some(list) = build.child(node, Field::List) {
                tree(build, list, prefix, last, depth + 1);
            }
        }
        "use_list" => {
            for one in named(node) {
                tree(build, one, path.clone(), last, depth + 1);
            }
        }
        "use_wildcard" => {
            let prefix = named(node).next().map(|prefix| build.of(prefix));
            let prefix = prefix.map_or(path.clone(), under);
            shared::import(build, node, &prefix, Imported::All, None, true);
        }
        "use_as_clause" => {
            let alias = build.field(node, Field::Alias).filter(|alias| *alias != "_");
            let target = build.field(node, Field::Path).unwrap_or_default();
            add(build, node, &under(target), alias);
        }
        "self" => add(build, node, &path, Some(last)),
        _ => {
            let text = build.of(node);
            add(build, node, &under(text), Some(last_of(text)));
        }
    }
}

fn last_of(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

fn add<'t>(build: &mut Build<'t>, node: Node<'t>, path: &str, bound: Option<&'t str>) {
    let (module, what) = match path.rsplit_once("::") {
        Some((module, name)) => (module, Imported::Name(name.to_owned())),
        None => (path, Imported::Module),
    };
    shared::import(build, node, module, what, bound, true);
}

/// What macros are given is not parsed, but a name before a bracket is a call. Where there are
/// no errors there are only tokens, so all of it is visited here, from the tokens at hand.
fn tokens<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let mut ahead: Vec<Node<'t>> = Vec::new();
    calls(build, node, &mut ahead);
    if node.has_error() {
        let mut left = ahead.iter().rev().peekable();
        for token in children(node) {
            if left.next_if_eq(&&token).is_none() {
                build.pass(token);
            }
        }
        return Enter::Into;
    }
    while let Some(token) = ahead.pop() {
        match build.syntax.entry(token).rule {
            Rule::Name => build.site(token, ReferenceKind::Use),
            Rule::Ask(_) => calls(build, token, &mut ahead),
            Rule::Pass if token.child_count() > 0 => {
                let start = ahead.len();
                ahead.extend(children(token));
                ahead[start..].reverse();
            }
            _ => {}
        }
    }
    Enter::Over
}

/// Notes the calls among the tokens in one pair of brackets, and puts those tokens ahead that
/// are still to be visited, the first of them last.
fn calls<'t>(build: &mut Build<'t>, node: Node<'t>, ahead: &mut Vec<Node<'t>>) {
    let start = ahead.len();
    let mut before: Option<Node<'t>> = None;
    let mut name: Option<Node<'t>> = None;
    for token in children(node) {
        if let Some(name) = name.take()
            && build.of(token).starts_with('(')
            && token.kind() == "token_tree"
        {
            build.site(name, ReferenceKind::Call);
            ahead.pop();
        }
        let is_name = matches!(build.syntax.entry(token).rule, Rule::Name);
        // An error may be a sign as well, but has it inside.
        let is_sign = |before: &Node<'t>| is_name && before.child_count() == 0;
        let before = before.replace(token).filter(is_sign).map(|before| build.of(before));
        if !matches!(before, Some("." | "::")) {
            name = Some(token).filter(|_| is_name);
            ahead.push(token);
        }
    }
    ahead[start..].reverse();
}

/// `S { … }` makes one.
fn made<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        build.type_site(name, ReferenceKind::Use);
        build.pass(name);
    }
    Enter::Into
}

fn made_of<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let name = build.child(node, Field::Name);
    name.map_or(Origin::Unknown, |name| build.instance(name, place))
}

fn initializer<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Field) {
        build.pass(name);
    }
    Enter::Into
}

/// Methods that give what they are called on, or what is in it.
const SAME: [&str; 22] = [
    "unwrap",
    "expect",
    "clone",
    "as_ref",
    "as_mut",
    "borrow",
    "borrow_mut",
    "lock",
    "to_owned",
    "unwrap_or_default",
    "iter",
    "iter_mut",
    "into_iter",
    "as_deref",
    "as_deref_mut",
    "cloned",
    "into_inner",
    "get_mut",
    "take",
    "await",
    "by_ref",
    "unwrap_or_else",
];

fn call<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let Some(function) = build.child(node, Field::Function) else { return Origin::Unknown };
    if function.kind() == "field_expression"
        && let (Some(value), Some(name)) =
            (build.child(function, Field::Value), build.field(function, Field::Field))
        && SAME.contains(&name)
    {
        return build.origin(value, place);
    }
    if matches!(build.of(function), "Some" | "Ok") {
        let inner = build.child(node, Field::Arguments).and_then(|list| named(list).next());
        return inner.map_or(Origin::Unknown, |inner| build.origin(inner, place));
    }
    call_of(build.origin(function, place))
}

/// `a::b`; a bare `::b` is looked up as `b`.
fn path<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let Some(name) = build.field(node, Field::Name) else { return Origin::Unknown };
    let Some(path) = build.child(node, Field::Path) else {
        return Origin::Name(name.to_owned());
    };
    let object = match path.kind() {
        "self" => Origin::Name("self".to_owned()),
        _ => build.origin(path, Place { types: true, ..place }),
    };
    Origin::Member(Box::new(object), name.to_owned())
}

/// The value of a block is its last expression.
fn last<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    named(node).last().map_or(Origin::Unknown, |last| build.origin(last, place))
}

fn indexed<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    element(build.first(node, place))
}

/// Types that are used like what is in them.
const TRANSPARENT: [&str; 11] =
    ["Box", "Rc", "Arc", "Option", "Result", "RefCell", "Mutex", "RwLock", "Cell", "Cow", "Pin"];

fn generic<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let base = build.child(node, Field::Type);
    let arguments = build.child(node, Field::TypeArguments);
    let name = base.map(|base| build.of(base)).unwrap_or_default();
    let bare = name.rsplit("::").next().unwrap_or(name);
    if TRANSPARENT.contains(&bare)
        && let Some(arguments) = arguments
    {
        let inner = named(arguments).find(|one| one.kind() != "lifetime");
        return inner.map_or(Origin::Unknown, |inner| build.origin(inner, place));
    }
    build.applied(base, arguments, place)
}

fn list<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let element = build.child(node, Field::Element);
    let element = element.map_or(Origin::Unknown, |element| build.origin(element, place));
    Origin::Applied(Box::new(Origin::Name("Vec".to_owned())), vec![element])
}
