use std::sync::Arc;

use super::{Located, folder, folders_up};
use crate::project_view::{File, Module, ProjectView};

/// `crate::a::b`, `super::a`, `self::a`, a child module, or another crate.
pub(super) fn locate(view: &ProjectView<'_>, from: &File, module: &str) -> Module {
    let mut parts = module.split("::").filter(|part| !part.is_empty());
    let Some(first) = parts.next() else { return (Located::Nowhere, Arc::default()) };
    let start = match first {
        "crate" => crate_root(view, &from.path),
        "self" => Some(from.clone()),
        "super" => parent(view, &from.path),
        name => child(view, &from.path, name).or_else(|| other_crate(view, name)),
    };
    let Some(mut file) = start else { return (Located::Nowhere, Arc::default()) };
    let mut rest = Vec::new();
    for part in parts {
        let next = match part {
            _ if !rest.is_empty() => None,
            "super" => parent(view, &file.path),
            "self" => Some(file.clone()),
            name => child(view, &file.path, name),
        };
        match next {
            Some(next) => file = next,
            None => rest.push(part.to_owned()),
        }
    }
    (Located::File(file), rest.into())
}

/// The folder that holds a file's child modules.
fn children_folder(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    match stem {
        "mod" | "lib" | "main" => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// A child module of a file.
pub(super) fn child(view: &ProjectView<'_>, path: &str, name: &str) -> Option<File> {
    let home = children_folder(path);
    let mut child = String::with_capacity(home.len() + name.len() + "//mod.rs".len());
    child.push_str(home);
    if !home.is_empty() {
        child.push('/');
    }
    child.push_str(name);
    let bare = child.len();
    [".rs", "/mod.rs"].into_iter().find_map(|end| {
        child.truncate(bare);
        child.push_str(end);
        (child != path).then(|| view.file(&child)).flatten()
    })
}

/// The parent module of a file.
fn parent(view: &ProjectView<'_>, path: &str) -> Option<File> {
    let own = folder(path);
    let file = path.rsplit('/').next().unwrap_or(path);
    let home = if file == "mod.rs" { folder(own) } else { own };
    let slash = if home.is_empty() { "" } else { "/" };
    let beside = ["mod.rs", "lib.rs", "main.rs"];
    let beside = beside.iter().map(|name| format!("{home}{slash}{name}"));
    let above = (!home.is_empty()).then(|| format!("{home}.rs"));
    beside.chain(above).filter(|parent| parent != path).find_map(|parent| view.file(&parent))
}

/// The root file of the crate: the package's library, or `path` itself if there is none.
fn crate_root(view: &ProjectView<'_>, path: &str) -> Option<File> {
    for folder in folders_up(folder(path)) {
        let slash = if folder.is_empty() { "" } else { "/" };
        if let Some(manifest) = view.file(&format!("{folder}{slash}Cargo.toml")) {
            return library(view, &manifest).or_else(|| view.file(path));
        }
    }
    let roots = folders_up(folder(path)).flat_map(|folder| {
        let slash = if folder.is_empty() { "" } else { "/" };
        [format!("{folder}{slash}lib.rs"), format!("{folder}{slash}main.rs")]
    });
    roots.into_iter().find_map(|root| view.file(&root))
}

/// Another crate in the same project.
fn other_crate(view: &ProjectView<'_>, name: &str) -> Option<File> {
    let path = view.files_of_module(&format!("crate:{name}")).first()?.clone();
    library(view, &view.file(&path)?)
}

fn library(view: &ProjectView<'_>, manifest: &File) -> Option<File> {
    let home = folder(&manifest.path);
    let slash = if home.is_empty() { "" } else { "/" };
    let entry = manifest.graph.manifest.as_ref().and_then(|manifest| manifest.entry.clone());
    let usual = ["src/lib.rs", "src/main.rs", "lib.rs"].map(str::to_owned);
    let all = entry.into_iter().chain(usual);
    all.map(|file| format!("{home}{slash}{file}")).find_map(|file| view.file(&file))
}
