//! What counts as a file's last change.

use std::cell::Cell;
use std::time::Duration;

use isolate_types::InWorker;

use super::support::{Sample, git, history, lines};
use crate::{History, HistoryError, last_changes, repository_of};

#[test]
fn a_file_belongs_to_the_last_commit_that_changed_it() {
    let mut sample = Sample::new();
    sample.write("old.rs", "1");
    sample.write("src/new.rs", "1");
    sample.write("src/deep/er.rs", "1");
    sample.commit("Ada");
    sample.write("src/new.rs", "2");
    sample.commit("Grace");
    sample.write("src/deep/er.rs", "2");
    sample.commit("Emmy Nœther");
    sample.commit("Nobody");
    assert_eq!(
        sample.lines(),
        ["old.rs Ada 0", "src/deep/er.rs Emmy Nœther 2", "src/new.rs Grace 1"]
    );
    let history = sample.history();
    assert!(history.complete);
    assert_eq!((history.commits, history.gaps), (4, 0));
}

#[test]
fn names_with_unusual_sort_order_are_found() {
    // A folder sorts as if its name ended in a slash: between `a-b` and `a0`.
    let mut sample = Sample::new();
    for path in ["a/x", "a-b", "a.b", "a0", "a/b/x", "a/b.c", "ab"] {
        sample.write(path, "1");
    }
    sample.commit("Ada");
    sample.write("a/b/x", "2");
    sample.write("a0", "2");
    sample.commit("Grace");
    let expected =
        ["a-b Ada 0", "a.b Ada 0", "a/b.c Ada 0", "a/b/x Grace 1", "a/x Ada 0", "a0 Grace 1"];
    assert_eq!(sample.lines()[..6], expected);
}

#[test]
fn a_merge_changes_only_what_differs_from_every_parent() {
    let mut sample = Sample::new();
    for path in ["left", "right", "both", "none"] {
        sample.write(path, "1\n");
    }
    sample.commit("Ada");
    sample.git(&["checkout", "--quiet", "-b", "side"]);
    sample.write("right", "2\n");
    sample.write("both", "right\n");
    sample.commit("Grace");
    sample.git(&["checkout", "--quiet", "main"]);
    sample.write("left", "2\n");
    sample.write("both", "left\n");
    sample.commit("Emmy");
    sample.git(&["merge", "--quiet", "--no-commit", "-s", "ours", "side"]);
    sample.write("both", "left and right\n");
    sample.write("right", "2\n");
    sample.commit("Merger");
    assert_eq!(sample.lines(), ["both Merger 3", "left Emmy 2", "none Ada 0", "right Grace 1"]);
}

#[test]
fn a_branch_merged_without_its_changes_has_no_effect() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    sample.git(&["checkout", "--quiet", "-b", "side"]);
    sample.write("file", "2");
    sample.commit("Grace");
    sample.git(&["checkout", "--quiet", "main"]);
    sample.dated("Merger", &["merge", "--quiet", "-s", "ours", "-m", "merge", "side"]);
    assert_eq!(sample.lines(), ["file Ada 0"]);
}

#[test]
fn every_parent_of_an_octopus_merge_is_followed() {
    let mut sample = Sample::new();
    sample.write("start", "1");
    sample.commit("Ada");
    for branch in ["one", "two", "three"] {
        sample.git(&["checkout", "--quiet", "-b", branch, "main"]);
        sample.write(branch, "1");
        sample.commit(branch);
    }
    sample.git(&["checkout", "--quiet", "main"]);
    sample.dated("Merger", &["merge", "--quiet", "-m", "merge", "one", "two", "three"]);
    assert_eq!(sample.lines(), ["one one 1", "start Ada 0", "three three 3", "two two 2"]);
}

#[test]
fn commits_with_wrong_dates_are_followed() {
    let mut sample = Sample::new();
    sample.write("a", "1");
    sample.write("b", "1");
    sample.commit("Ada");
    sample.git(&["checkout", "--quiet", "-b", "side"]);
    sample.write("b", "2");
    // The side branch looks older than its base.
    sample.git(&["add", "--all"]);
    let tree = sample.git(&["write-tree"]);
    let text = format!(
        "tree {tree}\nparent {}\nauthor Grace <g> 5 +0000\ncommitter Grace <g> 5 +0000\n\nx\n",
        sample.git(&["rev-parse", "HEAD"])
    );
    std::fs::write(sample.beside("commit"), text).unwrap();
    let id = sample.git(&["hash-object", "-t", "commit", "-w", "../commit"]);
    sample.git(&["checkout", "--quiet", "--force", "main"]);
    sample.dated("Merger", &["merge", "--quiet", "--no-ff", "-m", "merge", &id]);
    let history = sample.history();
    assert_eq!(history.changes[1].author, "Grace");
    assert_eq!(history.changes[1].changed_at, 5_000);
    assert_eq!(history.changes[0].author, "Ada");
}

#[test]
fn renames_deletions_and_mode_changes_are_changes() {
    let mut sample = Sample::new();
    for path in ["from", "gone", "back", "script"] {
        sample.write(path, path);
    }
    sample.commit("Ada");
    sample.git(&["mv", "from", "to"]);
    sample.git(&["rm", "--quiet", "gone", "back"]);
    sample.commit("Grace");
    sample.write("back", "back");
    sample.git(&["update-index", "--chmod=+x", "script"]);
    sample.git(&["add", "back"]);
    sample.dated("Emmy", &["commit", "--quiet", "--message=change"]);
    assert_eq!(sample.lines(), ["back Emmy 2", "script Emmy 2", "to Grace 1"]);
}

#[test]
fn files_and_folders_can_replace_each_other() {
    let mut sample = Sample::new();
    sample.write("a/inside", "1");
    sample.write("b", "1");
    sample.commit("Ada");
    std::fs::remove_dir_all(sample.path.join("a")).unwrap();
    std::fs::remove_file(sample.path.join("b")).unwrap();
    sample.write("a", "1");
    sample.write("b/inside", "1");
    sample.commit("Grace");
    assert_eq!(sample.lines(), ["a Grace 1", "b/inside Grace 1"]);
}

#[test]
fn paths_are_relative_to_the_requested_folder() {
    let mut sample = Sample::new();
    sample.write("outside", "1");
    sample.write("part/one/file", "1");
    sample.write("part/one/more/file", "1");
    sample.write("part/two/file", "1");
    sample.commit("Ada");
    sample.write("part/one/file", "2");
    sample.commit("Grace");
    let history = history(&sample.path.join("part/one")).unwrap();
    assert_eq!(lines(&history), ["file Grace 1", "more/file Ada 0"]);
    std::fs::create_dir(sample.path.join("untracked")).unwrap();
    let history = super::support::history(&sample.path.join("untracked")).unwrap();
    assert_eq!((history.changes.len(), history.complete), (0, true));
}

#[test]
fn an_invalid_folder_is_rejected() {
    let mut sample = Sample::new();
    sample.commit("Ada");
    let repository = repository_of(&sample.path).unwrap();
    for below in ["/etc", "..", "a/../..", "./a"] {
        let answer = super::support::read(&repository, below);
        assert!(matches!(answer, Err(HistoryError::Below { .. })), "{below}: {answer:?}");
    }
}

#[test]
fn submodules_and_non_utf8_paths_are_ignored() {
    use std::os::unix::ffi::OsStrExt;
    let mut sample = Sample::new();
    sample.write("file", "1");
    std::fs::write(sample.path.join(std::ffi::OsStr::from_bytes(b"caf\xE9")), "1").unwrap();
    sample.commit("Ada");
    let head = sample.git(&["rev-parse", "HEAD"]);
    sample.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},module")]);
    sample.dated("Grace", &["commit", "--quiet", "--message=change"]);
    assert_eq!(sample.lines(), ["file Ada 0"]);
    assert_eq!(sample.history().gaps, 0);
}

#[test]
fn packed_objects_and_references_are_read() {
    let mut sample = Sample::new();
    for round in 0..20 {
        sample.write("src/file", &format!("{round}"));
        sample.write(&format!("src/file{round}"), "1");
        sample.commit("Ada");
    }
    let before = sample.history();
    sample.git(&["gc", "--quiet", "--aggressive", "--prune=now"]);
    assert!(sample.path.join(".git/packed-refs").is_file());
    assert_eq!(sample.history(), before);
    assert_eq!(before.changes.len(), 21);
}

#[test]
fn an_overlong_author_name_is_truncated() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit(&"é".repeat(5_000));
    assert!(sample.history().changes[0].author.len() <= 203);
}

#[test]
fn a_spent_budget_returns_an_incomplete_answer() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    let repository = repository_of(&sample.path).unwrap();
    let token = InWorker::in_process();
    let none = last_changes(&repository, "", Duration::ZERO, &|| false, token).unwrap();
    assert_eq!(none, History::default());
    assert!(!none.complete);
}

#[test]
fn changes_found_before_cancellation_are_returned() {
    let mut sample = Sample::new();
    for round in 0..10 {
        sample.write(&format!("file{round}"), "1");
        sample.commit("Ada");
    }
    let repository = repository_of(&sample.path).unwrap();
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 8
    };
    let token = InWorker::in_process();
    let some = last_changes(&repository, "", Duration::MAX, &cancelled, token).unwrap();
    assert!(!some.complete);
    assert!((1..10).contains(&some.changes.len()), "{some:?}");
    let newest: Vec<_> = some.changes.iter().map(|change| change.path.as_str()).collect();
    assert!(newest.contains(&"file9") && !newest.contains(&"file0"));
}

#[test]
fn replacements_and_configured_programs_have_no_effect() {
    let mut sample = Sample::new();
    sample.write("file", "1");
    sample.commit("Ada");
    sample.write("file", "2");
    sample.commit("Grace");
    let ran = sample.beside("ran");
    let program = format!("touch {}", ran.display());
    for key in ["core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"] {
        sample.git(&["config", key, &program]);
    }
    sample.git(&["replace", "--graft", "HEAD"]);
    // A commit that replaces its own parent makes a cycle.
    let (head, parent) = ("HEAD", "HEAD~1");
    let ids =
        [head, parent].map(|name| git(&sample.path, &["--no-replace-objects", "rev-parse", name]));
    sample.git(&["replace", "--force", &ids[1], &ids[0]]);
    let _ = std::fs::remove_file(&ran);
    assert_eq!(sample.lines(), ["file Grace 1"]);
    assert!(!ran.exists());
}
