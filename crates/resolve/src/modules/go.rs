use std::sync::Arc;

use super::{Located, folder, folders_up};
use crate::evaluate::Package;
use crate::project_view::{File, ProjectView};

/// A package is a folder; its import path starts with the name of the enclosing module.
pub(super) fn locate(view: &ProjectView<'_>, from: &File, path: &str) -> Located {
    for home in folders_up(folder(&from.path)) {
        let slash = if home.is_empty() { "" } else { "/" };
        let Some(manifest) = view.file(&format!("{home}{slash}go.mod")) else { continue };
        let name = manifest.graph.manifest.as_ref().and_then(|manifest| manifest.name.clone());
        let Some(rest) = name.as_deref().and_then(|name| path.strip_prefix(name)) else {
            continue;
        };
        let inner = match rest.strip_prefix('/') {
            Some(inner) => inner,
            None if rest.is_empty() => "",
            None => continue,
        };
        let slash = if home.is_empty() || inner.is_empty() { "" } else { "/" };
        return package(&format!("{home}{slash}{inner}"));
    }
    Located::Nowhere
}

/// The package of a file.
pub(super) fn own(file: &File) -> Located {
    package(folder(&file.path))
}

fn package(folder: &str) -> Located {
    Located::Package(Package { language: Arc::from("go"), name: folder.to_owned() })
}
