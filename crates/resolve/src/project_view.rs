use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use isolith_types::{CodeNode, Definition, DefinitionKind, FastMap, FastSet};

use crate::modules::Located;
use crate::{LookupKey, Outline, Project};

/// A project as one file sees it. Lookups are cached, and recorded as keys.
pub(crate) struct ProjectView<'p> {
    project: &'p dyn Project,
    own: File,
    files: RefCell<FastMap<String, Option<File>>>,
    /// By the importing file, and the module's name there.
    modules: RefCell<FastMap<u32, FastMap<String, Module>>>,
    named: RefCell<FastMap<String, NameLookup>>,
    keys: RefCell<FastSet<LookupKey>>,
}

/// The location of a module, and the rest of the name, to be looked up inside it.
pub(crate) type Module = (Located, Arc<[String]>);

/// The cached lookup of a name.
enum NameLookup {
    /// The number of definitions, and those that could be loaded.
    All(usize, Rc<[DefinitionRef]>),
    /// There are more definitions than this.
    MoreThan(usize),
}

/// A file of the project.
#[derive(Clone)]
pub(crate) struct File {
    /// Identifies the file within this view.
    pub(crate) number: u32,
    pub(crate) path: Arc<str>,
    pub(crate) graph: Arc<Outline>,
}

/// A definition in a file.
#[derive(Clone)]
pub(crate) struct DefinitionRef {
    pub(crate) file: File,
    pub(crate) index: u32,
}

impl<'p> ProjectView<'p> {
    pub(crate) fn new(project: &'p dyn Project, path: &str, graph: Arc<Outline>) -> Self {
        let own = File { number: 0, path: Arc::from(path), graph };
        let (files, modules, named) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { project, own, files, modules, named, keys: RefCell::default() }
    }

    pub(crate) fn own(&self) -> &File {
        &self.own
    }

    /// The file at a path.
    pub(crate) fn file(&self, path: &str) -> Option<File> {
        if *path == *self.own.path {
            return Some(self.own.clone());
        }
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        self.keys.borrow_mut().insert(LookupKey::file(path));
        let found = self.project.file(path);
        let mut files = self.files.borrow_mut();
        let number = files.len() as u32 + 1;
        let found = found.map(|graph| File { number, path: Arc::from(path), graph });
        files.insert(path.to_owned(), found.clone());
        found
    }

    /// The module that a file imports under a name; `locate` runs only once.
    pub(crate) fn module(
        &self,
        from: &File,
        name: &str,
        locate: impl FnOnce() -> Module,
    ) -> Module {
        if let Some(known) = self.modules.borrow().get(&from.number).and_then(|all| all.get(name)) {
            return known.clone();
        }
        let found = locate();
        let mut modules = self.modules.borrow_mut();
        let of_file = modules.entry(from.number).or_default();
        of_file.insert(name.to_owned(), found.clone());
        found
    }

    /// The files of a module, by a name from [`crate::module_keys`].
    pub(crate) fn files_of_module(&self, module: &str) -> Arc<[String]> {
        self.keys.borrow_mut().insert(LookupKey::module(module));
        self.project.files_of_module(module)
    }

    /// The definitions with a name; `None` if there are more than `max`.
    pub(crate) fn named(&self, name: &str, max: usize) -> Option<Rc<[DefinitionRef]>> {
        match self.named.borrow().get(name) {
            Some(NameLookup::All(many, found)) => return (*many <= max).then(|| Rc::clone(found)),
            Some(NameLookup::MoreThan(many)) if max <= *many => return None,
            _ => {}
        }
        self.keys.borrow_mut().insert(LookupKey::name(name));
        let nodes = self.project.definitions_named(name, max);
        let (known, found) = match nodes {
            None => (NameLookup::MoreThan(max), None),
            Some(nodes) => {
                let found: Rc<[DefinitionRef]> =
                    nodes.iter().filter_map(|node| self.definition_at(node)).collect();
                (NameLookup::All(nodes.len(), Rc::clone(&found)), Some(found))
            }
        };
        self.named.borrow_mut().insert(name.to_owned(), known);
        found
    }

    fn definition_at(&self, node: &CodeNode) -> Option<DefinitionRef> {
        let file = self.file(&node.path)?;
        let index = node.definition?;
        file.graph.definitions.get(index as usize)?;
        Some(DefinitionRef { file, index })
    }

    /// The keys of all lookups, sorted.
    pub(crate) fn into_keys(self) -> Vec<LookupKey> {
        let mut keys: Vec<LookupKey> = self.keys.into_inner().into_iter().collect();
        keys.sort_unstable();
        keys
    }
}

impl File {
    /// The definition with this index, if it exists.
    pub(crate) fn definition(&self, index: u32) -> Option<DefinitionRef> {
        self.graph.definitions.get(index as usize)?;
        Some(DefinitionRef { file: self.clone(), index })
    }

    /// The top-level definition with a name. `types` says whether types are preferred over
    /// values, or the other way round; of equals, the last one counts.
    pub(crate) fn top(&self, name: &str, types: bool) -> Option<DefinitionRef> {
        // Members of a C++ namespace are visible throughout that namespace, in any file.
        let in_namespace = |definition: &Definition| {
            let parent =
                definition.parent.and_then(|parent| self.graph.definitions.get(parent as usize));
            self.graph.language == "cpp"
                && parent.is_some_and(|parent| parent.kind == DefinitionKind::Module)
        };
        self.best(name, types, |definition| {
            definition.owner.is_none() && (definition.parent.is_none() || in_namespace(definition))
        })
    }

    /// The member of a definition in this file.
    pub(crate) fn child(&self, parent: u32, name: &str, types: bool) -> Option<DefinitionRef> {
        self.best(name, types, |definition| definition.parent == Some(parent))
    }

    fn best(
        &self,
        name: &str,
        types: bool,
        is_meant: impl Fn(&Definition) -> bool,
    ) -> Option<DefinitionRef> {
        let named = self.graph.named(name);
        let named = named.map(|index| (index, &self.graph.definitions[index as usize]));
        let meant = named.filter(|(_, one)| is_meant(one));
        let rank = |one: &Definition| {
            let fits =
                matches!(one.kind, DefinitionKind::Interface | DefinitionKind::Type) == types;
            // For `this.f = this.f.bind(this)`, prefer the method; prefer a getter over a setter.
            (fits, one.kind.is_callable(), one.value.is_some())
        };
        let (index, _) = meant.max_by_key(|(_, one)| rank(one))?;
        Some(DefinitionRef { file: self.clone(), index })
    }
}

impl DefinitionRef {
    pub(crate) fn definition(&self) -> &Definition {
        // Constructed only for definitions that exist.
        &self.file.graph.definitions[self.index as usize]
    }

    pub(crate) fn node(&self) -> CodeNode {
        CodeNode { path: self.file.path.as_ref().to_owned(), definition: Some(self.index) }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.index == other.index && self.file.number == other.file.number
    }
}
