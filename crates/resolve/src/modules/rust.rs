use std::sync::Arc;

use super::{Located, folder, folders_up};
use crate::look::{File, Look, Module};

/// `crate::a::b`, `super::a`, `self::a`, a module beside this one, or another crate.
pub(super) fn locate(look: &Look<'_>, from: &File, module: &str) -> Module {
    let mut parts = module.split("::").filter(|part| !part.is_empty());
    let Some(first) = parts.next() else { return (Located::Nowhere, Arc::default()) };
    let start = match first {
        "crate" => crate_root(look, &from.path),
        "self" => Some(from.clone()),
        "super" => parent(look, &from.path),
        name => child(look, &from.path, name).or_else(|| other_crate(look, name)),
    };
    let Some(mut file) = start else { return (Located::Nowhere, Arc::default()) };
    let mut rest = Vec::new();
    for part in parts {
        let next = match part {
            _ if !rest.is_empty() => None,
            "super" => parent(look, &file.path),
            "self" => Some(file.clone()),
            name => child(look, &file.path, name),
        };
        match next {
            Some(next) => file = next,
            None => rest.push(part.to_owned()),
        }
    }
    (Located::File(file), rest.into())
}

/// Where the modules inside of a file lie: the folder and, unless that is all, the name of
/// the file in it.
fn inside(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    match stem {
        "mod" | "lib" | "main" => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// A module inside of a file.
pub(super) fn child(look: &Look<'_>, path: &str, name: &str) -> Option<File> {
    let home = inside(path);
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
        (child != path).then(|| look.file(&child)).flatten()
    })
}

/// The module around a file.
fn parent(look: &Look<'_>, path: &str) -> Option<File> {
    let own = folder(path);
    let file = path.rsplit('/').next().unwrap_or(path);
    let home = if file == "mod.rs" { folder(own) } else { own };
    let slash = if home.is_empty() { "" } else { "/" };
    let beside = ["mod.rs", "lib.rs", "main.rs"];
    let beside = beside.iter().map(|name| format!("{home}{slash}{name}"));
    let above = (!home.is_empty()).then(|| format!("{home}.rs"));
    beside.chain(above).filter(|parent| parent != path).find_map(|parent| look.file(&parent))
}

/// The file that a crate starts with: the one of the package, unless the file is one itself.
fn crate_root(look: &Look<'_>, path: &str) -> Option<File> {
    for folder in folders_up(folder(path)) {
        let slash = if folder.is_empty() { "" } else { "/" };
        if let Some(manifest) = look.file(&format!("{folder}{slash}Cargo.toml")) {
            return library(look, &manifest).or_else(|| look.file(path));
        }
    }
    let roots = folders_up(folder(path)).flat_map(|folder| {
        let slash = if folder.is_empty() { "" } else { "/" };
        [format!("{folder}{slash}lib.rs"), format!("{folder}{slash}main.rs")]
    });
    roots.into_iter().find_map(|root| look.file(&root))
}

/// Another crate of the same project.
fn other_crate(look: &Look<'_>, name: &str) -> Option<File> {
    let path = look.files_of_module(&format!("crate:{name}")).first()?.clone();
    library(look, &look.file(&path)?)
}

fn library(look: &Look<'_>, manifest: &File) -> Option<File> {
    let home = folder(&manifest.path);
    let slash = if home.is_empty() { "" } else { "/" };
    let entry = manifest.graph.manifest.as_ref().and_then(|manifest| manifest.entry.clone());
    let usual = ["src/lib.rs", "src/main.rs", "lib.rs"].map(str::to_owned);
    let all = entry.into_iter().chain(usual);
    all.map(|file| format!("{home}{slash}{file}")).find_map(|file| look.file(&file))
}
