//! Code as a graph: definitions and references of a file, and the resulting edges.
//!
//! A [`FileGraph`] depends on one file alone. Edges also depend on the other files of the
//! project.

use serde::{Deserialize, Serialize};

/// The definitions, imports and references of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileGraph {
    /// The language, as docs/languages.md names it.
    pub language: String,
    /// The package or namespace that it declares.
    pub namespace: Option<String>,
    /// In order of their start.
    pub definitions: Vec<Definition>,
    /// In line order.
    pub imports: Vec<Import>,
    /// In line order, without duplicates.
    pub references: Vec<Reference>,
    /// The package that it describes, if it is a file such as `Cargo.toml` or `tsconfig.json`.
    pub manifest: Option<Manifest>,
}

/// A named definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The index of the enclosing definition.
    pub parent: Option<u32>,
    /// Its kind.
    pub kind: DefinitionKind,
    /// The unqualified name, as written.
    pub name: String,
    /// The name with those of enclosing definitions, joined by dots: `Class.method`.
    pub qualified: String,
    /// The number of earlier definitions in the file with the same qualified name.
    pub ordinal: u32,
    /// The line where its name is, from 1.
    pub line: u32,
    /// Its first line, decorators included.
    pub start_line: u32,
    /// Its last line.
    pub end_line: u32,
    /// Its signature, on one line.
    pub signature: Option<String>,
    /// Whether it is visible to other files.
    pub exported: bool,
    /// Whether it is a test or test-only code.
    pub test: bool,
    /// Whether this is only a declaration (a prototype).
    pub declared: bool,
    /// The type that it is a member of, if that is not the enclosing definition:
    /// `impl Type`, `func (t *Type)`, `Type::method() {}`.
    pub owner: Option<Origin>,
    /// Its value, or what calling it returns.
    pub value: Option<Origin>,
    /// Its base classes, traits and interfaces, in order.
    pub bases: Vec<Origin>,
}

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
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
    /// All kinds.
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

    /// The label of nodes of this kind.
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

    /// The value of the property `kind` of its nodes.
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
    /// A stable id within the file: it does not depend on line numbers, nor on other
    /// definitions unless they have the same qualified name.
    pub fn local_id(&self) -> String {
        match self.ordinal {
            0 => self.qualified.clone(),
            ordinal => format!("{}~{ordinal}", self.qualified),
        }
    }

    /// A stable id within the root.
    pub fn id(&self, path: &str) -> String {
        format!("{path}#{}", self.local_id())
    }
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The file or module, as written: `./z`, `..a.b`, `crate::a`, `util.h`.
    pub module: String,
    /// What is imported from it.
    pub what: Imported,
    /// The name that it is bound to in this file, if any.
    pub bound: Option<String>,
    /// Whether this file re-exports it.
    pub exported: bool,
    /// The line, from 1.
    pub line: u32,
    /// The index of the enclosing definition.
    pub within: Option<u32>,
    /// Whether only types are imported, so that nothing is at run time.
    pub type_only: bool,
}

/// What an import takes from a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Imported {
    /// The module itself.
    Module,
    /// One name in it.
    Name(String),
    /// Every name in it (`*`).
    All,
}

/// A use of a name: a call, a base class, a mention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The index of the enclosing definition; `None` at the top level of the file.
    pub within: Option<u32>,
    /// How the target is used.
    pub kind: ReferenceKind,
    /// What the reference points to.
    pub target: Origin,
    /// The line of the first occurrence, from 1.
    pub line: u32,
}

/// How a reference uses its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// A call or construction: `f()`, `new C()`.
    Call,
    /// A base class.
    Inherit,
    /// An implemented interface or trait.
    Implement,
    /// Any other use in code.
    Use,
    /// A mention in a document.
    Mention,
}

/// Where a value or type comes from, as far as one file shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// Not known.
    Unknown,
    /// A definition in the same file, by index.
    Definition(u32),
    /// An import in the same file, by index.
    Import(u32),
    /// A name that the file does not bind.
    Name(String),
    /// A name that may be a member of the class with this index, or of an enclosing one;
    /// otherwise, a name that the file does not bind.
    Implicit(u32, String),
    /// An instance of the class with this index: `self`, `this`.
    This(u32),
    /// The base of the class with this index: `super`.
    Super(u32),
    /// Member access: `object.name`.
    Member(Box<Origin>, String),
    /// The result of calling it.
    Call(Box<Origin>),
    /// An instance of this type.
    Instance(Box<Origin>),
    /// A generic type with its arguments: `List<String>`.
    Applied(Box<Origin>, Vec<Origin>),
    /// An element of it: `x` in `for x in …`.
    Element(Box<Origin>),
    /// The result of awaiting it.
    Awaited(Box<Origin>),
}

/// A package as its manifest describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The package's name.
    pub name: Option<String>,
    /// The folder for non-relative module names, relative to the file: `baseUrl`.
    pub base: Option<String>,
    /// Path mappings, which may contain `*`: `paths`, `exports`.
    pub aliases: Vec<(String, Vec<String>)>,
    /// The package's entry point, relative to the manifest.
    pub entry: Option<String>,
}

/// The type of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
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
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Calls,
        Self::Imports,
        Self::Inherits,
        Self::Implements,
        Self::References,
        Self::Tests,
        Self::Documents,
    ];

    /// The name in queries.
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

/// How certain an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Certainty {
    /// The reference was resolved to this definition.
    Resolved,
    /// One of a few possible definitions.
    Candidate,
}

impl Certainty {
    /// The value of the property `certainty` of edges.
    pub fn word(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::Candidate => "candidate",
        }
    }
}

/// An edge that starts in a given file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeEdge {
    /// Its type.
    pub kind: EdgeKind,
    /// The definition where it starts; `None` for the file itself.
    pub from: Option<u32>,
    /// The node where it ends.
    pub to: CodeNode,
    /// How certain it is.
    pub certainty: Certainty,
    /// Whether it is an import of types only.
    pub type_only: bool,
    /// The line of the reference, from 1.
    pub line: u32,
}

/// A file, or a definition in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeNode {
    /// Relative to the root, with slashes.
    pub path: String,
    /// The index of the definition; `None` for the file itself.
    pub definition: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_unique_names() {
        let words: std::collections::BTreeSet<_> =
            DefinitionKind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(words.len(), DefinitionKind::ALL.len());
        let names: std::collections::BTreeSet<_> =
            EdgeKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), EdgeKind::ALL.len());
    }

    #[test]
    fn origins_round_trip_through_postcard() {
        let of = Origin::Applied(Box::new(Origin::Name("List".into())), vec![Origin::Import(3)]);
        let origin = Origin::Member(Box::new(Origin::Instance(Box::new(of))), "add".into());
        let bytes = postcard::to_stdvec(&origin).unwrap();
        assert_eq!(postcard::from_bytes::<Origin>(&bytes).unwrap(), origin);
    }
}
