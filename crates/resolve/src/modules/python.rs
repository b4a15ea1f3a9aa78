use std::sync::Arc;

use super::{Located, folder, joined};
use crate::evaluate::Package;
use crate::project_view::{File, ProjectView};

/// `a.b`, or relative to the file's package: `.a`, `..`.
pub(super) fn locate(view: &ProjectView<'_>, from: &File, module: &str) -> Located {
    let bare = module.trim_start_matches('.');
    let dots = module.len() - bare.len();
    let steps = bare.replace('.', "/");
    if dots > 0 {
        let up = "../".repeat(dots - 1);
        let path = joined(folder(&from.path), &format!("{up}{steps}"));
        return path.map_or(Located::Nowhere, |path| at(view, &path));
    }
    absolute(view, from, &steps)
}

/// The module at a path: a file, a package with or without `__init__`.
fn at(view: &ProjectView<'_>, path: &str) -> Located {
    match module_file(view, path) {
        Some(file) => Located::File(file),
        // A folder without `__init__` is a package too.
        None => Located::Package(Package { language: Arc::from("python"), name: path.to_owned() }),
    }
}

fn module_file(view: &ProjectView<'_>, path: &str) -> Option<File> {
    let forms = match path {
        "" => vec!["__init__.py".to_owned()],
        path => vec![
            format!("{path}/__init__.py"),
            format!("{path}.py"),
            format!("{path}.pyi"),
            format!("{path}/__init__.pyi"),
        ],
    };
    forms.iter().find_map(|form| view.file(form))
}

/// An absolute module name may start in any folder that is not a package.
fn absolute(view: &ProjectView<'_>, from: &File, steps: &str) -> Located {
    let last = steps.rsplit('/').next().unwrap_or(steps);
    let mut best: Option<(usize, String)> = None;
    for path in view.files_of_module(&format!("python:{last}")).iter() {
        let stem = path.strip_suffix(".py").or_else(|| path.strip_suffix(".pyi"));
        let Some(stem) = stem else { continue };
        let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
        let Some(root) = stem.strip_suffix(steps) else { continue };
        let root = match root.strip_suffix('/') {
            Some(root) => root,
            None if root.is_empty() => root,
            None => continue,
        };
        if !is_search_root(view, from, root, steps) {
            continue;
        }
        let shared = shared_length(root, &from.path);
        if best.as_ref().is_none_or(|(length, _)| shared > *length) {
            best = Some((shared, path.clone()));
        }
    }
    match best {
        Some((_, path)) => Located::of(view.file(&path)),
        None => Located::Nowhere,
    }
}

/// Whether a folder may be on Python's search path.
fn is_search_root(view: &ProjectView<'_>, from: &File, root: &str, steps: &str) -> bool {
    if !root.is_empty() && view.file(&format!("{root}/__init__.py")).is_some() {
        return false;
    }
    let around =
        root.is_empty() || from.path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    let usual = matches!(root.rsplit('/').next(), Some("src" | "lib" | "python"));
    around || usual || steps.contains('/')
}

fn shared_length(root: &str, path: &str) -> usize {
    root.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count()
}

/// A module or package inside the package of an `__init__` file.
pub(super) fn submodule(view: &ProjectView<'_>, file: &File, name: &str) -> Option<File> {
    let is_package = file.path.ends_with("__init__.py") || file.path.ends_with("__init__.pyi");
    if !is_package {
        return None;
    }
    module_file(view, &joined(folder(&file.path), name)?)
}

/// A module in a folder without `__init__`.
pub(super) fn in_folder(view: &ProjectView<'_>, folder: &str, name: &str) -> Located {
    Located::of(joined(folder, name).and_then(|path| module_file(view, &path)))
}
