//! What the languages look like: for each kind of node whether it defines something, can
//! hold definitions, or belongs to the definition after it. One walk reads all of them.

mod bash;
mod c;
mod csharp;
mod dart;
mod elixir;
mod go;
mod graphql;
mod haskell;
mod java;
mod javascript;
mod kotlin;
mod lua;
mod php;
mod protobuf;
mod python;
mod ruby;
mod rust;
mod scala;
mod swift;
mod terraform;
mod toml;
mod zig;

use std::ops::Range;

use isolith_types::SymbolKind;
use tree_sitter::Node;

use crate::Language;

/// The longest name that is kept, in characters.
const NAME_CHARS: usize = 120;

/// How many children of a definition are looked at for its body or its attributes.
const FIRST_CHILDREN: u32 = 32;

/// A language, ready for walking trees.
pub(super) struct Grammar {
    language: tree_sitter::Language,
    table: &'static Table,
    /// By the number of the node's kind.
    actions: Vec<Action>,
    bodies: Vec<bool>,
    /// Whether the language has macros that its grammar does not know.
    macros: bool,
}

/// What is to be known of a language.
struct Table {
    grammar: fn() -> tree_sitter::Language,
    /// Kinds of nodes that matter; all others are passed over.
    rules: &'static [(&'static str, Action)],
    /// Nodes that are bodies without that name: a signature ends before them.
    bodies: &'static [&'static str],
    /// What a comment begins with that documents the thing around it.
    inner_docs: &'static [&'static str],
    /// Finds documentation at the beginning of a body.
    docstring: Option<FindDoc>,
    /// Whether a function may be written as several clauses that each repeat its name.
    clauses: bool,
}

type FindDoc = fn(Node<'_>, &str) -> Option<Range<usize>>;

/// What to do at a node.
#[derive(Clone, Copy)]
pub(super) enum Action {
    Skip,
    /// Its children may be definitions.
    Enter,
    /// The same, if it is too large for one chunk anyway.
    EnterLarge,
    /// The same, and its first line goes with the definition that opens it: `#ifdef`.
    Branch,
    /// It stands around a definition and begins with it: `export`, `template <…>`.
    Wrap,
    Comment,
    /// An attribute or decorator.
    Attribute,
    /// Modifiers, among which there may be attributes.
    Modifiers,
    Define(Shape),
    /// It depends.
    Ask(for<'t> fn(Node<'t>, &str) -> Answer<'t>),
}

/// What a look at a node says.
pub(super) enum Answer<'t> {
    Skip,
    Enter,
    Wrap,
    Comment,
    Attribute,
    Found(Found<'t>),
    /// This part of it, in brackets, is code to be parsed by itself.
    Code(Node<'t>),
}

/// How definitions of one kind of node are read.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Nothing for a block whose members have it as their parent.
    symbol: Option<SymbolKind>,
    name: Name,
    pub(super) inside: Inside,
}

#[derive(Clone, Copy)]
enum Name {
    /// In this field.
    Field(&'static str),
    /// The first child of this kind.
    Child(&'static str),
    /// Always the same.
    Fixed(&'static str),
}

/// What is in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    /// Statements. They are looked at only if they are too much for one chunk.
    Code,
    /// Methods and other members of a type.
    Members,
    /// Functions and types that belong to no type.
    Namespace,
}

/// A definition as it is found.
pub(super) struct Found<'t> {
    pub(super) symbol: Option<SymbolKind>,
    pub(super) name: String,
    pub(super) inside: Inside,
    /// The type that it says it is a member of.
    pub(super) owner: Option<String>,
    /// The node that has the body, if it is not the definition itself.
    pub(super) value: Option<Node<'t>>,
    /// Whether it is only declared here, so that it begins no chunk.
    pub(super) declared: bool,
}

impl Grammar {
    /// Nothing if there is no grammar for a language, or it does not fit the parser.
    pub(super) fn of(language: Language) -> Option<Self> {
        let table = table(language)?;
        let macros = matches!(language, Language::C | Language::Cpp);
        let language = (table.grammar)();
        let kinds = u16::try_from(language.node_kind_count()).ok()?;
        // A kind may have several numbers, so names are looked up for all numbers.
        let named =
            |kind| language.node_kind_for_id(kind).filter(|_| language.node_kind_is_named(kind));
        let action = |name: &str| table.rules.iter().find(|(rule, _)| *rule == name);
        let actions = (0..kinds)
            .map(|kind| named(kind).and_then(action).map_or(Action::Skip, |(_, action)| *action))
            .collect();
        let bodies =
            (0..kinds).map(|kind| named(kind).is_some_and(|name| table.bodies.contains(&name)));
        let bodies = bodies.collect();
        Some(Self { table, actions, bodies, language, macros })
    }

    pub(super) fn language(&self) -> &tree_sitter::Language {
        &self.language
    }

    pub(super) fn action(&self, node: Node<'_>) -> Action {
        // Errors have a number beyond all kinds, and may hold anything.
        self.actions.get(usize::from(node.kind_id())).copied().unwrap_or(Action::Enter)
    }

    pub(super) fn has_macros(&self) -> bool {
        self.macros
    }

    pub(super) fn has_clauses(&self) -> bool {
        self.table.clauses
    }

    pub(super) fn is_inner_doc(&self, comment: &str) -> bool {
        self.table.inner_docs.iter().any(|mark| comment.starts_with(mark))
    }

    pub(super) fn docstring(&self, body: Node<'_>, text: &str) -> Option<Range<usize>> {
        self.table.docstring.and_then(|find| find(body, text))
    }

    /// Where a declaration begins after its attributes, which may be inside what it wraps.
    pub(super) fn head_start(&self, node: Node<'_>) -> usize {
        const DEEPEST: usize = 6;
        let mut start = node;
        for _ in 0..DEEPEST {
            let after = self.after_attributes(start).unwrap_or(start);
            let first = after.child(0);
            start = after;
            let wraps = matches!(self.action(after), Action::Wrap);
            if !wraps && !first.is_some_and(|first| self.is_attribute(first)) {
                break;
            }
        }
        start.start_byte()
    }

    fn after_attributes<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        for child in first_children(node) {
            match self.action(child) {
                Action::Attribute | Action::Comment => {}
                Action::Modifiers => {
                    let mut inner = first_children(child).filter(|one| !self.is_attribute(*one));
                    if let Some(inner) = inner.next() {
                        return Some(inner);
                    }
                }
                _ => return Some(child),
            }
        }
        None
    }

    fn is_attribute(&self, node: Node<'_>) -> bool {
        matches!(self.action(node), Action::Attribute)
    }

    /// The body of a definition.
    pub(super) fn body<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        node.child_by_field_name("body").or_else(|| {
            let is_body = |child: &Node<'_>| {
                self.bodies.get(usize::from(child.kind_id())).copied().unwrap_or(false)
            };
            first_children(node).find(is_body)
        })
    }
}

impl Inside {
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::Members | Self::Namespace)
    }

    const fn of(symbol: SymbolKind) -> Self {
        match symbol {
            SymbolKind::Function | SymbolKind::Method => Self::Code,
            SymbolKind::Class | SymbolKind::Struct | SymbolKind::Enum | SymbolKind::Interface => {
                Self::Members
            }
            SymbolKind::Module => Self::Namespace,
            SymbolKind::Type | SymbolKind::Macro | SymbolKind::Constant | SymbolKind::Heading => {
                Self::Nothing
            }
        }
    }
}

impl Shape {
    /// Nothing if the node has no name.
    pub(super) fn found<'t>(&self, node: Node<'t>, text: &str) -> Option<Found<'t>> {
        let name = match self.name {
            Name::Field(field) => text_of(node.child_by_field_name(field)?, text),
            Name::Child(kind) => text_of(child_of(node, kind)?, text),
            Name::Fixed(name) => name,
        };
        let mut found = Found::named(name)?;
        found.symbol = self.symbol;
        found.inside = self.inside;
        Some(found)
    }
}

impl<'t> Found<'t> {
    /// A definition of this name; only the last part of `a::b` is its own.
    fn named(name: &str) -> Option<Self> {
        let own = name.rsplit("::").next().unwrap_or(name).trim();
        let name: String = own.chars().take(NAME_CHARS).collect();
        // What spans lines is code that was misread.
        if name.is_empty() || name.contains('\n') {
            return None;
        }
        let inside = Inside::Nothing;
        Some(Self { symbol: None, name, inside, owner: None, value: None, declared: false })
    }

    /// A symbol of this name, with inside it what its kind has.
    fn symbol(kind: SymbolKind, name: &str) -> Option<Self> {
        let found = Self::named(name)?;
        Some(Self { symbol: Some(kind), inside: Inside::of(kind), ..found })
    }

    fn owned_by(mut self, owner: Option<&str>) -> Self {
        self.owner =
            owner.filter(|owner| !owner.is_empty() && !owner.contains('\n')).map(str::to_owned);
        self
    }

    fn with_value(mut self, value: Node<'t>) -> Self {
        self.value = Some(value);
        self
    }

    fn with_inside(mut self, inside: Inside) -> Self {
        self.inside = inside;
        self
    }
}

impl<'t> From<Option<Found<'t>>> for Answer<'t> {
    fn from(found: Option<Found<'t>>) -> Self {
        found.map_or(Self::Skip, Self::Found)
    }
}

const fn define(kind: SymbolKind, name: Name) -> Action {
    Action::Define(Shape { symbol: Some(kind), name, inside: Inside::of(kind) })
}

/// A definition whose name is in the field `name`, as in most grammars.
const fn named(kind: SymbolKind) -> Action {
    define(kind, Name::Field("name"))
}

/// A block that defines no name itself.
const fn block(name: Name) -> Action {
    Action::Define(Shape { symbol: None, name, inside: Inside::Members })
}

fn table(language: Language) -> Option<&'static Table> {
    Some(match language {
        Language::Rust => &rust::TABLE,
        Language::Python => &python::TABLE,
        Language::JavaScript => &javascript::JAVASCRIPT,
        Language::TypeScript => &javascript::TYPESCRIPT,
        Language::Tsx => &javascript::TSX,
        Language::Go => &go::TABLE,
        Language::Java => &java::TABLE,
        Language::C => &c::C,
        Language::Cpp => &c::CPP,
        Language::CSharp => &csharp::TABLE,
        Language::Ruby => &ruby::TABLE,
        Language::Php => &php::TABLE,
        Language::Kotlin => &kotlin::TABLE,
        Language::Swift => &swift::TABLE,
        Language::Scala => &scala::TABLE,
        Language::Dart => &dart::TABLE,
        Language::Lua => &lua::TABLE,
        Language::Elixir => &elixir::TABLE,
        Language::Bash => &bash::TABLE,
        Language::Haskell => &haskell::TABLE,
        Language::Zig => &zig::TABLE,
        Language::Toml => &toml::TABLE,
        Language::Terraform => &terraform::TABLE,
        Language::Protobuf => &protobuf::TABLE,
        Language::GraphQl => &graphql::TABLE,
        _ => return None,
    })
}

fn text_of<'s>(node: Node<'_>, text: &'s str) -> &'s str {
    text.get(node.byte_range()).unwrap_or_default()
}

fn first_children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let count = u32::try_from(node.child_count()).unwrap_or(u32::MAX);
    (0..count.min(FIRST_CHILDREN)).filter_map(move |index| node.child(index))
}

fn child_of<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    first_children(node).find(|child| child.kind() == kind)
}

fn field_text<'s>(node: Node<'_>, field: &str, text: &'s str) -> Option<&'s str> {
    node.child_by_field_name(field).map(|child| text_of(child, text))
}

/// `Vec<T>` without what is in brackets, `&mut Vec` without what is before the name.
fn bare_type(name: &str) -> &str {
    let name = name.split(['<', '(', '[', '{']).next().unwrap_or(name).trim();
    let name = name.rsplit([' ', '*', '&']).next().unwrap_or(name);
    name.rsplit(['.', ':']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables that serve several grammars name kinds which only some of them have.
    const SHARED: [Language; 4] =
        [Language::JavaScript, Language::TypeScript, Language::Tsx, Language::C];

    #[test]
    fn every_grammar_fits_the_parser() {
        for language in Language::all() {
            assert_eq!(language.has_grammar(), table(language).is_some(), "{language}");
            if language.has_grammar() {
                let grammar = Grammar::of(language).unwrap();
                tree_sitter::Parser::new().set_language(grammar.language()).unwrap();
            }
        }
    }

    #[test]
    fn every_rule_names_a_kind_that_exists() {
        for language in Language::all().filter(|language| language.has_grammar()) {
            let table = table(language).unwrap();
            let grammar = (table.grammar)();
            let kinds: Vec<&str> = table.rules.iter().map(|(kind, _)| *kind).collect();
            let mut unknown: Vec<&str> = kinds
                .iter()
                .chain(table.bodies)
                .filter(|kind| grammar.id_for_node_kind(kind, true) == 0)
                .copied()
                .collect();
            if SHARED.contains(&language) {
                unknown.clear();
            }
            assert!(unknown.is_empty(), "{language}: {unknown:?}");
        }
    }
}
