//! Missing or damaged objects make the answer incomplete or are errors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::{Sample, git_with_input, history, lines, read};
use crate::{HistoryError, MAX_DEPTH, repository_of};

/// Object files are read-only, so this makes them writable first.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, bytes).unwrap();
}

fn three_commits() -> Sample {
    let mut sample = Sample::new();
    sample.write("old", "1");
    sample.write("src/old", "1");
    sample.commit("Ada");
    sample.write("src/middle", "1");
    sample.commit("Grace");
    sample.write("new", "1");
    sample.commit("Emmy");
    sample
}

#[test]
fn a_repository_without_commits_has_no_changes() {
    let history = Sample::new().history();
    assert!(history.complete && history.changes.is_empty());
}

#[test]
fn a_shallow_clone_reports_what_it_has() {
    let sample = three_commits();
    let shallow = sample.beside("shallow");
    let url = format!("file://{}", sample.path.display());
    sample.git(&["clone", "--quiet", "--depth=2", &url, shallow.to_str().unwrap()]);
    let history = history(&shallow).unwrap();
    // The oldest available commit did not create everything in it.
    assert_eq!(lines(&history), ["new Emmy 2"]);
    assert_eq!((history.complete, history.gaps), (true, 3));
}

#[test]
fn a_damaged_commit_hides_its_ancestors() {
    for damage in [&b""[..], b"nonsense", b"\x78\x9c\x01"] {
        let sample = three_commits();
        overwrite(&sample.object_file("HEAD~2"), damage);
        let history = sample.history();
        assert_eq!(lines(&history), ["new Emmy 2"]);
        assert_eq!((history.complete, history.gaps), (true, 3));
    }
}

#[test]
fn a_damaged_tree_hides_its_files() {
    let sample = three_commits();
    overwrite(&sample.object_file("HEAD~2:src"), b"nonsense");
    let history = sample.history();
    assert_eq!(lines(&history), ["new Emmy 2", "old Ada 0"]);
    assert_eq!((history.complete, history.gaps), (true, 2));

    let sample = three_commits();
    overwrite(&sample.object_file("HEAD:src"), b"nonsense");
    let history = sample.history();
    assert_eq!(lines(&history), ["new Emmy 2", "old Ada 0"]);
    assert_eq!((history.complete, history.gaps), (true, 1));
}

#[test]
fn a_damaged_newest_commit_is_an_error() {
    let sample = three_commits();
    let tree = sample.object_file("HEAD^{tree}");
    let commit = sample.object_file("HEAD");
    fs::remove_file(tree).unwrap();
    let error = history(&sample.path).unwrap_err();
    assert!(matches!(error, HistoryError::Damaged { what: "tree", .. }), "{error}");
    overwrite(&commit, b"nonsense");
    let error = history(&sample.path).unwrap_err();
    assert!(matches!(error, HistoryError::Damaged { what: "commit", .. }), "{error}");
}

#[test]
fn an_object_of_the_wrong_type_is_damage() {
    let sample = three_commits();
    let blob = sample.git(&["rev-parse", "HEAD:new"]);
    fs::write(sample.path.join(".git/refs/heads/main"), blob).unwrap();
    let error = history(&sample.path).unwrap_err();
    assert!(matches!(error, HistoryError::Damaged { what: "commit", .. }), "{error}");
}

#[test]
fn a_damaged_head_is_an_error() {
    let sample = three_commits();
    for text in ["", "nonsense", "ref: ", "ref: ../../../etc/passwd", "ref: HEAD"] {
        fs::write(sample.path.join(".git/HEAD"), text).unwrap();
        let error = history(&sample.path).unwrap_err();
        assert!(matches!(error, HistoryError::Head { .. }), "{text:?}: {error}");
    }
}

#[test]
fn a_truncated_pack_is_incomplete_or_an_error() {
    let sample = three_commits();
    sample.git(&["gc", "--quiet", "--aggressive", "--prune=now"]);
    let packs: Vec<_> = fs::read_dir(sample.path.join(".git/objects/pack")).unwrap().collect();
    for kind in ["pack", "idx"] {
        let file = packs.iter().map(|entry| entry.as_ref().unwrap().path());
        let file = file.into_iter().find(|path| path.extension().is_some_and(|it| it == kind));
        let file = file.unwrap();
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            let copy = sample.beside("cut");
            fs::write(&copy, &whole[..length]).unwrap();
            // A new file, because the old one may still be mapped.
            fs::rename(copy, &file).unwrap();
            let _ = history(&sample.path);
        }
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            let copy = sample.beside("bent");
            fs::write(&copy, &bytes).unwrap();
            fs::rename(copy, &file).unwrap();
            let _ = history(&sample.path);
        }
        let copy = sample.beside("whole");
        fs::write(&copy, &whole).unwrap();
        fs::rename(copy, &file).unwrap();
    }
    assert_eq!(sample.lines().len(), 4);
}

#[test]
fn other_hash_algorithms_are_rejected() {
    let mut sample = Sample::with_format("sha256");
    sample.write("file", "1");
    sample.commit("Ada");
    let error = history(&sample.path).unwrap_err();
    assert!(matches!(error, HistoryError::Head { .. }), "{error}");
}

#[test]
fn missing_alternates_are_ignored() {
    let sample = three_commits();
    let alternates = sample.path.join(".git/objects/info/alternates");
    fs::create_dir_all(alternates.parent().unwrap()).unwrap();
    fs::write(alternates, "/nowhere/objects\n").unwrap();
    assert_eq!(sample.lines().len(), 4);
}

#[test]
fn the_number_of_files_and_the_depth_of_folders_are_limited() {
    // Each tree contains the previous one ten times: more files than can be counted.
    let sample = Sample::new();
    let blob = sample.git(&["hash-object", "-w", "-t", "blob", "/dev/null"]);
    let make = |entries: String| git_with_input(&sample.path, &["mktree"], &entries);
    let commit = |tree: &str| {
        let id = sample.git(&["commit-tree", "-m", "x", tree]);
        sample.git(&["update-ref", "refs/heads/main", &id]);
    };
    let ten = |kind: &str, id: &str| -> String {
        (0..10).map(|number| format!("{kind} {id}\tn{number}\n")).collect()
    };
    let mut tree = make(ten("100644 blob", &blob));
    for _ in 0..9 {
        tree = make(ten("040000 tree", &tree));
    }
    commit(&tree);
    let error = history(&sample.path).unwrap_err();
    assert!(matches!(error, HistoryError::TooLarge), "{error}");

    let mut tree = make(format!("100644 blob {blob}\tfile\n"));
    for _ in 0..MAX_DEPTH + 5 {
        let line = format!("100644 blob {blob}\tfile\n040000 tree {tree}\tinner\n");
        tree = make(line);
    }
    commit(&tree);
    assert_eq!(history(&sample.path).unwrap().changes.len(), MAX_DEPTH + 1);
}

#[test]
fn oversized_files_are_not_read() {
    for file in ["HEAD", "packed-refs", "objects/info/alternates", "refs/heads/main"] {
        let sample = three_commits();
        let repository = repository_of(&sample.path).unwrap();
        let path = sample.path.join(".git").join(file);
        // A sparse file: 20 GB long, but takes no space.
        let opened = fs::File::options().create(true).append(true).open(&path).unwrap();
        opened.set_len(20 << 30).unwrap();
        let error = read(&repository, "").unwrap_err();
        assert!(matches!(error, HistoryError::Oversized { .. }), "{file}: {error}");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = read(&repository, "").unwrap_err();
        assert!(matches!(error, HistoryError::Oversized { .. }), "{file}: {error}");
    }
}
