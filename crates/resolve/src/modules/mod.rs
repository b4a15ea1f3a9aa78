//! Which file a language means by a module.

mod go;
mod include;
mod javascript;
mod packages;
mod python;
mod ruby;
mod rust;

use std::sync::Arc;

use crate::look::{File, Found, Look, Module};
use crate::value::Package;

/// Where a module is.
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

/// The module that a file imports under this name. What of the name is not a module is the
/// rest, to be looked for inside.
pub(crate) fn locate(look: &Look<'_>, from: &File, module: &str) -> Module {
    look.module(from, module, || located(look, from, module))
}

fn located(look: &Look<'_>, from: &File, module: &str) -> Module {
    let whole = |located| (located, Arc::default());
    match from.graph.language.as_str() {
        "python" => whole(python::locate(look, from, module)),
        "javascript" | "typescript" | "tsx" => {
            whole(Located::of(javascript::locate(look, from, module)))
        }
        "rust" => rust::locate(look, from, module),
        "go" => whole(go::locate(look, from, module)),
        "c" | "cpp" => whole(Located::of(include::locate(look, from, module))),
        "ruby" => whole(Located::of(ruby::locate(look, from, module))),
        language @ ("java" | "csharp" | "php") => packages::locate(look, language, module),
        _ => whole(Located::Nowhere),
    }
}

/// A module inside of one, which needs no mention in it.
pub(crate) fn submodule(look: &Look<'_>, file: &File, name: &str) -> Option<File> {
    match file.graph.language.as_str() {
        "python" => python::submodule(look, file, name),
        "rust" => rust::child(look, &file.path, name),
        _ => None,
    }
}

/// The files of a package, in order.
pub(crate) fn files_of(look: &Look<'_>, package: &Package) -> Arc<[String]> {
    match package.language.as_ref() {
        "python" => Arc::default(),
        language => look.files_of_module(&format!("{language}:{}", package.name)),
    }
}

/// The files that importing a module imports. In Go that is all of a package; where files
/// only share a namespace, it is what they define that counts.
pub(crate) fn paths(look: &Look<'_>, located: &Located) -> Vec<String> {
    match located {
        Located::File(file) => vec![file.path.to_string()],
        Located::Package(package) if package.language.as_ref() == "go" => {
            let files = files_of(look, package);
            files.iter().filter(|path| !path.ends_with("_test.go")).cloned().collect()
        }
        Located::Package(_) | Located::Nowhere => Vec::new(),
    }
}

/// What a file of a package adds to it under a name.
pub(crate) fn in_package(file: &File, package: &Package, name: &str, types: bool) -> Option<Found> {
    match package.language.as_ref() {
        "csharp" => packages::in_namespace(file, &package.name, name, types),
        _ => file.top(name, types),
    }
}

/// A package or module inside of a package.
pub(crate) fn subpackage(look: &Look<'_>, package: &Package, name: &str) -> Located {
    match package.language.as_ref() {
        "python" => python::in_folder(look, &package.name, name),
        "java" | "csharp" => packages::inner(look, package, name),
        _ => Located::Nowhere,
    }
}

/// Where a name is looked for that a file does not bind itself, nearest first.
pub(crate) fn around(look: &Look<'_>, file: &File, name: &str) -> Vec<Located> {
    let stars = file.graph.stars().iter().map(|star| &file.graph.imports[*star as usize]);
    let stars = stars.filter_map(|star| match locate(look, file, &star.module) {
        (located, rest) if rest.is_empty() => Some(located),
        _ => None,
    });
    match file.graph.language.as_str() {
        "go" => std::iter::once(go::own(file)).chain(stars).collect(),
        "java" | "csharp" | "php" => packages::own(file).into_iter().chain(stars).collect(),
        "ruby" => ruby::around(look, file, name).into_iter().chain(stars).collect(),
        _ => stars.collect(),
    }
}

/// What a name stands for that nothing defines: the name of a module.
pub(crate) fn root(look: &Look<'_>, file: &File, name: &str) -> Module {
    match file.graph.language.as_str() {
        "rust" => locate(look, file, name),
        "php" if name.contains('\\') => packages::qualified(name),
        "java" | "csharp" => packages::locate(look, &file.graph.language, name),
        _ => (Located::Nowhere, Arc::default()),
    }
}

/// Whether members may be defined away from their class.
pub(crate) fn has_distant_members(language: &str) -> bool {
    matches!(language, "rust" | "go" | "cpp")
}

/// The folder of a file.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path from a folder, with `.` and `..` in it followed. Nothing if it leaves the root.
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

/// The folder itself and those around it, from inside out.
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
    fn paths_are_joined() {
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
