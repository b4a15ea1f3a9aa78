use super::{folder, joined};
use crate::project_view::{File, ProjectView};

/// A header relative to the file, or else the nearest one whose path ends with `path`.
pub(super) fn locate(view: &ProjectView<'_>, from: &File, path: &str) -> Option<File> {
    let here = folder(&from.path);
    if let Some(file) = joined(here, path).and_then(|beside| view.file(&beside)) {
        return Some(file);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let clean = path.trim_start_matches("../").trim_start_matches("./");
    let ending = format!("/{clean}");
    let files = view.files_of_module(&format!("include:{name}"));
    let fits = files.iter().filter(|file| *file == clean || file.ends_with(&ending));
    let shared =
        |file: &&String| file.bytes().zip(here.bytes()).take_while(|(a, b)| a == b).count();
    view.file(fits.max_by_key(shared)?)
}
