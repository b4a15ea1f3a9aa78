use std::hash::{BuildHasher, BuildHasherDefault};
use std::ops::Deref;
use std::sync::OnceLock;

use isolith_types::{FastHasher, FileGraph, Imported};

/// The definitions and imports of a file, indexed by name. References are not needed and may be
/// left out.
#[derive(Debug, Default)]
pub struct Outline {
    graph: FileGraph,
    index: OnceLock<Index>,
}

/// Indexes by name, built on first use.
#[derive(Debug)]
struct Index {
    definitions: ByName,
    /// Imports by the name they are bound to.
    bound: ByName,
    /// Imports of every name (`*`).
    stars: Vec<u32>,
}

/// Pairs of a name's hash and the index of the item, sorted.
#[derive(Debug)]
struct ByName(Vec<(u32, u32)>);

impl ByName {
    fn new<'n>(names: impl Iterator<Item = Option<&'n str>>) -> Self {
        let hashed = (0..).zip(names).filter_map(|(index, name)| Some((hash(name?), index)));
        let mut order: Vec<(u32, u32)> = hashed.collect();
        order.sort_unstable();
        Self(order)
    }

    /// The items that may have this name (hashes can collide), in order.
    fn like(&self, name: &str) -> impl Iterator<Item = u32> {
        let hash = hash(name);
        let first = self.0.partition_point(|(other, _)| *other < hash);
        let rest = self.0.get(first..).unwrap_or_default();
        rest.iter().take_while(move |(other, _)| *other == hash).map(|(_, index)| *index)
    }
}

fn hash(name: &str) -> u32 {
    BuildHasherDefault::<FastHasher>::default().hash_one(name) as u32
}

impl Outline {
    /// The indexes of the definitions with a name, in order.
    pub fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        let like = self.index().definitions.like(name);
        like.filter(move |index| self.definitions[*index as usize].name == name)
    }

    /// The indexes of the imports that are bound to a name, in order.
    pub(crate) fn bound(&self, name: &str) -> impl Iterator<Item = u32> {
        let like = self.index().bound.like(name);
        like.filter(move |index| self.imports[*index as usize].bound.as_deref() == Some(name))
    }

    /// The indexes of the imports of every name (`*`), in order.
    pub(crate) fn stars(&self) -> &[u32] {
        &self.index().stars
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let imports = (0..).zip(&self.imports);
            let stars = imports.filter(|(_, import)| import.what == Imported::All);
            Index {
                definitions: ByName::new(self.definitions.iter().map(|one| Some(&*one.name))),
                bound: ByName::new(self.imports.iter().map(|import| import.bound.as_deref())),
                stars: stars.map(|(index, _)| index).collect(),
            }
        })
    }
}

impl From<FileGraph> for Outline {
    fn from(graph: FileGraph) -> Self {
        Self { graph, index: OnceLock::new() }
    }
}

impl Deref for Outline {
    type Target = FileGraph;

    fn deref(&self) -> &FileGraph {
        &self.graph
    }
}
