//! Resolves references between the files of a project.
//!
//! A [`FileGraph`] lists the names that a file defines, imports and uses. [`resolve`] turns
//! them into edges, one file at a time, and sees other files only through [`Project`]. It reads
//! no file, opens no database and parses nothing.
//!
//! Lookups are recorded as [`LookupKey`]s, including those that found nothing. A file must be resolved
//! again if and only if one of its keys is among the [`changed_keys`] of another file.
//!
//! [`FileGraph`]: isolith_types::FileGraph

mod documents;
mod edges;
mod evaluate;
mod keys;
mod members;
mod modules;
mod outline;
mod project_view;
mod steps;
mod tests;

pub use edges::resolve;
pub use keys::{LookupKey, changed_keys, module_keys};
pub use outline::Outline;

use std::sync::Arc;

use isolith_types::{CodeEdge, CodeNode};

/// The files of one root, as name resolution sees them.
pub trait Project {
    /// The outline of a file, by its path relative to the root.
    fn file(&self, path: &str) -> Option<Arc<Outline>>;

    /// The paths of the files that have this among their [`module_keys`], in order.
    fn files_of_module(&self, module: &str) -> Arc<[String]>;

    /// The definitions with this name, in order of path and line; `None` if there are more
    /// than `max`.
    fn definitions_named(&self, name: &str, max: usize) -> Option<Arc<[CodeNode]>>;
}

/// The result of resolving a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Sorted, without duplicates.
    pub edges: Vec<CodeEdge>,
    /// The lookups in other files, sorted, without duplicates.
    pub keys: Vec<LookupKey>,
}
