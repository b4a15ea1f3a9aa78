use isolith_types::DefinitionKind as Kind;
use isolith_types::{Imported, Origin, ReferenceKind};
use tree_sitter::Node;

use super::{Field, Form, Open, Place, Rule, Table, shared};
use crate::graph::build::{Build, Enter, child_of, named};
use crate::graph::origin::{call as call_of, member};
use crate::graph::scope::{ScopeKind, Source};

pub(super) static TABLE: Table = Table {
    kinds: &[
        ("package_declaration", Rule::Ask(package), Form::Unknown),
        ("import_declaration", Rule::Ask(import), Form::Unknown),
        ("class_declaration", Rule::Ask(class), Form::Unknown),
        ("interface_declaration", Rule::Ask(class), Form::Unknown),
        ("annotation_type_declaration", Rule::Ask(class), Form::Unknown),
        ("enum_declaration", Rule::Ask(class), Form::Unknown),
        ("record_declaration", Rule::Ask(class), Form::Unknown),
        ("enum_constant", Rule::Ask(constant), Form::Unknown),
        ("method_declaration", Rule::Ask(method), Form::Unknown),
        ("constructor_declaration", Rule::Ask(method), Form::Unknown),
        ("field_declaration", Rule::Ask(fields), Form::Unknown),
        ("constant_declaration", Rule::Ask(fields), Form::Unknown),
        ("local_variable_declaration", Rule::Ask(locals), Form::Unknown),
        ("formal_parameter", Rule::Ask(parameter), Form::Unknown),
        ("catch_formal_parameter", Rule::Ask(parameter), Form::Unknown),
        ("resource", Rule::Ask(parameter), Form::Unknown),
        ("enhanced_for_statement", Rule::Ask(for_each), Form::Unknown),
        ("type_parameter", Rule::Ask(type_parameter), Form::Unknown),
        ("inferred_parameters", Rule::Ask(inferred), Form::Unknown),
        ("lambda_expression", Rule::Ask(lambda), Form::Unknown),
        ("class_body", Rule::Pass, Form::Unknown),
        ("block", Rule::Block, Form::Unknown),
        ("for_statement", Rule::Block, Form::Unknown),
        ("return_statement", Rule::Pass, Form::Unknown),
        ("method_invocation", Rule::Ask(invocation), Form::Ask(invoked)),
        ("object_creation_expression", Rule::Ask(creation), Form::Ask(created)),
        ("field_access", Rule::Member(Field::Field), Form::Member(Field::Object, Field::Field)),
        ("scoped_identifier", Rule::Member(Field::Name), Form::Member(Field::Scope, Field::Name)),
        ("identifier", Rule::Name, Form::Name),
        ("type_identifier", Rule::Type, Form::Name),
        ("scoped_type_identifier", Rule::Pass, Form::Ask(scoped)),
        ("generic_type", Rule::Pass, Form::Ask(generic)),
        ("array_type", Rule::Pass, Form::Ask(array)),
        ("cast_expression", Rule::Pass, Form::Ask(cast)),
        ("parenthesized_expression", Rule::Pass, Form::Same),
        ("array_access", Rule::Pass, Form::Element(Field::Array)),
        ("assignment_expression", Rule::Pass, Form::Field(Field::Right)),
        ("this", Rule::Pass, Form::This),
        ("super", Rule::Pass, Form::Super),
        ("labeled_statement", Rule::Pass, Form::Unknown),
        ("line_comment", Rule::Skip, Form::Unknown),
        ("block_comment", Rule::Skip, Form::Unknown),
    ],
    open: Open::Always,
    bare_members: true,
    in_order: true,
    read_type: None,
    callee: Some(callee),
};

fn package<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.namespace = named(node).last().map(|name| build.of(name).to_owned());
    Enter::Over
}

/// `import a.b.C;`, `import a.b.*;`, `import static a.b.C.f;`
fn import<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let path = named(node).find(|child| matches!(child.kind(), "scoped_identifier" | "identifier"));
    let Some(path) = path.map(|path| build.of(path)) else { return Enter::Over };
    if child_of(node, "asterisk").is_some() {
        shared::import(build, node, path, Imported::All, None, false);
    } else if let Some((module, name)) = path.rsplit_once('.') {
        shared::import(build, node, module, Imported::Name(name.to_owned()), Some(name), false);
    }
    Enter::Over
}

fn modifiers<'t>(build: &Build<'t>, node: Node<'t>) -> &'t str {
    child_of(node, "modifiers").map(|list| build.of(list)).unwrap_or_default()
}

fn class<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let kind = match node.kind() {
        "interface_declaration" | "annotation_type_declaration" => Kind::Interface,
        "enum_declaration" => Kind::Enum,
        "record_declaration" => Kind::Struct,
        _ => Kind::Class,
    };
    let mut bases = Vec::new();
    let superclass = build.child(node, Field::Superclass).and_then(|part| named(part).next());
    bases.extend(superclass.map(|base| (base, ReferenceKind::Inherit)));
    let extends = child_of(node, "extends_interfaces").map(|part| (part, ReferenceKind::Inherit));
    let lists = build.child(node, Field::Interfaces).map(|part| (part, ReferenceKind::Implement));
    for (list, kind) in extends.into_iter().chain(lists) {
        let types = named(list).flat_map(named);
        bases.extend(types.map(|base| (base, kind)));
    }
    let public = modifiers(build, node).contains("public");
    let found = shared::class(build, node, name, kind, bases);
    shared::export(build, found.map(|(index, _)| index), public);
    shared::inside(found)
}

fn constant<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let class = build.within;
    let index = shared::field(build, node, name, Kind::Constant, Source::Unknown);
    shared::export(build, index, true);
    if let (Some(class), Some(draft)) = (class, index.and_then(|index| build.draft(index))) {
        draft.value = Source::This(class);
    }
    Enter::Into
}

fn method<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let Some(name) = build.child(node, Field::Name) else { return Enter::Into };
    let words = modifiers(build, node);
    let in_interface = build.within.and_then(|index| build.drafts.get(index as usize));
    let in_interface = in_interface.is_some_and(|class| class.definition.kind == Kind::Interface);
    let found = shared::function(build, node, name, build.child(node, Field::Type));
    if let Some(draft) = found.and_then(|(index, _)| build.draft(index)) {
        draft.definition.exported = words.contains("public") || in_interface;
        draft.definition.test = words.contains("Test");
        if node.kind() == "constructor_declaration" {
            draft.definition.kind = Kind::Constructor;
        }
    }
    shared::inside(found)
}

fn fields<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let words = modifiers(build, node);
    let kind = match words.contains("static") && words.contains("final") {
        true => Kind::Constant,
        false => Kind::Field,
    };
    let typed = build.child(node, Field::Type);
    for one in named(node).filter(|child| child.kind() == "variable_declarator") {
        if let Some(name) = build.child(one, Field::Name) {
            let source = shared::source(typed, None);
            let index = shared::field(build, node, name, kind, source);
            shared::export(build, index, words.contains("public"));
        }
    }
    Enter::Into
}

/// The type of a variable, unless it is `var`.
fn type_of<'t>(build: &Build<'t>, node: Node<'t>) -> Option<Node<'t>> {
    build.child(node, Field::Type).filter(|typed| build.of(*typed) != "var")
}

fn locals<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let typed = type_of(build, node);
    for one in named(node).filter(|child| child.kind() == "variable_declarator") {
        if let Some(name) = build.child(one, Field::Name) {
            let source = shared::source(typed, build.child(one, Field::Value));
            build.bind(build.scope, name, one.end_byte(), source);
        }
    }
    Enter::Into
}

fn parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(name) = build.child(node, Field::Name) {
        let source = shared::source(type_of(build, node), build.child(node, Field::Value));
        build.bind(build.scope, name, node.start_byte(), source);
    }
    Enter::Into
}

fn for_each<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Block);
    if let Some(name) = build.child(node, Field::Name) {
        let source = match (type_of(build, node), build.child(node, Field::Value)) {
            (None, Some(value)) => Source::Element(std::rc::Rc::new(Source::Value(value))),
            (typed, _) => shared::source(typed, None),
        };
        build.bind(scope, name, node.start_byte(), source);
    }
    Enter::Inside(Some(scope), None)
}

fn type_parameter<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let bound = child_of(node, "type_bound").and_then(|bound| named(bound).next());
    if let Some(name) = named(node).next() {
        shared::type_parameter(build, name, bound);
    }
    Enter::Into
}

fn inferred<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    for name in named(node) {
        build.bind(build.scope, name, node.start_byte(), Source::Unknown);
    }
    Enter::Over
}

fn lambda<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    let scope = build.open(ScopeKind::Function(None));
    let only = build.child(node, Field::Parameters).filter(|one| one.kind() == "identifier");
    if let Some(name) = only {
        build.bind(scope, name, node.start_byte(), Source::Unknown);
    }
    Enter::Inside(Some(scope), None)
}

fn invocation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    build.site(node, ReferenceKind::Call);
    if let Some(name) = build.child(node, Field::Name) {
        build.pass(name);
    }
    Enter::Into
}

fn callee<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Option<Origin> {
    if node.kind() != "method_invocation" {
        return None;
    }
    let name = build.child(node, Field::Name)?;
    let text = build.of(name);
    Some(match build.child(node, Field::Object) {
        Some(object) => member(build.origin(object, place), text),
        // A method is never a variable.
        None => build.method(text, place),
    })
}

fn invoked<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    callee(build, node, place).map_or(Origin::Unknown, call_of)
}

fn creation<'t>(build: &mut Build<'t>, node: Node<'t>) -> Enter {
    if let Some(class) = build.child(node, Field::Type) {
        build.type_site(class, ReferenceKind::Call);
        if class.kind() == "type_identifier" {
            build.pass(class);
        }
    }
    // A class without a name may follow, whose methods belong to nobody.
    Enter::Open(ScopeKind::Block)
}

fn created<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let class = build.child(node, Field::Type);
    class.map_or(Origin::Unknown, |class| build.instance(class, place))
}

fn scoped<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let mut parts = named(node);
    let (Some(scope), Some(name)) = (parts.next(), parts.last()) else { return Origin::Unknown };
    member(build.origin(scope, place), build.of(name))
}

fn generic<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let mut parts = named(node);
    let base = parts.next();
    let arguments = parts.next();
    let optional = base.is_some_and(|base| build.of(base) == "Optional");
    match arguments.and_then(|arguments| named(arguments).next()).filter(|_| optional) {
        Some(inner) => build.origin(inner, place),
        None => build.applied(base, arguments, place),
    }
}

fn array<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    let element = build.child(node, Field::Element);
    let element = element.map_or(Origin::Unknown, |element| build.origin(element, place));
    Origin::Applied(Box::new(Origin::Name("[]".to_owned())), vec![element])
}

fn cast<'t>(build: &Build<'t>, node: Node<'t>, place: Place) -> Origin {
    created(build, node, place)
}
