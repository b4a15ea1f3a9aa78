//! An in-memory project of a few files, parsed and resolved for real.

use std::collections::BTreeMap;
use std::sync::Arc;

use isolate_types::InWorker;
use isolith_resolve::{Outline, Project, Resolution, module_keys, resolve};
use isolith_source::{Chunker, Mode, WorkLimit};
use isolith_types::{Certainty, CodeEdge, CodeNode, EdgeKind, FileGraph};

/// Outlines by path.
#[derive(Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Arc<Outline>>);

impl Files {
    /// Parses pairs of path and text.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut chunker = Chunker::new(InWorker::in_process());
        let mut graph = |path: &str, text: &str| {
            let chunked = chunker.chunk(path, text, Mode::Parsed, WorkLimit::NONE, &|| false);
            Arc::new(chunked.graph.into())
        };
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), graph(path, text))).collect())
    }

    /// Resolves one of the files.
    pub(crate) fn resolution(&self, path: &str) -> Resolution {
        resolve(path, &self.0[path], &self.0[path].references, self)
    }

    /// The edges of these kinds, as `from -KIND> to`, with a `?` after candidates.
    pub(crate) fn edges(&self, kinds: &[EdgeKind]) -> Vec<String> {
        let mut all = Vec::new();
        for path in self.0.keys() {
            let edges = self.resolution(path).edges;
            let edges = edges.iter().filter(|edge| kinds.contains(&edge.kind));
            all.extend(edges.map(|edge| self.shown(path, edge)));
        }
        all.sort();
        all
    }

    fn shown(&self, path: &str, edge: &CodeEdge) -> String {
        let from = CodeNode { path: path.to_owned(), definition: edge.from };
        let doubt = if edge.certainty == Certainty::Candidate { "?" } else { "" };
        format!("{} -{}> {}{doubt}", self.named(&from), edge.kind.name(), self.named(&edge.to))
    }

    fn named(&self, node: &CodeNode) -> String {
        match node.definition {
            Some(index) => self.0[&node.path].definitions[index as usize].id(&node.path),
            None => node.path.clone(),
        }
    }
}

impl Project for Files {
    fn file(&self, path: &str) -> Option<Arc<Outline>> {
        self.0.get(path).cloned()
    }

    fn files_of_module(&self, module: &str) -> Arc<[String]> {
        let has = |path: &str, graph: &FileGraph| {
            module_keys(path, graph).iter().any(|key| key == module)
        };
        self.0
            .iter()
            .filter(|(path, graph)| has(path, graph))
            .map(|(path, _)| path.clone())
            .collect()
    }

    fn definitions_named(&self, name: &str, max: usize) -> Option<Arc<[CodeNode]>> {
        let all = self.0.iter().flat_map(|(path, graph)| {
            let definitions = graph.definitions.iter().enumerate();
            let named = definitions.filter(|(_, one)| one.name == name);
            named.map(|(index, _)| CodeNode { path: path.clone(), definition: Some(index as u32) })
        });
        let all: Arc<[CodeNode]> = all.collect();
        (all.len() <= max).then_some(all)
    }
}
