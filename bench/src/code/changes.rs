//! Copies repositories and changes their files.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, ensure};
use isolith_source::Language;

use super::files::Files;

/// Copies the regular files of a folder, except hidden ones.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name.to_string_lossy().starts_with('.') && name != ".gitignore" {
            continue;
        }
        if kind.is_dir() {
            copy(&entry.path(), &to.join(name))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Appends `word`, which must be new, to this many files, evenly spread over the code.
pub(super) fn change(code: &Path, count: usize, word: &str) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let files = Files::of(code)?.found;
    let files = files.iter().filter(|file| Language::of(&file.path, b"").has_grammar());
    let files: Vec<_> = files.collect();
    ensure!(files.len() >= count, "only {} source files", files.len());
    for file in files.iter().step_by(files.len() / count).take(count) {
        let mut file = fs::OpenOptions::new().append(true).open(code.join(&file.path))?;
        writeln!(file, "\n{word}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_files_is_changed() {
        let scratch = tempfile::tempdir().unwrap();
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        for name in ["a.rs", "b.py", "inner/c.rs", "d.txt", ".hidden.rs"] {
            fs::write(from.join(name), "x").unwrap();
        }
        copy(&from, &to).unwrap();
        assert!(!to.join(".hidden.rs").exists());
        change(&to, 2, "word").unwrap();
        let changed = ["a.rs", "b.py", "inner/c.rs", "d.txt"]
            .map(|name| fs::read_to_string(to.join(name)).unwrap() != "x");
        assert_eq!(changed, [true, true, false, false]);
        change(&to, 9, "word").unwrap_err();
    }
}
