use super::{folder, joined};
use crate::look::{File, Look};

/// A header beside the file, or the one whose path ends like this and is nearest.
pub(super) fn locate(look: &Look<'_>, from: &File, path: &str) -> Option<File> {
    let here = folder(&from.path);
    if let Some(file) = joined(here, path).and_then(|beside| look.file(&beside)) {
        return Some(file);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let clean = path.trim_start_matches("../").trim_start_matches("./");
    let ending = format!("/{clean}");
    let files = look.files_of_module(&format!("include:{name}"));
    let fits = files.iter().filter(|file| *file == clean || file.ends_with(&ending));
    let shared =
        |file: &&String| file.bytes().zip(here.bytes()).take_while(|(a, b)| a == b).count();
    look.file(fits.max_by_key(shared)?)
}
