use super::{Located, folder, joined};
use crate::project_view::{File, ProjectView};

/// `./a` and `../a` are relative to the file; other names are below any `lib` folder.
pub(super) fn locate(view: &ProjectView<'_>, from: &File, path: &str) -> Option<File> {
    let path = path.strip_suffix(".rb").unwrap_or(path);
    if path.starts_with('.') {
        return view.file(&format!("{}.rb", joined(folder(&from.path), path)?));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = format!("lib/{path}.rb");
    let files = view.files_of_module(&format!("ruby:{name}"));
    let found = files.iter().find(|file| **file == ending || file.ends_with(&format!("/{ending}")));
    view.file(found?)
}

/// Constants need no import once any file has loaded them: returns the file that defines a class
/// or module with this name, if there is exactly one.
pub(super) fn implicit_scopes(view: &ProjectView<'_>, _file: &File, name: &str) -> Vec<Located> {
    const MAX_DEFINITIONS: usize = 12;
    if !name.starts_with(char::is_uppercase) {
        return Vec::new();
    }
    let mut files: Vec<File> = Vec::new();
    for found in view.named(name, MAX_DEFINITIONS).unwrap_or_default().iter() {
        let definition = found.definition();
        let is_constant =
            definition.kind.is_type() || definition.kind == isolith_types::DefinitionKind::Module;
        let known = files.iter().any(|file| file.number == found.file.number);
        if is_constant
            && definition.parent.is_none()
            && found.file.graph.language == "ruby"
            && !known
        {
            files.push(found.file.clone());
        }
    }
    match files.len() {
        1 => files.into_iter().map(Located::File).collect(),
        _ => Vec::new(),
    }
}
