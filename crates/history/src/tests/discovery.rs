//! Finding a repository.

use std::fs;
use std::os::unix::fs::symlink;

use super::support::{Sample, history, lines, read};
use crate::{Repository, repository_of};

#[test]
fn a_repository_is_searched_for_upward() {
    let mut sample = Sample::new();
    sample.write("a/b/file", "1");
    sample.commit("Ada");
    let folder = sample.path.join("a/b");
    let repository = repository_of(&folder).unwrap();
    let git_dir = sample.path.join(".git");
    let expected = Repository {
        work_tree: sample.path.clone(),
        git_dir: git_dir.clone(),
        common_dir: git_dir,
    };
    assert_eq!(repository, expected);
    assert_eq!(repository.below(&folder).as_deref(), Some("a/b"));
    assert_eq!(repository.below(&sample.path).as_deref(), Some(""));
    assert_eq!(repository.below(&sample.beside("")), None);
    symlink(&folder, sample.beside("link")).unwrap();
    assert_eq!(repository_of(&sample.beside("link")), Some(repository));
}

#[test]
fn no_repository_is_found_outside_of_one() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(repository_of(folder.path()), None);
    assert_eq!(repository_of(&folder.path().join("missing")), None);
    fs::create_dir(folder.path().join(".git")).unwrap();
    assert_eq!(repository_of(folder.path()), None);
}

#[test]
fn a_linked_work_tree_has_its_own_head() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    let linked = sample.beside("linked");
    sample.git(&["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    sample.write("file", "2");
    sample.commit("Grace");
    let repository = repository_of(&linked).unwrap();
    assert_eq!(repository.git_dir, sample.path.join(".git/worktrees/linked"));
    assert_eq!(repository.common_dir, sample.path.join(".git"));
    assert_eq!(lines(&history(&linked).unwrap()), ["file Ada 0"]);
    assert_eq!(sample.lines(), ["file Grace 1"]);
}

#[test]
fn a_submodule_is_its_own_repository() {
    let mut inner = Sample::new();
    inner.write("file", "1");
    inner.commit("Ada");
    let mut outer = Sample::new();
    let source = inner.path.to_str().unwrap();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "sub"]);
    outer.commit("Grace");
    let folder = outer.path.join("sub");
    let repository = repository_of(&folder).unwrap();
    assert_eq!(repository.work_tree, folder);
    assert_eq!(repository.git_dir, outer.path.join(".git/modules/sub"));
    assert_eq!(lines(&history(&folder).unwrap()), ["file Ada 0"]);
    assert_eq!(outer.lines(), [".gitmodules Grace 0"]);
}

#[test]
fn a_bare_repository_can_be_read() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    let bare = sample.beside("bare");
    sample.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let repository =
        Repository { work_tree: bare.clone(), git_dir: bare.clone(), common_dir: bare };
    assert_eq!(lines(&read(&repository, "").unwrap()), ["file Ada 0"]);
}

#[test]
fn objects_of_alternates_are_read() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    let shared = sample.beside("shared");
    sample.git(&["clone", "--quiet", "--shared", ".", shared.to_str().unwrap()]);
    assert_eq!(lines(&history(&shared).unwrap()), ["file Ada 0"]);
}

#[test]
fn links_that_git_did_not_create_are_not_followed() {
    let mut sample = Sample::new();
    sample.commit("Ada");
    let folder = sample.beside("folder");
    fs::create_dir(&folder).unwrap();
    let point = |text: &str| {
        fs::write(folder.join(".git"), text).unwrap();
        repository_of(&folder)
    };
    let git_dir = sample.path.join(".git");
    assert!(point(&format!("gitdir: {}\n", git_dir.display())).is_some());
    for text in ["", "gitdir:", "gitdir: /\n", "gitdir: missing", "nonsense", "gitdir: ../folder"] {
        assert_eq!(point(text), None, "{text:?}");
    }
    // A work tree that claims to belong to a repository that does not list it.
    let own = sample.beside("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    for common in ["/", git_dir.to_str().unwrap()] {
        fs::write(own.join("commondir"), common).unwrap();
        assert_eq!(point(&format!("gitdir: {}", own.display())), None, "{common}");
    }
}

#[test]
fn a_pipe_does_not_block() {
    let sample = Sample::new();
    let folder = sample.beside("folder");
    fs::create_dir(&folder).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.join(".git")).status().unwrap();
    assert!(made.success());
    assert_eq!(repository_of(&folder), None);
}
