use super::{folder, folders_up, joined};
use crate::project_view::{File, ProjectView};

/// The extensions of modules, in order of preference.
const EXTENSIONS: [&str; 8] = [".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts"];

/// The TypeScript extensions behind the extension in a JavaScript import.
const SOURCES: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts"]),
    (".jsx", &[".tsx"]),
    (".mjs", &[".mts", ".d.mts"]),
    (".cjs", &[".cts", ".d.cts"]),
];

pub(super) fn locate(view: &ProjectView<'_>, from: &File, module: &str) -> Option<File> {
    let here = folder(&from.path);
    if module.starts_with('.') {
        return file_at(view, &joined(here, module)?);
    }
    aliased(view, here, module).or_else(|| package(view, module))
}

/// The file at a path that may lack its extension, or the index file of the folder.
fn file_at(view: &ProjectView<'_>, path: &str) -> Option<File> {
    if let Some(file) = view.file(path).filter(is_script) {
        return Some(file);
    }
    for (ending, sources) in SOURCES {
        if let Some(stem) = path.strip_suffix(ending) {
            let source = sources.iter().find_map(|one| view.file(&format!("{stem}{one}")));
            if source.is_some() {
                return source;
            }
        }
    }
    let beside = EXTENSIONS.iter().find_map(|ending| view.file(&format!("{path}{ending}")));
    let slash = if path.is_empty() { "" } else { "/" };
    beside.or_else(|| {
        EXTENSIONS.iter().find_map(|ending| view.file(&format!("{path}{slash}index{ending}")))
    })
}

fn is_script(file: &File) -> bool {
    matches!(file.graph.language.as_str(), "javascript" | "typescript" | "tsx")
}

/// Applies `paths` and `baseUrl` of the nearest configuration file that matches.
fn aliased(view: &ProjectView<'_>, here: &str, module: &str) -> Option<File> {
    for folder in folders_up(here) {
        for name in ["tsconfig.json", "tsconfig.base.json", "jsconfig.json"] {
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let Some(options) = view.file(&path) else { continue };
            let Some(manifest) = &options.graph.manifest else { continue };
            let base = joined(folder, manifest.base.as_deref().unwrap_or("."))?;
            let mut targets = manifest
                .aliases
                .iter()
                .filter_map(|(pattern, targets)| Some((matched(pattern, module)?, targets)));
            let found = targets.find_map(|(part, targets)| {
                targets.iter().find_map(|target| {
                    file_at(view, &joined(&base, &target.replacen('*', part, 1))?)
                })
            });
            let plain = || {
                let base = manifest.base.as_ref().map(|_| base.as_str())?;
                file_at(view, &joined(base, module)?)
            };
            if let Some(file) = found.or_else(plain) {
                return Some(file);
            }
        }
    }
    None
}

/// The part of `module` that matches the `*` of a pattern.
fn matched<'m>(pattern: &str, module: &'m str) -> Option<&'m str> {
    match pattern.split_once('*') {
        Some((before, after)) => module.strip_prefix(before)?.strip_suffix(after),
        None => (pattern == module).then_some(""),
    }
}

/// A package in the same project.
fn package(view: &ProjectView<'_>, module: &str) -> Option<File> {
    let mut parts = module.splitn(if module.starts_with('@') { 3 } else { 2 }, '/');
    let name = match module.starts_with('@') {
        true => format!("{}/{}", parts.next()?, parts.next()?),
        false => parts.next()?.to_owned(),
    };
    let rest = parts.next();
    let path = view.files_of_module(&format!("npm:{name}")).first()?.clone();
    let manifest = view.file(&path)?;
    let manifest = manifest.graph.manifest.as_ref()?;
    let home = folder(&path);
    let wanted = rest.map_or_else(|| ".".to_owned(), |rest| format!("./{rest}"));
    let listed = manifest
        .aliases
        .iter()
        .filter_map(|(pattern, targets)| Some((matched(pattern, &wanted)?, targets)));
    let listed = listed
        .flat_map(|(part, targets)| targets.iter().map(move |target| target.replace('*', part)));
    let entry = manifest.entry.clone().filter(|_| rest.is_none());
    let guesses: Vec<String> = match rest {
        None => vec!["src/index".to_owned(), "index".to_owned(), "src/main".to_owned()],
        Some(rest) => vec![rest.to_owned(), format!("src/{rest}")],
    };
    let all: Vec<String> = listed.chain(entry).chain(guesses).collect();
    all.iter().find_map(|target| source_of(view, home, target))
}

/// Maps build output to its source: `dist/a.js` is built from `src/a.ts`.
fn source_of(view: &ProjectView<'_>, home: &str, target: &str) -> Option<File> {
    let target = target.trim_start_matches("./");
    if let Some(file) = file_at(view, &joined(home, target)?) {
        return Some(file);
    }
    let (first, rest) = target.split_once('/')?;
    if !matches!(first, "dist" | "lib" | "build" | "out") {
        return None;
    }
    let stem = rest.split_once('.').map_or(rest, |(stem, _)| stem);
    file_at(view, &joined(home, &format!("src/{stem}"))?)
}
