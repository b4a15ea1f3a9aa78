use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use isolith_types::{CodeNode, Definition, DefinitionKind, FastMap, FastSet};

use crate::modules::Located;
use crate::{Key, Outline, Project};

/// A project as one file looks at it: every look is remembered.
pub(crate) struct Look<'p> {
    project: &'p dyn Project,
    own: File,
    files: RefCell<FastMap<String, Option<File>>>,
    /// By the file that imports, and the name that it has there.
    modules: RefCell<FastMap<u32, FastMap<String, Module>>>,
    named: RefCell<FastMap<String, Named>>,
    keys: RefCell<FastSet<Key>>,
}

/// Where a module is, and what of its name is to be looked for inside.
pub(crate) type Module = (Located, Arc<[String]>);

/// What was found under a name.
enum Named {
    /// All of so many.
    All(usize, Rc<[Found]>),
    /// There are more than these many.
    MoreThan(usize),
}

/// A file with its place.
#[derive(Clone)]
pub(crate) struct File {
    /// Among those that were looked at.
    pub(crate) number: u32,
    pub(crate) path: Arc<str>,
    pub(crate) graph: Arc<Outline>,
}

/// A definition with its file.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) file: File,
    pub(crate) index: u32,
}

impl<'p> Look<'p> {
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
        self.keys.borrow_mut().insert(Key::file(path));
        let found = self.project.file(path);
        let mut files = self.files.borrow_mut();
        let number = files.len() as u32 + 1;
        let found = found.map(|graph| File { number, path: Arc::from(path), graph });
        files.insert(path.to_owned(), found.clone());
        found
    }

    /// The module that a file imports under a name, which is looked for once.
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

    /// The files that go by a name.
    pub(crate) fn files_of_module(&self, module: &str) -> Arc<[String]> {
        self.keys.borrow_mut().insert(Key::module(module));
        self.project.files_of_module(module)
    }

    /// The definitions of a name, if there are no more than so many.
    pub(crate) fn named(&self, name: &str, most: usize) -> Option<Rc<[Found]>> {
        match self.named.borrow().get(name) {
            Some(Named::All(many, found)) => return (*many <= most).then(|| Rc::clone(found)),
            Some(Named::MoreThan(many)) if most <= *many => return None,
            _ => {}
        }
        self.keys.borrow_mut().insert(Key::name(name));
        let nodes = self.project.definitions_named(name, most);
        let (known, found) = match nodes {
            None => (Named::MoreThan(most), None),
            Some(nodes) => {
                let found: Rc<[Found]> = nodes.iter().filter_map(|node| self.found(node)).collect();
                (Named::All(nodes.len(), Rc::clone(&found)), Some(found))
            }
        };
        self.named.borrow_mut().insert(name.to_owned(), known);
        found
    }

    fn found(&self, node: &CodeNode) -> Option<Found> {
        let file = self.file(&node.path)?;
        let index = node.definition?;
        file.graph.definitions.get(index as usize)?;
        Some(Found { file, index })
    }

    /// All that was looked at.
    pub(crate) fn into_keys(self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.keys.into_inner().into_iter().collect();
        keys.sort_unstable();
        keys
    }
}

impl File {
    /// A definition of the file.
    pub(crate) fn found(&self, index: u32) -> Option<Found> {
        self.graph.definitions.get(index as usize)?;
        Some(Found { file: self.clone(), index })
    }

    /// What the file itself defines under a name, outside of all else. Types are preferred
    /// over values, or the other way round; the last of equals counts.
    pub(crate) fn top(&self, name: &str, types: bool) -> Option<Found> {
        // What is in a namespace of C++ is seen from inside the same one, wherever that is.
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

    /// The member of a definition of the file.
    pub(crate) fn child(&self, parent: u32, name: &str, types: bool) -> Option<Found> {
        self.best(name, types, |definition| definition.parent == Some(parent))
    }

    fn best(
        &self,
        name: &str,
        types: bool,
        is_meant: impl Fn(&Definition) -> bool,
    ) -> Option<Found> {
        let named = self.graph.named(name);
        let named = named.map(|index| (index, &self.graph.definitions[index as usize]));
        let meant = named.filter(|(_, one)| is_meant(one));
        let rank = |one: &Definition| {
            let fits =
                matches!(one.kind, DefinitionKind::Interface | DefinitionKind::Type) == types;
            // `this.f = this.f.bind(this)` is still the method; a getter says more than a setter.
            (fits, one.kind.is_callable(), one.value.is_some())
        };
        let (index, _) = meant.max_by_key(|(_, one)| rank(one))?;
        Some(Found { file: self.clone(), index })
    }
}

impl Found {
    pub(crate) fn definition(&self) -> &Definition {
        // Made only for definitions that are there.
        &self.file.graph.definitions[self.index as usize]
    }

    pub(crate) fn node(&self) -> CodeNode {
        CodeNode { path: self.file.path.as_ref().to_owned(), definition: Some(self.index) }
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.index == other.index && self.file.number == other.file.number
    }
}
