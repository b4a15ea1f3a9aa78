//! Languages whose files declare their package or namespace.

use std::sync::Arc;

use isolith_types::DefinitionKind;

use super::Located;
use crate::evaluate::Package;
use crate::project_view::{DefinitionRef, File, Module, ProjectView};

/// The longest prefix of a name that is a package; the rest is inside it.
pub(super) fn locate(view: &ProjectView<'_>, language: &str, module: &str) -> Module {
    let separator = separator(language);
    let module = module.trim_start_matches('\\');
    let parts: Vec<&str> = module.split(separator).collect();
    for length in (1..=parts.len()).rev() {
        let name = parts[..length].join(separator);
        if !view.files_of_module(&format!("{language}:{name}")).is_empty() {
            let rest = parts[length..].iter().map(|part| (*part).to_owned()).collect();
            return (package(language, name), rest);
        }
    }
    (Located::Nowhere, Arc::default())
}

/// A name with its namespace in front.
pub(super) fn qualified(name: &str) -> Module {
    let name = name.trim_start_matches('\\');
    let (namespace, last) = name.rsplit_once('\\').unwrap_or(("", name));
    (package("php", namespace.to_owned()), Arc::from([last.to_owned()]))
}

fn separator(language: &str) -> &'static str {
    if language == "php" { "\\" } else { "." }
}

fn package(language: &str, name: String) -> Located {
    Located::Package(Package { language: Arc::from(language), name })
}

/// The packages that a file sees without an import: its own and, in C#, the enclosing ones.
pub(super) fn own(file: &File) -> Vec<Located> {
    let graph = &file.graph;
    let language = graph.language.as_str();
    let own = graph.namespace.clone();
    match language {
        "csharp" => {
            let modules = graph.definitions.iter();
            let modules = modules.filter(|one| one.kind == DefinitionKind::Module);
            let names = modules.map(|one| one.qualified.clone()).chain(own);
            names.flat_map(|name| with_outer(&name)).map(|name| package(language, name)).collect()
        }
        _ => vec![package(language, own.unwrap_or_default())],
    }
}

fn with_outer(name: &str) -> Vec<String> {
    let outer =
        std::iter::successors(Some(name), |name| name.rsplit_once('.').map(|(outer, _)| outer));
    outer.map(str::to_owned).collect()
}

/// The definition of a name in one of a file's namespaces.
pub(super) fn in_namespace(
    file: &File,
    namespace: &str,
    name: &str,
    types: bool,
) -> Option<DefinitionRef> {
    if file.graph.namespace.as_deref() == Some(namespace)
        && let Some(top) = file.top(name, types)
    {
        return Some(top);
    }
    let definitions = file.graph.definitions.iter().enumerate();
    let mut modules = definitions
        .filter(|(_, one)| one.kind == DefinitionKind::Module && one.qualified == namespace);
    modules.find_map(|(index, _)| file.child(index as u32, name, types))
}

/// A package inside a package.
pub(super) fn inner(view: &ProjectView<'_>, outer: &Package, name: &str) -> Located {
    let name = format!("{}.{name}", outer.name);
    match view.files_of_module(&format!("{}:{name}", outer.language)).is_empty() {
        true => Located::Nowhere,
        false => package(&outer.language, name),
    }
}
