use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(place.path()).unwrap();
    (place, path)
}

#[test]
fn links_are_never_followed() {
    let (_place, path) = scratch();
    let outside = path.join("outside");
    let inside = path.join("inside");
    fs::create_dir(&outside).unwrap();
    fs::create_dir(&inside).unwrap();
    fs::write(outside.join("kept"), "text").unwrap();
    symlink(&outside, inside.join("link")).unwrap();
    symlink(outside.join("kept"), inside.join("file")).unwrap();
    symlink(outside.join("new"), inside.join("dangling")).unwrap();
    symlink(&inside, path.join("way")).unwrap();

    let looping = |error: io::Error| met_link(&error);
    assert!(Folder::open(inside.join("link")).is_err_and(looping));
    assert!(Folder::open(path.join("way")).is_err_and(looping));
    assert!(Folder::open(path.join("way/link")).is_err_and(looping));
    assert!(open_file(&path.join("way/file")).is_err_and(looping));
    assert!(open_file(&inside.join("file")).is_err_and(looping));

    let folder = Folder::open(&inside).unwrap();
    assert!(folder.folder("link").is_err_and(looping));
    assert!(folder.folder_or_create("link").is_err_and(looping));
    for name in ["file", "dangling"] {
        assert!(folder.file(name).is_err());
        assert!(folder.file_or_create(name).is_err());
        assert!(folder.file_to_append(name).is_err());
        assert_eq!(folder.create(name).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(folder.entry(name).unwrap().unwrap().kind, EntryKind::Link);
        folder.remove(name).unwrap();
    }
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "text");
    assert!(!outside.join("new").exists());
}

#[test]
fn only_plain_names_are_accepted() {
    let (_place, path) = scratch();
    let folder = Folder::open(&path).unwrap();
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a/", "a\0b"] {
        let error = folder.create(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}");
        assert!(folder.remove(name).is_err() && folder.file(name).is_err(), "{name:?}");
    }
}

#[test]
fn created_entries_are_private_and_listed() {
    let (_place, path) = scratch();
    let folder = Folder::open(&path).unwrap();
    folder.create("one").unwrap().write_all(b"text").unwrap();
    assert_eq!(folder.create("one").unwrap_err().kind(), ErrorKind::AlreadyExists);
    let below = folder.folder_or_create("below").unwrap();
    folder.folder_or_create("below").unwrap();
    folder.rename("one", &below, "two").unwrap();
    folder.create("one").unwrap();
    assert!(folder.rename_new("one", &below, "two").is_err());
    folder.rename_new("one", &below, "three").unwrap();
    below.sync().unwrap();

    let mut entries = below.entries().unwrap();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = entries.iter().map(|it| (it.name.as_str(), it.bytes)).collect();
    assert_eq!(seen, [("three", 0), ("two", 4)]);
    assert_eq!(fs::metadata(path.join("below")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(path.join("below/two")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(below.entry("four").unwrap(), None);
}

#[test]
fn opening_a_pipe_does_not_block() {
    let (_place, path) = scratch();
    rustix::fs::mknodat(rustix::fs::CWD, path.join("pipe"), FileType::Fifo, FILE_MODE, 0).unwrap();
    let folder = Folder::open(&path).unwrap();
    assert_eq!(folder.file("pipe").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(open_file(&path.join("pipe")).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(folder.file_to_append("pipe").is_err());
}

/// A folder with another beside it, and links in it.
fn tree() -> (tempfile::TempDir, PathBuf) {
    let (place, top) = scratch();
    fs::create_dir_all(top.join("inside/deep")).unwrap();
    fs::create_dir(top.join("outside")).unwrap();
    fs::write(top.join("inside/deep/file"), "in").unwrap();
    fs::write(top.join("outside/file"), "out").unwrap();
    symlink("deep", top.join("inside/near")).unwrap();
    symlink("deep/file", top.join("inside/link")).unwrap();
    (place, top)
}

#[test]
fn a_folder_has_its_resolved_path() {
    let (_place, top) = tree();
    let folder = Folder::resolve(&top.join("inside/near/..")).unwrap();
    assert_eq!(folder.path(), top.join("inside"));
    assert_eq!(folder.beneath(Path::new("./deep")).unwrap().path(), top.join("inside/deep"));
    assert!(folder.beneath(Path::new("near")).is_err());
    assert!(folder.beneath(Path::new("deep/file")).is_err());
    assert_eq!(folder.metadata(Path::new("deep/file")).unwrap().len(), 2);
    assert!(folder.metadata(Path::new("link")).is_err());
    assert_eq!(folder.entries().unwrap().len(), 3);
}

#[test]
fn a_handle_stays_with_its_folder_after_a_replacement() {
    let (_place, top) = tree();
    let folder = Folder::resolve(&top.join("inside/deep")).unwrap();
    fs::rename(top.join("inside/deep"), top.join("moved")).unwrap();
    symlink(top.join("outside"), top.join("inside/deep")).unwrap();
    let file = folder.file_beneath(Path::new("file")).unwrap();
    assert_eq!(std::io::read_to_string(file).unwrap(), "in");
}
