//! What the languages look like to the graph: for each kind of node what is to be noted of
//! it, and how it is read as a value or a type.

mod c;
mod csharp;
mod field;
mod go;
mod java;
mod javascript;
mod php;
mod python;
mod ruby;
mod rust;
mod shared;

use isolith_types::Origin;
use tree_sitter::Node;

pub(super) use self::field::Field;
use self::field::Fields;
use super::build::{Build, Enter};
use crate::Language;

/// A language, ready for walking trees.
pub(crate) struct Syntax {
    /// By the number of the node's kind.
    entries: Vec<Entry>,
    fields: Fields,
    pub(super) table: &'static Table,
}

/// What is to be known of a language.
pub(super) struct Table {
    /// Kinds of nodes that matter; the others are passed through.
    pub(super) kinds: &'static [(&'static str, Rule, Form)],
    /// Whether a name that a file does not bind may be found in other files.
    pub(super) open: Open,
    /// Whether methods see the members of their class by their bare names.
    pub(super) bare_members: bool,
    /// Whether a variable is there only after its declaration: until then its name means what
    /// it means outside, as in `let x = x();`.
    pub(super) in_order: bool,
    /// Reads a type that is written like a value.
    pub(super) read_type: Option<ReadNode>,
    /// Reads what is called, where the name is part of the call itself.
    pub(super) callee: Option<ReadNode>,
}

/// Where a name comes from that a file does not bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    /// From no other file.
    Never,
    /// Only from one that is imported whole.
    Stars,
    /// The same, but it may begin a path.
    Paths,
    /// From files of the same package, without any import.
    Always,
}

pub(super) type ReadNode = for<'t> fn(&Build<'t>, Node<'t>, Place) -> Option<Origin>;

/// Where a node is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) scope: u32,
    /// Whether it is a type.
    pub(super) types: bool,
    /// How many more steps may be taken.
    pub(super) left: u32,
}

/// What is to be known of a kind of node.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) rule: Rule,
    pub(super) form: Form,
}

/// What to do at a node.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Only its children matter.
    Pass,
    Skip,
    /// It opens a scope.
    Block,
    /// It is a name that is used.
    Name,
    /// It is the name of a type that is used.
    Type,
    /// Something is called that is in this field.
    Call(Field),
    /// It is something of what is before the dot; this field says what.
    Member(Field),
    /// It depends.
    Ask(for<'t> fn(&mut Build<'t>, Node<'t>) -> Enter),
}

/// How a node is read as a value or a type.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Nothing is known of it.
    Unknown,
    /// What its text names.
    Name,
    This,
    Super,
    Member(Field, Field),
    /// What a call of the field gives.
    Call(Field),
    /// What its first child is.
    Same,
    /// What the field is.
    Field(Field),
    /// An element of the field.
    Element(Field),
    /// What waiting for its first child gives.
    Awaited,
    /// A type in the first field, with those in the second in brackets.
    Applied(Field, Field),
    /// It depends.
    Ask(for<'t> fn(&Build<'t>, Node<'t>, Place) -> Origin),
}

impl Syntax {
    /// Nothing if the graph does not know the language.
    pub(crate) fn of(language: Language, grammar: &tree_sitter::Language) -> Option<Self> {
        let table = table(language)?;
        let kinds = u16::try_from(grammar.node_kind_count()).ok()?;
        // A kind may have several numbers, so names are looked up for all numbers.
        let entry = |kind: u16| {
            let name = grammar.node_kind_for_id(kind).unwrap_or_default();
            if !grammar.node_kind_is_named(kind) && !KEYWORDS.contains(&name) {
                return TOKEN;
            }
            let known = table.kinds.iter().find(|(kind, ..)| *kind == name);
            known.map_or(NOTHING, |(_, rule, form)| Entry { rule: *rule, form: *form })
        };
        let entries = (0..kinds).map(entry).collect();
        Some(Self { entries, fields: Fields::of(grammar), table })
    }

    pub(super) fn entry(&self, node: Node<'_>) -> &Entry {
        self.entries.get(usize::from(node.kind_id())).unwrap_or(&NOTHING)
    }

    /// What a node has in a field.
    pub(super) fn child<'t>(&self, node: Node<'t>, field: Field) -> Option<Node<'t>> {
        node.child_by_field_id(self.fields.number(field))
    }
}

/// Words that are values, though some grammars have no node for them with a name.
const KEYWORDS: [&str; 2] = ["this", "base"];

const NOTHING: Entry = Entry { rule: Rule::Pass, form: Form::Unknown };

/// A keyword or a sign, which has nothing in it.
const TOKEN: Entry = Entry { rule: Rule::Skip, ..NOTHING };

fn table(language: Language) -> Option<&'static Table> {
    Some(match language {
        Language::Python => &python::TABLE,
        Language::JavaScript | Language::TypeScript | Language::Tsx => &javascript::TABLE,
        Language::Rust => &rust::TABLE,
        Language::Go => &go::TABLE,
        Language::Java => &java::TABLE,
        Language::C | Language::Cpp => &c::TABLE,
        Language::CSharp => &csharp::TABLE,
        Language::Ruby => &ruby::TABLE,
        Language::Php => &php::TABLE,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_exists_and_is_there_once() {
        let grammars: [(Language, tree_sitter::Language); 8] = [
            (Language::Rust, isolith_grammars::rust()),
            (Language::Python, isolith_grammars::python()),
            (Language::Go, isolith_grammars::go()),
            (Language::Java, isolith_grammars::java()),
            (Language::Cpp, isolith_grammars::cpp()),
            (Language::CSharp, isolith_grammars::c_sharp()),
            (Language::Ruby, isolith_grammars::ruby()),
            (Language::Php, isolith_grammars::php()),
        ];
        for (language, grammar) in grammars {
            let kinds: Vec<&str> = table(language).unwrap().kinds.iter().map(|one| one.0).collect();
            let exists = |kind: &&&str| {
                grammar.id_for_node_kind(kind, true) != 0 || KEYWORDS.contains(*kind)
            };
            let unknown: Vec<&&str> = kinds.iter().filter(|kind| !exists(kind)).collect();
            assert!(unknown.is_empty(), "{language}: {unknown:?}");
            let once: std::collections::BTreeSet<&str> = kinds.iter().copied().collect();
            assert_eq!(once.len(), kinds.len(), "{language}");
        }
        let scripts = &javascript::TABLE;
        let both = [isolith_grammars::javascript(), isolith_grammars::tsx()];
        for (kind, ..) in scripts.kinds {
            let known = both.iter().any(|grammar| grammar.id_for_node_kind(kind, true) != 0);
            assert!(known, "javascript: {kind}");
        }
    }
}
