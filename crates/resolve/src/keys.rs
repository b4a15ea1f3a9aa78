use std::collections::BTreeSet;

use isolith_types::{Definition, DefinitionKind, FileGraph, Manifest};

/// A lookup in a project, whether it found something or not, as a hash. Different lookups may
/// collide, which costs only time. Hashes are stored, so the function must never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LookupKey(pub u32);

impl LookupKey {
    /// A lookup of the file at a path.
    pub fn file(path: &str) -> Self {
        Self::of("file:", path)
    }

    /// A lookup of the files of a module, by a name from [`module_keys`].
    pub fn module(module: &str) -> Self {
        Self::of("module:", module)
    }

    /// A lookup of the definitions with a name.
    pub fn name(name: &str) -> Self {
        Self::of("name:", name)
    }

    /// FNV-1a.
    fn of(what: &str, name: &str) -> Self {
        let bytes = what.bytes().chain(name.bytes());
        Self(
            bytes
                .fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)),
        )
    }
}

/// The module names under which other files can import this one, besides its path. See
/// [`Project::files_of_module`](crate::Project::files_of_module).
pub fn module_keys(path: &str, graph: &FileGraph) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    let namespaced = |kind: &str| {
        let modules = |definition: &&Definition| definition.kind == DefinitionKind::Module;
        let named = graph.definitions.iter().filter(modules);
        let names = named.map(|definition| definition.qualified.as_str());
        let all: BTreeSet<&str> = names.chain(graph.namespace.as_deref()).collect();
        all.into_iter().map(|name| format!("{kind}:{name}")).collect()
    };
    match graph.language.as_str() {
        // Nothing imports a notebook.
        _ if file.ends_with(".ipynb") => Vec::new(),
        "python" if stem == "__init__" => {
            let package = folder.rsplit('/').next().unwrap_or(folder);
            vec![format!("python:{package}")]
        }
        "python" => vec![format!("python:{stem}")],
        "go" => vec![format!("go:{folder}")],
        "c" | "cpp" => vec![format!("include:{file}")],
        "java" => vec![format!("java:{}", graph.namespace.as_deref().unwrap_or_default())],
        "csharp" => namespaced("csharp"),
        "php" => vec![format!("php:{}", graph.namespace.as_deref().unwrap_or_default())],
        "ruby" => vec![format!("ruby:{stem}")],
        _ => package_key(file, graph.manifest.as_ref()).into_iter().collect(),
    }
}

fn package_key(file: &str, manifest: Option<&Manifest>) -> Option<String> {
    let name = manifest?.name.as_deref()?;
    match file {
        "Cargo.toml" => Some(format!("crate:{}", name.replace('-', "_"))),
        "package.json" => Some(format!("npm:{name}")),
        "go.mod" => Some(format!("gomod:{name}")),
        _ => None,
    }
}

/// The keys whose lookups change when a file's graph changes from `before` to `after`; `None`
/// stands for a missing file. Line numbers and function bodies do not count.
pub fn changed_keys(
    path: &str,
    before: Option<&FileGraph>,
    after: Option<&FileGraph>,
) -> BTreeSet<LookupKey> {
    let mut keys = BTreeSet::new();
    if !same_surface(before, after) {
        keys.insert(LookupKey::file(path));
    }
    let modules = |graph: Option<&FileGraph>| -> BTreeSet<String> {
        graph.map(|graph| module_keys(path, graph)).into_iter().flatten().collect()
    };
    let (old, new) = (modules(before), modules(after));
    keys.extend(old.symmetric_difference(&new).map(|module| LookupKey::module(module)));
    let (old, new) = (ids_by_name(before), ids_by_name(after));
    keys.extend(old.symmetric_difference(&new).map(|(name, ..)| LookupKey::name(name)));
    keys
}

fn ids_by_name(graph: Option<&FileGraph>) -> BTreeSet<(&str, &str, u32)> {
    let definitions = graph.map(|graph| graph.definitions.as_slice()).unwrap_or_default();
    definitions.iter().map(|one| (&*one.name, &*one.qualified, one.ordinal)).collect()
}

fn same_surface(before: Option<&FileGraph>, after: Option<&FileGraph>) -> bool {
    let (before, after) = match (before, after) {
        (None, None) => return true,
        (Some(before), Some(after)) => (before, after),
        _ => return false,
    };
    let same_imports = before.imports.len() == after.imports.len()
        && before.imports.iter().zip(&after.imports).all(|(a, b)| {
            a.module == b.module
                && a.what == b.what
                && a.bound == b.bound
                && a.exported == b.exported
                && a.within == b.within
        });
    let same_definitions = before.definitions.len() == after.definitions.len()
        && before.definitions.iter().zip(&after.definitions).all(|(a, b)| same_meaning(a, b));
    before.language == after.language
        && before.namespace == after.namespace
        && before.manifest == after.manifest
        && same_imports
        && same_definitions
}

fn same_meaning(a: &Definition, b: &Definition) -> bool {
    a.parent == b.parent
        && a.kind == b.kind
        && a.qualified == b.qualified
        && a.ordinal == b.ordinal
        && a.exported == b.exported
        && a.test == b.test
        && a.declared == b.declared
        && a.owner == b.owner
        && a.value == b.value
        && a.bases == b.bases
}
