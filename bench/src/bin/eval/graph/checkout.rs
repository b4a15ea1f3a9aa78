//! The edges that the product finds, with its own chunker and resolver.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use isolate::InWorker;
use isolith_resolve::{Outline, Project, module_keys, resolve};
use isolith_source::{Chunker, Mode, WorkLimit};
use isolith_types::{CodeEdge, CodeNode, Definition, Import, Imported};

/// A parsed repository in memory.
#[derive(Default)]
pub(super) struct Checkout {
    pub(super) files: BTreeMap<String, Arc<Outline>>,
    modules: BTreeMap<String, Vec<String>>,
    names: BTreeMap<String, Vec<CodeNode>>,
}

impl Checkout {
    /// Reads and parses files.
    pub(super) fn read(folder: &Path, paths: &[String]) -> Result<Self> {
        let mut chunker = Chunker::new(InWorker::in_process());
        let mut checkout = Self::default();
        for path in paths {
            let Ok(text) = std::fs::read_to_string(folder.join(path)) else { continue };
            let limit = WorkLimit::NONE;
            let graph = chunker.chunk(path, &text, Mode::Parsed, limit, &|| false).graph;
            for module in module_keys(path, &graph) {
                checkout.modules.entry(module).or_default().push(path.clone());
            }
            for (index, definition) in graph.definitions.iter().enumerate() {
                let node = CodeNode { path: path.clone(), definition: Some(index as u32) };
                checkout.names.entry(definition.name.clone()).or_default().push(node);
            }
            checkout.files.insert(path.clone(), Arc::new(graph.into()));
        }
        Ok(checkout)
    }

    /// The edges of each file.
    pub(super) fn edges(&self) -> Vec<(String, Vec<CodeEdge>)> {
        let resolved = |(path, graph): (&String, &Arc<Outline>)| {
            (path.clone(), resolve(path, graph, &graph.references, self).edges)
        };
        self.files.iter().map(resolved).collect()
    }

    pub(super) fn definition(&self, node: &CodeNode) -> Option<&Definition> {
        self.files.get(&node.path)?.definitions.get(node.definition? as usize)
    }

    /// The names that a file may use for a definition.
    pub(super) fn names(&self, path: &str, node: &CodeNode) -> Vec<&str> {
        let Some(name) = self.definition(node).map(|one| one.name.as_str()) else {
            return Vec::new();
        };
        let bound_in = |path: &str| {
            let imports = self.files.get(path).map(|graph| graph.imports.as_slice());
            let meant = |import: &&Import| match &import.what {
                Imported::Name(other) => other == name || other == "default",
                _ => false,
            };
            let imports = imports.unwrap_or_default().iter().filter(meant);
            imports.filter_map(|import| import.bound.as_deref()).collect::<Vec<_>>()
        };
        let renamed = bound_in(path).into_iter().chain(bound_in(&node.path));
        std::iter::once(name).chain(renamed).collect()
    }

    /// The location of the first overload of the definition at a location.
    pub(super) fn first(&self, location: &(String, u32)) -> (String, u32) {
        let definitions = self.files.get(&location.0).map(|graph| graph.definitions.as_slice());
        let definitions = definitions.unwrap_or_default();
        let own = definitions.iter().find(|one| one.line == location.1 && !is_variable(one));
        let same = |other: &&Definition| own.is_some_and(|own| other.qualified == own.qualified);
        let first = definitions.iter().find(same).map_or(location.1, |first| first.line);
        (location.0.clone(), first)
    }

    /// The line of the innermost function or class that encloses a line; 0 for none.
    pub(super) fn enclosing(&self, path: &str, line: u32) -> u32 {
        let definitions = self.files.get(path).map(|graph| graph.definitions.as_slice());
        let holds = |one: &&Definition| {
            (one.kind.is_callable() || one.kind.is_type())
                && (one.start_line..=one.end_line).contains(&line)
        };
        let inner = definitions.unwrap_or_default().iter().filter(holds);
        inner.min_by_key(|one| one.end_line - one.start_line).map_or(0, |one| one.line)
    }
}

fn is_variable(one: &Definition) -> bool {
    !one.kind.is_callable() && !one.kind.is_type()
}

impl Project for Checkout {
    fn file(&self, path: &str) -> Option<Arc<Outline>> {
        self.files.get(path).cloned()
    }

    fn files_of_module(&self, module: &str) -> Arc<[String]> {
        self.modules.get(module).map(|paths| paths.as_slice().into()).unwrap_or_default()
    }

    fn definitions_named(&self, name: &str, most: usize) -> Option<Arc<[CodeNode]>> {
        let named = self.names.get(name).map(Vec::as_slice).unwrap_or_default();
        (named.len() <= most).then(|| named.into())
    }
}
