//! Resolves names among the files of a project.
//!
//! A file by itself says which names it defines, imports and uses ([`FileGraph`]). Here the
//! names become edges: [`resolve`] looks them up, for one file at a time, in whatever
//! implements [`Project`]. It reads no file, opens no database and parses nothing.
//!
//! The look-ups are remembered as [`Key`]s, those that found nothing included. A file has to
//! be resolved again when a key that it has looked at is among the [`changed_keys`] of
//! another file, and not otherwise.
//!
//! [`FileGraph`]: isolith_types::FileGraph

mod documents;
mod edges;
mod keys;
mod look;
mod members;
mod modules;
mod outline;
mod steps;
mod tests;
mod value;

pub use edges::resolve;
pub use keys::{Key, changed_keys, module_keys};
pub use outline::Outline;

use std::sync::Arc;

use isolith_types::{CodeEdge, CodeNode};

/// The files of one root, as far as names are concerned.
pub trait Project {
    /// What a file defines and imports, by its path relative to the root.
    fn file(&self, path: &str) -> Option<Arc<Outline>>;

    /// The paths of the files that have this among their [`module_keys`], in order.
    fn files_of_module(&self, module: &str) -> Arc<[String]>;

    /// The definitions of this name, in the order of paths and lines; nothing if there are
    /// more than `most`.
    fn definitions_named(&self, name: &str, most: usize) -> Option<Arc<[CodeNode]>>;
}

/// What became of the names in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Each of them once, in order.
    pub edges: Vec<CodeEdge>,
    /// What was looked up in other files, each once, in order.
    pub keys: Vec<Key>,
}
