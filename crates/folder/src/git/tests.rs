use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

struct Checkout {
    _place: tempfile::TempDir,
    top: PathBuf,
}

impl Checkout {
    /// A repository in `main`, with a commit.
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(place.path()).unwrap();
        let it = Self { _place: place, top };
        fs::create_dir(it.at("main")).unwrap();
        it.git("main", &["init", "-q"]);
        it.git("main", &["commit", "-q", "--allow-empty", "-m", "one"]);
        it
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
            .args(arguments)
            .current_dir(self.at(folder))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        assert!(status.unwrap().success(), "git {arguments:?}");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_linked_worktree_is_known_to_its_repository() {
    let it = Checkout::new();
    it.git("main", &["worktree", "add", "-q", "wt/feat"]);
    it.git("main", &["worktree", "add", "-q", "../far"]);
    for folder in ["main/wt/feat", "far"] {
        let folder = it.at(folder);
        let worktree = Worktree::of(&folder).unwrap();
        assert_eq!(worktree.main_checkout(), Some(&*it.at("main")));
        assert_eq!(shared_git_folder(&folder), Some(it.at("main/.git")));
        assert!(is_repository(&folder));
    }
    assert_eq!(Worktree::of(&it.at("main")), None);
    assert_eq!(shared_git_folder(&it.at("main")), Some(it.at("main/.git")));
    let inner = it.at("main/wt/feat/src");
    assert_eq!(repository_between(&it.at("main"), &inner), Some(&*it.at("main/wt/feat")));
    assert_eq!(repository_between(&it.at("main/wt/feat"), &inner), None);
    assert_eq!(repository_top(&it.at("main/src/deep")), Some(&*it.at("main")));
}

#[test]
fn a_pointer_that_no_repository_confirms_is_not_a_worktree() {
    let it = Checkout::new();
    it.git("main", &["worktree", "add", "-q", "../far"]);
    let entry = it.at("main/.git/worktrees/far");
    let claim = format!("gitdir: {}\n", entry.display());
    it.write("copy/.git", &claim);
    it.write("no-entry/.git", &format!("gitdir: {}\n", it.at("main/.git").display()));
    it.write("nowhere/.git", "gitdir: /nowhere/worktrees/x\n");
    it.write("garbage/.git", "\0\0gitdir:");
    it.write("empty/.git", "gitdir:   \n");
    it.write("long/.git", &format!("gitdir: /{}", "x".repeat(20_000)));
    fs::create_dir(it.at("linked")).unwrap();
    symlink(it.at("far/.git"), it.at("linked/.git")).unwrap();
    fs::create_dir(it.at("pipe")).unwrap();
    assert!(Command::new("mkfifo").arg(it.at("pipe/.git")).status().unwrap().success());
    for folder in ["copy", "no-entry", "nowhere", "garbage", "empty", "long", "linked", "pipe"] {
        let folder = it.at(folder);
        assert_eq!(Worktree::of(&folder), None, "{}", folder.display());
        assert!(is_repository(&folder), "{}", folder.display());
    }
    for folder in ["copy", "no-entry", "nowhere"] {
        assert_eq!(shared_git_folder(&it.at(folder)), None, "{folder}");
    }
    assert!(Worktree::of(&it.at("far")).is_some());
    // A link on the way to the repository is not followed either.
    symlink(it.at("main"), it.at("alias")).unwrap();
    let through = it.at("alias/.git/worktrees/far");
    it.write("far/.git", &format!("gitdir: {}\n", through.display()));
    assert_eq!(Worktree::of(&it.at("far")), None);
}

#[test]
fn a_worktree_with_relative_paths_is_believed() {
    let it = Checkout::new();
    it.git("main", &["worktree", "add", "-q", "../far"]);
    it.write("far/.git", "gitdir: ../main/.git/worktrees/far\n");
    it.write("main/.git/worktrees/far/gitdir", "../../../../far/.git\n");
    assert_eq!(Worktree::of(&it.at("far")).unwrap().main_checkout(), Some(&*it.at("main")));
}

#[test]
fn submodules_belong_to_the_repository_around_them() {
    let it = Checkout::new();
    fs::create_dir(it.at("library")).unwrap();
    it.git("library", &["init", "-q"]);
    it.git("library", &["commit", "-q", "--allow-empty", "-m", "one"]);
    it.git("main", &["submodule", "--quiet", "add", "../library", "vendor/library"]);
    it.git("main", &["commit", "-q", "-m", "two"]);
    it.git("main", &["worktree", "add", "-q", "../far"]);
    it.git("far", &["submodule", "--quiet", "update", "--init"]);
    for top in ["main", "far"] {
        let inner = it.at(top).join("vendor/library");
        assert!(matches!(GitEntry::at(&inner), GitEntry::Pointer(_)));
        assert!(!is_repository(&inner), "{top}");
        assert!(shared_git_folder(&inner).unwrap().join("HEAD").is_file());
        assert_eq!(repository_top(&inner.join("src")), Some(&*it.at(top)));
    }
    // The same pointer elsewhere is not a submodule of anything there.
    let pointer = it.at("main/.git/modules/vendor/library");
    it.write("other/.git", &format!("gitdir: {}\n", pointer.display()));
    assert!(is_repository(&it.at("other")));
}

#[test]
fn a_worktree_is_removed_once_folder_and_entry_are_gone() {
    let it = Checkout::new();
    it.git("main", &["worktree", "add", "-q", "../far"]);
    let far = it.at("far");
    let worktree = Worktree::of(&far).unwrap();
    assert!(!worktree.is_removed(&far));
    fs::rename(&far, it.at("unmounted")).unwrap();
    assert!(!worktree.is_removed(&far), "the repository still lists it");
    fs::rename(it.at("unmounted"), &far).unwrap();
    it.git("main", &["worktree", "move", "../far", "../moved"]);
    assert!(worktree.is_removed(&far), "its entry names another folder");
    assert!(!worktree.is_removed(&it.at("moved")));
    it.git("main", &["worktree", "remove", "../moved"]);
    assert!(worktree.is_removed(&it.at("moved")));
    fs::rename(it.at("main"), it.at("elsewhere")).unwrap();
    assert!(!worktree.is_removed(&far), "the repository cannot be asked");
}
