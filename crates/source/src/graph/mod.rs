//! Files as parts of a graph: what they define, import and refer to.
//!
//! One walk over the tree that the chunker has parsed notes definitions, the names that
//! scopes bind, and places where something is named. After it, when all bindings of a scope
//! are known, each such place becomes an [`Origin`](isolith_types::Origin).

mod build;
mod finish;
mod manifest;
mod mention;
mod names;
mod origin;
mod scope;
mod syntax;

use isolith_types::FileGraph;
use tree_sitter::Tree;

use crate::Language;

pub(crate) use self::manifest::manifest;
pub(crate) use self::mention::{Heading, sections};
pub(crate) use self::syntax::Syntax;

/// What a parsed file contributes to the graph. `go_on` is asked before each step of work;
/// when it says no, the file contributes nothing.
pub(crate) fn file_graph(
    language: Language,
    syntax: &Syntax,
    tree: &Tree,
    text: &str,
    go_on: &dyn Fn() -> bool,
) -> FileGraph {
    let mut build = build::Build::new(syntax, text);
    let mut graph = match build.run(tree, go_on) {
        true => finish::finish(build, go_on),
        false => FileGraph::default(),
    };
    graph.language = language.name().to_owned();
    graph
}
