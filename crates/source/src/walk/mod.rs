//! Finds and reads the source files of a folder.
//!
//! Parsing ignore files and listing an untrusted tree is work for a worker, so [`Walker`]
//! requires a worker's token. The front reads the files that it finds ([`read`]).

mod ignore_rules;
mod names;
mod read;
mod tree;

use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

pub use ignore_rules::{MAX_IGNORE_FILE_BYTES, MAX_PATTERNS, RulesAbove, rules_above};
pub use names::IGNORE_FILE;
pub use read::{Contents, ReadError, read, read_file};
pub use tree::{WalkError, Walker};

/// A source file found by a walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundFile {
    /// Relative to the root, with slashes.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified: i64,
}

/// A file or folder that was skipped although no rule ignores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPath {
    /// Relative to the root, with slashes; lossy if not valid Unicode.
    pub path: String,
    /// The reason, which the index report shows.
    pub why: SkipReason,
}

/// Why a file or folder was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SkipReason {
    /// It looks like a private key or holds passwords.
    Secret,
    /// It has this many bytes.
    TooLarge(u64),
    /// Its name is not valid Unicode.
    Name,
    /// It cannot be read, with the system's message.
    Unreadable(String),
    /// It is a store of Isolith.
    Store,
    /// It is a repository or a linked worktree of its own.
    Repository,
    /// It is a folder with more than this many entries.
    TooMany(u64),
    /// Its path is too long for the system to open.
    TooDeep,
    /// It is an ignore file whose rules cannot be used, for this reason.
    Rules(String),
}

/// Which part of a root is walked, and what is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkOptions {
    /// The folder or file in the root to walk; empty for the whole root. The root's rules
    /// apply in any case.
    pub under: String,
    /// Larger files are skipped and reported.
    pub largest_file: u64,
    /// Whether files with names of secrets are listed, including hidden ones.
    pub include_secrets: bool,
    /// Whether to list folders instead of files.
    pub folders: bool,
    /// Paths of folders that are skipped without a report.
    pub except: Vec<String>,
    /// List only files in these languages; empty for all.
    pub languages: Vec<String>,
    /// Where git keeps the repository that the root is in. Submodules of it are walked; other
    /// repositories are skipped and reported.
    pub repository: Option<String>,
}

/// An opaque position in a walk, from which another walk can resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkPosition(Vec<u8>);

impl WalkPosition {
    /// Whether the position is past the whole entry. A folder's path must end with a slash.
    fn is_after(&self, path: &[u8], is_folder: bool) -> bool {
        path <= &self.0[..] && !(is_folder && self.0.starts_with(path))
    }

    /// Whether the position lies in this folder.
    fn is_below(&self, folder: &[u8]) -> bool {
        self.0.starts_with(folder)
    }
}

/// What a walk found since the previous page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkPage {
    /// Sorted by path.
    pub files: Vec<FoundFile>,
    /// Sorted by path; empty unless requested. The root is the empty path.
    pub folders: Vec<String>,
    /// Files and folders that were skipped.
    pub left_out: Vec<SkippedPath>,
    /// Where to resume; `None` at the end.
    pub next: Option<WalkPosition>,
}

impl WalkPage {
    fn len(&self) -> usize {
        self.files.len() + self.folders.len() + self.left_out.len()
    }
}

/// Whether a folder looks like a store; `has` tells whether it contains a name.
pub fn looks_like_store(has: impl Fn(&str) -> bool) -> bool {
    let rest = ["segments", "lock", "quarantine", "acknowledged"];
    has("truth.sqlite") || has("seal") && rest.into_iter().any(has)
}

/// A file's modification time in nanoseconds since 1970; 0 if unknown.
pub fn modified(metadata: &std::fs::Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use isolate_types::InWorker;

    use super::*;
    use isolith_folder::Folder;

    fn what(under: &str) -> WalkOptions {
        WalkOptions {
            under: under.to_owned(),
            largest_file: 100,
            include_secrets: false,
            folders: false,
            except: vec![],
            languages: vec![],
            repository: None,
        }
    }

    struct Tree(tempfile::TempDir);

    impl Tree {
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

        fn walker(&self, what: WalkOptions, after: Option<WalkPosition>) -> Walker {
            let root = Folder::resolve(self.0.path()).unwrap();
            Walker::begin(root, what, &[], after, InWorker::in_process()).unwrap()
        }

        fn walk(&self, under: &str) -> WalkPage {
            self.walker(what(under), None).page(usize::MAX, &|| false)
        }

        fn paths(&self, under: &str) -> Vec<String> {
            self.walk(under).files.into_iter().map(|file| file.path).collect()
        }
    }

    #[test]
    fn settings_exclude_paths_and_languages() {
        let place = Tree::new(&[
            ("a.rs", ""),
            ("b.py", ""),
            ("c.h", ""),
            ("gen/d.rs", ""),
            ("sub/gen/e.rs", ""),
            (".isolithignore", "!gen/\n"),
        ]);
        let walk = |prefix: &str, pattern: &str, languages: &[&str]| {
            let languages = languages.iter().map(|it| (*it).to_owned()).collect();
            let rules = RulesAbove::of_settings(prefix.to_owned(), &[pattern.to_owned()]);
            let root = Folder::resolve(place.0.path()).unwrap();
            let what = WalkOptions { languages, ..what("") };
            let token = InWorker::in_process();
            let mut walker = Walker::begin(root, what, &[rules], None, token).unwrap();
            let files = walker.page(usize::MAX, &|| false).files;
            files.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        assert_eq!(walk("", "gen/", &[]), ["a.rs", "b.py", "c.h"]);
        assert_eq!(walk("", "/gen/", &["rust"]), ["a.rs", "sub/gen/e.rs"]);
        assert_eq!(walk("root/", "/root/gen/", &["cpp"]), ["c.h"]);
        assert_eq!(walk("root/", "/gen/", &["rust"]), ["a.rs", "gen/d.rs", "sub/gen/e.rs"]);
    }

    #[test]
    fn ignore_rules_are_honoured_without_a_repository() {
        let place = Tree::new(&[
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
    fn the_rules_of_the_root_apply_to_its_parts() {
        let place = Tree::new(&[
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
    fn skipped_files_are_reported() {
        let large = "x".repeat(101);
        let place = Tree::new(&[
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
                (".env", &SkipReason::Secret),
                ("deploy/.env.production", &SkipReason::Secret),
                ("infra/terraform.tfstate", &SkipReason::Secret),
                ("keys/id_ed25519_work", &SkipReason::Secret),
                ("keys/id_rsa", &SkipReason::Secret),
                ("large.rs", &SkipReason::TooLarge(101)),
            ]
        );
        let all = WalkOptions { include_secrets: true, ..what("") };
        let walked = place.walker(all, None).page(usize::MAX, &|| false);
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
    fn links_are_not_followed() {
        let place = Tree::new(&[("a/file.rs", "")]);
        symlink(place.0.path(), place.0.path().join("a/loop")).unwrap();
        symlink("/etc/passwd", place.0.path().join("a/passwd.rs")).unwrap();
        assert_eq!(place.paths(""), ["a/file.rs"]);
    }

    #[test]
    fn a_walk_can_be_cancelled() {
        let place = Tree::new(&[("a.rs", ""), ("b.rs", "")]);
        let page = place.walker(what(""), None).page(usize::MAX, &|| true);
        assert_eq!((page.files.len(), page.next), (1, None));
    }

    #[test]
    fn pages_are_in_path_order_and_another_walk_can_resume() {
        let place = Tree::new(&[
            ("b/one.rs", ""),
            ("b/c/two.rs", ""),
            ("b.rs", ""),
            ("b/c.rs", ""),
            ("a.rs", ""),
            ("z/.env", ""),
            ("z/last.rs", ""),
        ]);
        let whole = place.walk("");
        let paths: Vec<&str> = whole.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.rs", "b.rs", "b/c.rs", "b/c/two.rs", "b/one.rs", "z/last.rs"]);
        assert!(paths.is_sorted());
        // A new walker for each page, as if the worker had died each time.
        let (mut pages, mut after) = (WalkPage::default(), None);
        loop {
            let page = place.walker(what(""), after).page(1, &|| false);
            pages.files.extend(page.files);
            pages.left_out.extend(page.left_out);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, whole);
    }

    #[test]
    fn folders_are_listed_in_walk_order() {
        let place = Tree::new(&[
            ("src/deep/a.rs", ""),
            ("out/b.rs", ""),
            (".hidden/c.rs", ""),
            ("empty/.keep", ""),
            (".gitignore", "out/"),
        ]);
        let page = place.walker(WalkOptions { folders: true, ..what("") }, None).page(9, &|| false);
        assert_eq!(page.folders, ["", "empty", "src", "src/deep"]);
        assert_eq!(page.files, []);
    }

    #[test]
    fn stores_are_skipped_everywhere() {
        let place = Tree::new(&[
            ("a.rs", ""),
            ("data/truth.sqlite", ""),
            ("data/notes.md", "private"),
            ("other/seal", ""),
            ("other/segments/x.rs", ""),
            ("zoo/seal", "an animal"),
            ("zoo/b.rs", ""),
        ]);
        let page = place.walk("");
        assert_eq!(place.paths(""), ["a.rs", "zoo/b.rs", "zoo/seal"]);
        let left_out: Vec<_> = page.left_out.iter().map(|it| (&it.path[..], &it.why)).collect();
        assert_eq!(left_out, [("data", &SkipReason::Store), ("other", &SkipReason::Store)]);
        assert_eq!(place.walk("data/notes.md").files, []);
        let except = vec!["data".to_owned(), "other".to_owned()];
        let page = place.walker(WalkOptions { except, ..what("") }, None).page(99, &|| false);
        assert_eq!((page.files.len(), page.left_out), (3, vec![]));
        let root = Folder::resolve(&place.0.path().join("data")).unwrap();
        let refused = Walker::begin(root, what(""), &[], None, InWorker::in_process());
        assert!(matches!(refused, Err(WalkError::Store)));
    }

    #[test]
    fn other_repositories_are_skipped_and_submodules_are_not() {
        let place = Tree::new(&[
            ("a.rs", ""),
            ("cloned/.git/HEAD", ""),
            ("cloned/b.rs", ""),
            ("linked/.git", "gitdir: /elsewhere/.git/worktrees/linked"),
            ("linked/c.rs", ""),
            ("module/.git", "gitdir: ../.git/modules/module"),
            ("module/d.rs", ""),
            ("module/inner/.git", "gitdir: ../../.git/modules/module/modules/inner"),
            ("module/inner/e.rs", ""),
            ("module/other/.git", "gitdir: ../../.git/modules/other"),
            ("module/other/f.rs", ""),
            ("odd/.git", "nothing that git understands"),
            ("odd/g.rs", ""),
        ]);
        let repository = place.0.path().canonicalize().unwrap().join(".git");
        let repository = Some(repository.to_str().unwrap().to_owned());
        let walk = |repository: Option<String>, under: &str| {
            let what = WalkOptions { repository, ..what(under) };
            let page = place.walker(what, None).page(99, &|| false);
            assert!(page.left_out.iter().all(|it| it.why == SkipReason::Repository), "{page:?}");
            let left_out: Vec<String> = page.left_out.into_iter().map(|it| it.path).collect();
            (page.files.into_iter().map(|it| it.path).collect::<Vec<_>>(), left_out)
        };
        let (files, left_out) = walk(repository.clone(), "");
        assert_eq!(files, ["a.rs", "module/d.rs", "module/inner/e.rs"]);
        assert_eq!(left_out, ["cloned", "linked", "module/other", "odd"]);
        assert_eq!(walk(repository.clone(), "module/inner").0, ["module/inner/e.rs"]);
        assert_eq!(walk(repository, "linked/c.rs").0, Vec::<String>::new());
        assert_eq!(walk(None, "").0, ["a.rs"]);
    }

    #[test]
    fn rules_from_above_do_not_hide_the_root_itself() {
        let place =
            Tree::new(&[("a.rs", ""), ("b.log", ""), ("deep/c.rs", ""), ("deep/d.log", "")]);
        let walk = |prefix: &str, patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|it| (*it).to_owned()).collect();
            let rules = RulesAbove::of_settings(prefix.to_owned(), &patterns);
            let root = Folder::resolve(place.0.path()).unwrap();
            let token = InWorker::in_process();
            let mut walker = Walker::begin(root, what(""), &[rules], None, token).unwrap();
            let files = walker.page(usize::MAX, &|| false).files;
            files.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        let all = ["a.rs", "b.log", "deep/c.rs", "deep/d.log"];
        assert_eq!(walk("wt/x/", &["wt/"]), all);
        assert_eq!(walk("wt/x/", &["*"]), all);
        assert_eq!(walk("wt/x/", &["wt/**"]), all);
        assert_eq!(walk("wt/x/", &["wt/", "*.log"]), ["a.rs", "deep/c.rs"]);
        assert_eq!(walk("wt/x/", &["deep/"]), ["a.rs", "b.log"]);
    }

    #[test]
    fn git_rules_of_another_repository_do_not_apply() {
        let place = Tree::new(&[
            ("outer/.git/info/exclude", "b.rs"),
            ("outer/.gitignore", "a.rs"),
            ("outer/.ignore", "c.rs"),
            ("outer/inner/.git/HEAD", ""),
            ("outer/plain/a.rs", ""),
        ]);
        let outer = place.0.path().canonicalize().unwrap().join("outer");
        let count = |folder: &str| rules_above(&outer.join(folder), None).0.len();
        assert_eq!((count("inner"), count("plain")), (1, 3));
    }

    #[test]
    fn rules_beyond_the_limits_are_skipped_and_reported() {
        let many = "x\n".repeat(MAX_PATTERNS + 1);
        let large = "#".repeat(MAX_IGNORE_FILE_BYTES as usize + 1);
        let place = Tree::new(&[
            (".gitignore", "*.log"),
            ("a/.gitignore", &many),
            ("a/x", ""),
            ("a/y.log", ""),
            ("b/.ignore", &large),
            ("b/z", ""),
        ]);
        fs::create_dir(place.0.path().join("c")).unwrap();
        symlink("/etc/passwd", place.0.path().join("c/.gitignore")).unwrap();
        let pipe = place.0.path().join("b/.isolithignore");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let page = place.walk("");
        assert_eq!(place.paths(""), ["a/x", "b/z"]);
        let told: Vec<&str> = page.left_out.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(told, ["a/.gitignore", "b/.isolithignore", "b/.ignore", "c/.gitignore"]);
        assert!(page.left_out.iter().all(|it| matches!(it.why, SkipReason::Rules(_))), "{page:?}");
    }

    #[test]
    fn pipes_sockets_and_unreadable_folders_do_not_stop_a_walk() {
        use std::os::unix::fs::PermissionsExt;
        let place = Tree::new(&[("a.rs", ""), ("closed/b.rs", ""), ("z.rs", "")]);
        let at = |name: &str| place.0.path().join(name);
        assert!(
            std::process::Command::new("mkfifo").arg(at("pipe.rs")).status().unwrap().success()
        );
        let _socket = std::os::unix::net::UnixListener::bind(at("socket.rs")).unwrap();
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        let page = place.walk("");
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let paths: Vec<&str> = page.files.iter().map(|file| file.path.as_str()).collect();
        // The superuser can read any folder.
        match rustix::process::geteuid().is_root() {
            true => assert_eq!(paths, ["a.rs", "closed/b.rs", "z.rs"]),
            false => {
                assert_eq!(paths, ["a.rs", "z.rs"]);
                assert!(
                    matches!(&page.left_out[..], [SkippedPath { path, why: SkipReason::Unreadable(_) }] if path == "closed")
                );
            }
        }
    }

    #[test]
    fn trees_too_deep_for_the_system_are_reported() {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let place = Tree::new(&[("a.rs", "")]);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = openat(rustix::fs::CWD, place.0.path(), flags, Mode::empty()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..25 {
            mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = openat(&at, &name, flags, Mode::empty()).unwrap();
        }
        let page = place.walk("");
        assert_eq!(page.files.len(), 1);
        assert!(
            matches!(&page.left_out[..], [SkippedPath { why: SkipReason::TooDeep, .. }]),
            "{page:?}"
        );
    }

    #[test]
    fn rules_of_parent_folders_apply() {
        let place = Tree::new(&[
            (".gitignore", "*.log\n/top/inner/out/\n!keep.log\n"),
            ("top/.ignore", "inner/draft.rs"),
            ("top/inner/a.rs", ""),
            ("top/inner/a.log", ""),
            ("top/inner/keep.log", ""),
            ("top/inner/draft.rs", ""),
            ("top/inner/out/b.rs", ""),
        ]);
        let root = Folder::resolve(&place.0.path().join("top/inner")).unwrap();
        let (rules, problems) = rules_above(root.path(), None);
        assert_eq!(problems, []);
        let walker = Walker::begin(root, what(""), &rules, None, InWorker::in_process());
        let files = walker.unwrap().page(99, &|| false).files;
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.rs", "keep.log"]);
    }

    #[test]
    fn git_excludes_are_honoured() {
        let place = Tree::new(&[("a.rs", ""), ("b.rs", ""), (".git/info/exclude", "b.rs")]);
        assert_eq!(place.paths(""), ["a.rs"]);
    }
}
