//! How each language maps module names to files.

mod go;
mod include;
mod javascript;
mod packages;
mod python;
mod ruby;
mod rust;

use std::sync::Arc;

use crate::evaluate::Package;
use crate::project_view::{DefinitionRef, File, Module, ProjectView};

/// The location of a module.
#[derive(Clone)]
pub(crate) enum Located {
    File(File),
    Package(Package),
    /// Not in the project.
    Nowhere,
}

impl Located {
    fn of(file: Option<File>) -> Self {
        file.map_or(Self::Nowhere, Self::File)
    }
}

/// The module that a file imports under this name. The part of the name that is not a module is
/// returned as the rest, to be looked up inside it.
pub(crate) fn locate(view: &ProjectView<'_>, from: &File, module: &str) -> Module {
    view.module(from, module, || located(view, from, module))
}

fn located(view: &ProjectView<'_>, from: &File, module: &str) -> Module {
    let whole = |located| (located, Arc::default());
    match from.graph.language.as_str() {
        "python" => whole(python::locate(view, from, module)),
        "javascript" | "typescript" | "tsx" => {
            whole(Located::of(javascript::locate(view, from, module)))
        }
        "rust" => rust::locate(view, from, module),
        "go" => whole(go::locate(view, from, module)),
        "c" | "cpp" => whole(Located::of(include::locate(view, from, module))),
        "ruby" => whole(Located::of(ruby::locate(view, from, module))),
        language @ ("java" | "csharp" | "php") => packages::locate(view, language, module),
        _ => whole(Located::Nowhere),
    }
}

/// A submodule that exists without being declared in its parent.
pub(crate) fn submodule(view: &ProjectView<'_>, file: &File, name: &str) -> Option<File> {
    match file.graph.language.as_str() {
        "python" => python::submodule(view, file, name),
        "rust" => rust::child(view, &file.path, name),
        _ => None,
    }
}

/// The files of a package, in order.
pub(crate) fn files_of(view: &ProjectView<'_>, package: &Package) -> Arc<[String]> {
    match package.language.as_ref() {
        "python" => Arc::default(),
        language => view.files_of_module(&format!("{language}:{}", package.name)),
    }
}

/// The files that an import of a module depends on. In Go that is the whole package. Files that
/// only share a namespace are not imported as such; their definitions are.
pub(crate) fn paths(view: &ProjectView<'_>, located: &Located) -> Vec<String> {
    match located {
        Located::File(file) => vec![file.path.to_string()],
        Located::Package(package) if package.language.as_ref() == "go" => {
            let files = files_of(view, package);
            files.iter().filter(|path| !path.ends_with("_test.go")).cloned().collect()
        }
        Located::Package(_) | Located::Nowhere => Vec::new(),
    }
}

/// The definition of a name that a file adds to a package.
pub(crate) fn in_package(
    file: &File,
    package: &Package,
    name: &str,
    types: bool,
) -> Option<DefinitionRef> {
    match package.language.as_ref() {
        "csharp" => packages::in_namespace(file, &package.name, name, types),
        _ => file.top(name, types),
    }
}

/// A package or module inside a package.
pub(crate) fn subpackage(view: &ProjectView<'_>, package: &Package, name: &str) -> Located {
    match package.language.as_ref() {
        "python" => python::in_folder(view, &package.name, name),
        "java" | "csharp" => packages::inner(view, package, name),
        _ => Located::Nowhere,
    }
}

/// The scopes in which an unbound name is looked up, nearest first.
pub(crate) fn implicit_scopes(view: &ProjectView<'_>, file: &File, name: &str) -> Vec<Located> {
    let stars = file.graph.stars().iter().map(|star| &file.graph.imports[*star as usize]);
    let stars = stars.filter_map(|star| match locate(view, file, &star.module) {
        (located, rest) if rest.is_empty() => Some(located),
        _ => None,
    });
    match file.graph.language.as_str() {
        "go" => std::iter::once(go::own(file)).chain(stars).collect(),
        "java" | "csharp" | "php" => packages::own(file).into_iter().chain(stars).collect(),
        "ruby" => ruby::implicit_scopes(view, file, name).into_iter().chain(stars).collect(),
        _ => stars.collect(),
    }
}

/// The module that an undefined name refers to.
pub(crate) fn root(view: &ProjectView<'_>, file: &File, name: &str) -> Module {
    match file.graph.language.as_str() {
        "rust" => locate(view, file, name),
        "php" if name.contains('\\') => packages::qualified(name),
        "java" | "csharp" => packages::locate(view, &file.graph.language, name),
        _ => (Located::Nowhere, Arc::default()),
    }
}

/// Whether members can be defined out of line.
pub(crate) fn has_out_of_line_members(language: &str) -> bool {
    matches!(language, "rust" | "go" | "cpp")
}

/// The folder of a file.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Joins a path to a folder and resolves `.` and `..`. `None` if it leaves the root.
pub(crate) fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The folder and its ancestors, innermost first.
pub(crate) fn folders_up(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| match folder.rsplit_once('/') {
        Some((outer, _)) => Some(outer),
        None if folder.is_empty() => None,
        None => Some(""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_ancestors_listed() {
        let table = [
            ("a/b", "./c", Some("a/b/c")),
            ("a/b", "../c/d", Some("a/c/d")),
            ("", "x", Some("x")),
            ("a", "..", Some("")),
            ("a", "../../x", None),
        ];
        for (folder, path, expected) in table {
            assert_eq!(joined(folder, path).as_deref(), expected, "{folder} {path}");
        }
        assert_eq!(folders_up("a/b").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(folders_up("").collect::<Vec<_>>(), [""]);
    }
}
