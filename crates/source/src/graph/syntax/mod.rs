//! What the languages look like to the graph: for each kind of node what is to be noted of
//! it, and how it is read as a value or a type.

mod javascript;
mod python;

use isolith_types::Origin;
use tree_sitter::Node;

use super::build::{Build, Enter};
use crate::Language;

/// A language, ready for walking trees.
pub(crate) struct Syntax {
    /// By the number of the node's kind.
    entries: Vec<Entry>,
    pub(super) table: &'static Table,
}

/// What is to be known of a language.
pub(super) struct Table {
    /// Kinds of nodes that matter; the others are passed through.
    pub(super) kinds: &'static [(&'static str, Rule, Form)],
    /// Whether a name may be found in other files without an import.
    pub(super) open: bool,
    /// Whether methods see the members of their class by their bare names.
    pub(super) bare_members: bool,
    /// Reads a type that is written like a value.
    pub(super) read_type: Option<ReadType>,
}

pub(super) type ReadType = for<'t> fn(&Build<'t>, Node<'t>, Place) -> Option<Origin>;

/// Where a node is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) scope: u32,
    /// Whether it is a type.
    pub(super) types: bool,
    /// How many more steps may be taken.
    pub(super) left: u32,
}

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
    Call(&'static str),
    /// It is something of what is before the dot; this field says what.
    Member(&'static str),
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
    Member(&'static str, &'static str),
    /// What a call of the field gives.
    Call(&'static str),
    /// What its first child is.
    Same,
    /// What the field is.
    Field(&'static str),
    /// An element of the field.
    Element(&'static str),
    /// What waiting for its first child gives.
    Awaited,
    /// A type in the first field, with those in the second in brackets.
    Applied(&'static str, &'static str),
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
            let name = grammar.node_kind_for_id(kind).filter(|_| grammar.node_kind_is_named(kind));
            let known = |name| table.kinds.iter().find(|(kind, ..)| *kind == name);
            name.and_then(known)
                .map_or(NOTHING, |(_, rule, form)| Entry { rule: *rule, form: *form })
        };
        Some(Self { entries: (0..kinds).map(entry).collect(), table })
    }

    pub(super) fn entry(&self, node: Node<'_>) -> Entry {
        self.entries.get(usize::from(node.kind_id())).copied().unwrap_or(NOTHING)
    }
}

const NOTHING: Entry = Entry { rule: Rule::Pass, form: Form::Unknown };

fn table(language: Language) -> Option<&'static Table> {
    Some(match language {
        Language::Python => &python::TABLE,
        Language::JavaScript | Language::TypeScript | Language::Tsx => &javascript::TABLE,
        _ => return None,
    })
}
