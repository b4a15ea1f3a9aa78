//! Code as a graph: what a file defines and refers to, and the edges that come of it.
//!
//! A [`FileGraph`] is what one file says by itself, whatever the other files are. Edges are
//! what it means among the other files of its project.

use serde::{Deserialize, Serialize};

/// What a file defines, imports and refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileGraph {
    /// The language, as docs/languages.md names it.
    pub language: String,
    /// The package or namespace that it says it is part of.
    pub namespace: Option<String>,
    /// In the order in which they start.
    pub definitions: Vec<Definition>,
    /// In the order of lines.
    pub imports: Vec<Import>,
    /// In the order of lines, each said once however often it occurs.
    pub references: Vec<Reference>,
    /// What it says about its package, if it is a file that does: `Cargo.toml`, `tsconfig.json`.
    pub manifest: Option<Manifest>,
}

/// Something with a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The definition around it, by its index.
    pub parent: Option<u32>,
    /// What it is.
    pub kind: DefinitionKind,
    /// As it is written, without the names around it.
    pub name: String,
    /// With the names around it, joined by dots: `Class.method`.
    pub qualified: String,
    /// How many definitions of the same qualified name come before it in the file.
    pub ordinal: u32,
    /// The line where its name is, from 1.
    pub line: u32,
    /// Its first line, decorators included.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// How it is declared, on one line, without its body.
    pub signature: Option<String>,
    /// Whether other files can see it.
    pub exported: bool,
    /// Whether it is a test, or there only for tests.
    pub test: bool,
    /// Whether it is only declared here, and defined elsewhere: a prototype.
    pub declared: bool,
    /// The type that it is a member of, if that is not the definition around it:
    /// `impl Type`, `func (t *Type)`, `Type::method() {}`.
    pub owner: Option<Origin>,
    /// What its value is, or what a call of it gives.
    pub value: Option<Origin>,
    /// The types it is made from, in order: base classes, traits, interfaces.
    pub bases: Vec<Origin>,
}

/// What a definition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DefinitionKind {
    Module,
    Class,
    Struct,
    Enum,
    Union,
    Interface,
    Trait,
    Type,
    Function,
    Macro,
    Method,
    Constructor,
    Property,
    Field,
    Variable,
    Constant,
    Section,
}

impl DefinitionKind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Module,
        Self::Class,
        Self::Struct,
        Self::Enum,
        Self::Union,
        Self::Interface,
        Self::Trait,
        Self::Type,
        Self::Function,
        Self::Macro,
        Self::Method,
        Self::Constructor,
        Self::Property,
        Self::Field,
        Self::Variable,
        Self::Constant,
        Self::Section,
    ];

    /// The label of its nodes.
    pub fn label(self) -> &'static str {
        match self {
            Self::Module => "Module",
            Self::Class
            | Self::Struct
            | Self::Enum
            | Self::Union
            | Self::Interface
            | Self::Trait
            | Self::Type => "Class",
            Self::Function | Self::Macro => "Function",
            Self::Method | Self::Constructor | Self::Property => "Method",
            Self::Field | Self::Variable | Self::Constant => "Variable",
            Self::Section => "DocSection",
        }
    }

    /// The word for it, the property `kind` of its nodes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Enum => "enum",
            Self::Union => "union",
            Self::Interface => "interface",
            Self::Trait => "trait",
            Self::Type => "type",
            Self::Function => "function",
            Self::Macro => "macro",
            Self::Method => "method",
            Self::Constructor => "constructor",
            Self::Property => "property",
            Self::Field => "field",
            Self::Variable => "variable",
            Self::Constant => "constant",
            Self::Section => "section",
        }
    }

    /// Whether it is a type.
    pub fn is_type(self) -> bool {
        self.label() == "Class"
    }

    /// Whether it is a function of any kind.
    pub fn is_callable(self) -> bool {
        matches!(self.label(), "Function" | "Method")
    }
}

impl Definition {
    /// What names it within its file, for good: it changes neither with its lines nor with
    /// what stands beside it, unless that has the same name.
    pub fn local_id(&self) -> String {
        match self.ordinal {
            0 => self.qualified.clone(),
            ordinal => format!("{}~{ordinal}", self.qualified),
        }
    }

    /// What names it within its root.
    pub fn id(&self, path: &str) -> String {
        format!("{path}#{}", self.local_id())
    }
}

/// Something that is taken out of another file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The file or module, as it is written: `./z`, `..a.b`, `crate::a`, `util.h`.
    pub module: String,
    /// What of it.
    pub what: Imported,
    /// The name that it has in this file; none if it gets none.
    pub bound: Option<String>,
    /// Whether other files can take it out of this one.
    pub exported: bool,
    /// The line, from 1.
    pub line: u32,
    /// The definition around it.
    pub within: Option<u32>,
    /// Whether only types are taken: nothing is imported when the program runs.
    pub type_only: bool,
}

/// What of a module is imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Imported {
    /// The module itself.
    Module,
    /// What it has under this name.
    Name(String),
    /// Every name in it.
    All,
}

/// A place where something is called, extended or named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The definition around it; none for what stands in the file alone.
    pub within: Option<u32>,
    /// What is done there.
    pub kind: ReferenceKind,
    /// What is meant.
    pub target: Origin,
    /// The line where it is first, from 1.
    pub line: u32,
}

/// What is done with something that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// It is called, or made: `f()`, `new C()`.
    Call,
    /// It is a base class.
    Inherit,
    /// It is an interface or trait that is implemented.
    Implement,
    /// It is named in any other way.
    Use,
    /// It is named in a document.
    Mention,
}

/// Where a value or a type comes from, as far as the text of one file tells.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// Nothing is known of it.
    Unknown,
    /// A definition of the same file, by its index.
    Definition(u32),
    /// An import of the same file, by its index.
    Import(u32),
    /// A name that the file itself does not bind.
    Name(String),
    /// A name that may be a member of the class with this index, or of one around it,
    /// and otherwise is one that the file does not bind.
    Implicit(u32, String),
    /// A value of the class with this index: `self`, `this`.
    This(u32),
    /// What the class with this index inherits: `super`.
    Super(u32),
    /// Of what is before the dot, what is after it.
    Member(Box<Origin>, String),
    /// What a call of it gives.
    Call(Box<Origin>),
    /// A value of this type.
    Instance(Box<Origin>),
    /// A type with others in brackets: `List<String>`.
    Applied(Box<Origin>, Vec<Origin>),
    /// An element of it: `x` in `for x in …`.
    Element(Box<Origin>),
    /// What waiting for it gives.
    Awaited(Box<Origin>),
}

/// What a file says about the package around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// What the package is called.
    pub name: Option<String>,
    /// Where relative names begin, relative to the file: `baseUrl`.
    pub base: Option<String>,
    /// Names that stand for others: `paths` with their `*`.
    pub aliases: Vec<(String, Vec<String>)>,
    /// The file that stands for the whole package, relative to this one.
    pub entry: Option<String>,
}

/// What leads from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EdgeKind {
    Calls,
    Imports,
    Inherits,
    Implements,
    References,
    Tests,
    Documents,
}

impl EdgeKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Calls,
        Self::Imports,
        Self::Inherits,
        Self::Implements,
        Self::References,
        Self::Tests,
        Self::Documents,
    ];

    /// The type of the edge, as queries name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "CALLS",
            Self::Imports => "IMPORTS",
            Self::Inherits => "INHERITS",
            Self::Implements => "IMPLEMENTS",
            Self::References => "REFERENCES",
            Self::Tests => "TESTS",
            Self::Documents => "DOCUMENTS",
        }
    }
}

/// How sure an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Certainty {
    /// The text of the files says so.
    Resolved,
    /// It is one of few that it may be.
    Candidate,
}

impl Certainty {
    /// The word for it, the property `certainty` of edges.
    pub fn word(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Candidate => "candidate",
        }
    }
}

/// An edge that begins in a given file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeEdge {
    /// What it says.
    pub kind: EdgeKind,
    /// The definition where it begins; none for the file itself.
    pub from: Option<u32>,
    /// Where it ends.
    pub to: CodeNode,
    /// How sure it is.
    pub certainty: Certainty,
    /// Whether it is an import of types alone.
    pub type_only: bool,
    /// The line that says so, from 1.
    pub line: u32,
}

/// A file, or a definition in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeNode {
    /// Relative to the root, with slashes.
    pub path: String,
    /// The definition by its index; none for the file itself.
    pub definition: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> =
            DefinitionKind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(words.len(), DefinitionKind::ALL.len());
        let names: std::collections::BTreeSet<_> =
            EdgeKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), EdgeKind::ALL.len());
    }

    #[test]
    fn origins_cross_the_boundary() {
        let of = Origin::Applied(Box::new(Origin::Name("List".into())), vec![Origin::Import(3)]);
        let origin = Origin::Member(Box::new(Origin::Instance(Box::new(of))), "add".into());
        let bytes = postcard::to_stdvec(&origin).unwrap();
        assert_eq!(postcard::from_bytes::<Origin>(&bytes).unwrap(), origin);
    }
}
