use std::ops::Deref;
use std::sync::OnceLock;

use isolith_types::FileGraph;

/// What a file defines and imports, with its definitions by name. What it refers to is not
/// needed and may be left out.
#[derive(Debug, Default)]
pub struct Outline {
    graph: FileGraph,
    /// The indexes of the definitions in the order of names, then in their own.
    by_name: OnceLock<Vec<u32>>,
}

impl Outline {
    /// The definitions of a name by their indexes, in order.
    pub fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        let order = self.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.definitions.len() as u32).collect();
            order.sort_by_key(|index| self.name(*index));
            order
        });
        let first = order.partition_point(|index| self.name(*index) < name);
        order[first..].iter().copied().take_while(move |index| self.name(*index) == name)
    }

    fn name(&self, index: u32) -> &str {
        &self.definitions[index as usize].name
    }
}

impl From<FileGraph> for Outline {
    fn from(graph: FileGraph) -> Self {
        Self { graph, by_name: OnceLock::new() }
    }
}

impl Deref for Outline {
    type Target = FileGraph;

    fn deref(&self) -> &FileGraph {
        &self.graph
    }
}
