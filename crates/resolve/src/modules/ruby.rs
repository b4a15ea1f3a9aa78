use super::{Located, folder, joined};
use crate::look::{File, Look};

/// `./a` and `../a` beside the file, other names in any folder that ends like this.
pub(super) fn locate(look: &Look<'_>, from: &File, path: &str) -> Option<File> {
    let path = path.strip_suffix(".rb").unwrap_or(path);
    if path.starts_with('.') {
        return look.file(&format!("{}.rb", joined(folder(&from.path), path)?));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = format!("lib/{path}.rb");
    let files = look.files_of_module(&format!("ruby:{name}"));
    let found = files.iter().find(|file| **file == ending || file.ends_with(&format!("/{ending}")));
    look.file(found?)
}

/// Constants need no import once any file has loaded them: the one file that defines a
/// class or module of this name.
pub(super) fn around(look: &Look<'_>, _file: &File, name: &str) -> Vec<Located> {
    const MOST: usize = 12;
    if !name.starts_with(char::is_uppercase) {
        return Vec::new();
    }
    let mut files: Vec<File> = Vec::new();
    for found in look.named(name, MOST).unwrap_or_default().iter() {
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
