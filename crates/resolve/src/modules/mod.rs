//! Which file a language means by a module.

mod javascript;
mod python;

use isolith_types::Imported;

use crate::look::{File, Found, Look};
use crate::value::Package;

/// Where a module is.
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

/// The module that a file imports under this name.
pub(crate) fn locate(look: &Look<'_>, from: &File, module: &str) -> Located {
    match from.graph.language.as_str() {
        "python" => python::locate(look, from, module),
        "javascript" | "typescript" | "tsx" => Located::of(javascript::locate(look, from, module)),
        _ => Located::Nowhere,
    }
}

/// A module inside of one, which needs no mention in it.
pub(crate) fn submodule(look: &Look<'_>, file: &File, name: &str) -> Option<File> {
    match file.graph.language.as_str() {
        "python" => python::submodule(look, file, name),
        _ => None,
    }
}

/// The files of a package.
pub(crate) fn files_of(look: &Look<'_>, package: &Package, _from: &File) -> Vec<String> {
    match package.language.as_ref() {
        "python" => Vec::new(),
        language => look.files_of_module(&format!("{language}:{}", package.name)),
    }
}

/// What a file of a package adds to it under a name.
pub(crate) fn in_package(
    file: &File,
    _package: &Package,
    name: &str,
    types: bool,
) -> Option<Found> {
    file.top(name, types)
}

/// A package or module inside of a package.
pub(crate) fn subpackage(look: &Look<'_>, package: &Package, name: &str) -> Located {
    match package.language.as_ref() {
        "python" => python::in_folder(look, &package.name, name),
        _ => Located::Nowhere,
    }
}

/// Where a name is looked for that a file does not bind itself.
pub(crate) fn around(look: &Look<'_>, file: &File, _name: &str) -> Vec<Located> {
    let stars = file.graph.imports.iter().filter(|import| import.what == Imported::All);
    stars.map(|star| locate(look, file, &star.module)).collect()
}

/// What a name stands for that nothing defines: the name of a module.
pub(crate) fn root(_look: &Look<'_>, _file: &File, _name: &str) -> Located {
    Located::Nowhere
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
