//! Which files of a folder belong to its code, and what is in them.
//!
//! Plain file access that may run in the front. Nothing is parsed here.

mod read;
mod rules;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use ignore::{DirEntry, WalkBuilder};

pub use read::{Contents, ReadError, read};
pub use rules::IGNORE_FILE;

use crate::secrets::is_secret_name;

/// How a folder is walked.
#[derive(Debug, Clone, Copy)]
pub struct WalkOptions {
    /// Larger files are left out, and listed.
    pub largest_file: u64,
    /// Show files whose names say that they are secrets, hidden ones too.
    pub include_secrets: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self { largest_file: 1 << 20, include_secrets: false }
    }
}

/// A file that belongs to the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Relative to the root, with slashes.
    pub path: String,
    /// How many bytes it has.
    pub size: u64,
    /// When it was changed: nanoseconds since 1970.
    pub modified: i64,
}

/// A file that was left out although nobody asked for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Relative to the root, with slashes; as well as it can be shown.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// Why a file was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It looks like a private key or holds passwords.
    Secret,
    /// It has so many bytes.
    TooLarge(u64),
    /// Its name is no Unicode.
    Name,
    /// It cannot be looked at.
    Unreadable(String),
}

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// In the order of their paths.
    pub files: Vec<FoundFile>,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
}

/// Walks through `root`, or through what lies `under` a part of it, as its ignore rules
/// say: `.gitignore` and its relatives, and `.isolithignore`. Hidden files, symbolic
/// links and what is known to be binary by its name are left out without a word.
///
/// Ends early, with nothing, if `cancelled` says so.
pub fn walk(
    root: &Path,
    under: &str,
    options: WalkOptions,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Option<Walked> {
    let start = if under.is_empty() { root.to_owned() } else { root.join(under) };
    let secrets: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let noted = Arc::clone(&secrets);
    let mut walked = Walked::default();
    // From the root in any case: its rules hold for its parts.
    let walker = builder(root)
        .filter_entry(move |entry| {
            let path = entry.path();
            (path.starts_with(&start) || start.starts_with(path)) && keep(entry, options, &noted)
        })
        .build();
    for entry in walker {
        if cancelled() {
            return None;
        }
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                walked.take(root, &entry, options);
            }
            Ok(_) => {}
            // What went away in this moment is not there.
            Err(error) if is_gone(&error) => {}
            Err(error) => walked.left_out.push(unreadable(root, &error)),
        }
    }
    for secret in secrets.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        walked.left_out.push(LeftOut { path: shown(root, &secret), why: Why::Secret });
    }
    walked.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Some(walked)
}

/// The folders that a walk goes through, the root among them.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    let is_folder = |entry: &DirEntry| entry.file_type().is_some_and(|kind| kind.is_dir());
    let walker = builder(root)
        .filter_entry(move |entry| {
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            is_folder(entry) && (entry.depth() == 0 || !hidden)
        })
        .build();
    walker.flatten().map(DirEntry::into_path).collect()
}

fn builder(start: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder
        // Hidden secrets are to be listed; `keep` leaves out the rest of what is hidden.
        .hidden(false)
        // An exported tree has its rules, too.
        .require_git(false)
        // What is indexed must not depend on who indexes.
        .git_global(false)
        .add_custom_ignore_filename(IGNORE_FILE)
        .follow_links(false);
    builder
}

impl Walked {
    fn take(&mut self, root: &Path, entry: &DirEntry, options: WalkOptions) {
        let leave_out = |why| LeftOut { path: shown(root, entry.path()), why };
        let Some(path) = relative(root, entry.path()) else {
            self.left_out.push(leave_out(Why::Name));
            return;
        };
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) if is_gone(&error) => return,
            Err(error) => {
                self.left_out.push(leave_out(Why::Unreadable(error.to_string())));
                return;
            }
        };
        if metadata.len() > options.largest_file {
            self.left_out.push(leave_out(Why::TooLarge(metadata.len())));
            return;
        }
        self.files.push(FoundFile { path, size: metadata.len(), modified: modified(&metadata) });
    }
}

/// Whether the walk goes into a folder, or shows a file.
fn keep(entry: &DirEntry, options: WalkOptions, secrets: &Mutex<Vec<PathBuf>>) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let name = entry.file_name().to_string_lossy();
    let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
    if is_file && is_secret_name(&name) {
        if options.include_secrets {
            return true;
        }
        secrets.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_owned());
        return false;
    }
    let hidden = name.starts_with('.');
    !(hidden || is_file && rules::is_binary(&name))
}

/// A path as it is stored; none if it is no Unicode.
pub fn relative(root: &Path, path: &Path) -> Option<String> {
    path.strip_prefix(root).ok()?.to_str().map(str::to_owned)
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn is_gone(error: &ignore::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn unreadable(root: &Path, error: &ignore::Error) -> LeftOut {
    let path = match error {
        ignore::Error::WithPath { path, .. } => shown(root, path),
        ignore::Error::WithDepth { err, .. } => match err.as_ref() {
            ignore::Error::WithPath { path, .. } => shown(root, path),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
    LeftOut { path, why: Why::Unreadable(reason) }
}

/// When a file was changed: nanoseconds since 1970.
pub fn modified(metadata: &std::fs::Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for (path, text) in files {
                place.write(path, text);
            }
            place
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn walk(&self, under: &str) -> Walked {
            walk(
                self.0.path(),
                under,
                WalkOptions { largest_file: 100, ..WalkOptions::default() },
                &|| false,
            )
            .unwrap()
        }

        fn paths(&self, under: &str) -> Vec<String> {
            self.walk(under).files.into_iter().map(|file| file.path).collect()
        }
    }

    #[test]
    fn ignore_rules_are_honoured_without_a_repository() {
        let place = Place::new(&[
            ("src/main.rs", "fn main() {}"),
            ("src/secret.log", "x"),
            ("build/out.rs", "x"),
            ("notes/draft.md", "x"),
            (".gitignore", "*.log\nbuild/\n"),
            (".isolithignore", "notes/\n"),
            (".hidden/file.rs", "x"),
            ("picture.png", "x"),
        ]);
        assert_eq!(place.paths(""), ["src/main.rs"]);
        place.write(".isolithignore", "src/\n");
        assert_eq!(place.paths(""), ["notes/draft.md"]);
    }

    #[test]
    fn a_part_obeys_the_rules_of_the_whole() {
        let place = Place::new(&[
            ("a/one.rs", ""),
            ("a/b/two.rs", ""),
            ("a/b/three.log", ""),
            ("c/four.rs", ""),
            (".gitignore", "*.log"),
            ("a/.isolithignore", "two.rs"),
        ]);
        assert_eq!(place.paths("a"), ["a/one.rs"]);
        assert_eq!(place.paths("a/one.rs"), ["a/one.rs"]);
        assert_eq!(place.paths("c"), ["c/four.rs"]);
    }

    #[test]
    fn what_is_left_out_is_listed() {
        let large = "x".repeat(101);
        let place = Place::new(&[
            (".env", "PASSWORD=1"),
            ("deploy/.env.production", "PASSWORD=1"),
            (".env.example", "PASSWORD="),
            ("keys/id_rsa", "x"),
            ("keys/id_ed25519_work", "x"),
            ("infra/terraform.tfstate", "{}"),
            ("large.rs", &large),
        ]);
        let walked = place.walk("");
        assert_eq!(walked.files, []);
        let listed: Vec<_> = walked.left_out.iter().map(|it| (it.path.as_str(), &it.why)).collect();
        assert_eq!(
            listed,
            [
                (".env", &Why::Secret),
                ("deploy/.env.production", &Why::Secret),
                ("infra/terraform.tfstate", &Why::Secret),
                ("keys/id_ed25519_work", &Why::Secret),
                ("keys/id_rsa", &Why::Secret),
                ("large.rs", &Why::TooLarge(101)),
            ]
        );
        let options = WalkOptions { largest_file: 100, include_secrets: true };
        let walked = walk(place.0.path(), "", options, &|| false).unwrap();
        let paths: Vec<_> = walked.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                ".env",
                "deploy/.env.production",
                "infra/terraform.tfstate",
                "keys/id_ed25519_work",
                "keys/id_rsa",
            ]
        );
        assert_eq!(walked.left_out.len(), 1);
    }

    #[test]
    fn links_lead_nowhere() {
        let place = Place::new(&[("a/file.rs", "")]);
        symlink(place.0.path(), place.0.path().join("a/loop")).unwrap();
        symlink("/etc/passwd", place.0.path().join("a/passwd.rs")).unwrap();
        assert_eq!(place.paths(""), ["a/file.rs"]);
    }

    #[test]
    fn a_walk_can_be_called_off() {
        let place = Place::new(&[("a.rs", "")]);
        assert_eq!(walk(place.0.path(), "", WalkOptions::default(), &|| true), None);
    }
}
