use std::fs;
use std::process::Command;

use super::*;

/// A repository in a folder of its own.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new(options: &[&str]) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&[&["init", "-q"], options].concat());
        repository
    }

    fn path(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap()
    }

    fn write(&self, path: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text").unwrap();
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"];
        command.current_dir(self.0.path()).args(identity).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn tracks(&self, folder: &str) -> bool {
        tracking_repository(&self.path().join(folder)).unwrap().is_some()
    }

    fn fill(&self) {
        for n in 0..300 {
            self.write(&format!("src/module_{}/file_{n}.rs", n % 7));
        }
        self.write(&format!("src/{}/deep.rs", "long/".repeat(200)));
        self.write("tests/.isolith/truth.sqlite");
        self.write(".isolithic");
    }
}

#[test]
fn what_is_tracked_below_a_store_is_found_in_every_kind_of_index() {
    for options in [&[][..], &["--object-format=sha256"]] {
        for version in ["2", "3", "4"] {
            let repository = Repository::new(options);
            repository.fill();
            repository.git(&["update-index", "--index-version", version]);
            repository.git(&["add", "-A"]);
            assert!(!repository.tracks(".isolith"), "{version} {options:?}");
            assert!(!repository.tracks("src/.isolith"), "{version} {options:?}");
            assert!(repository.tracks("tests/.isolith"), "{version} {options:?}");
            // Anything below it, not only the truth.
            repository.write(".isolith/run/x");
            repository.git(&["add", "-f", ".isolith/run/x"]);
            assert!(repository.tracks(".isolith"), "{version} {options:?}");
        }
    }
}

#[test]
fn split_indexes_worktrees_submodules_and_links_are_seen() {
    let repository = Repository::new(&[]);
    repository.fill();
    repository.write(".isolith/x");
    repository.git(&["add", "-A", "-f"]);
    repository.git(&["commit", "-qm", "m"]);
    repository.git(&["update-index", "--split-index"]);
    assert!(repository.tracks(".isolith"), "an index that is split in this moment");
    repository.write("new.rs");
    repository.git(&["add", "new.rs"]);
    assert!(repository.tracks(".isolith"), "split index");
    let sha256 = Repository::new(&["--object-format=sha256"]);
    sha256.write(".isolith/x");
    sha256.git(&["add", "-A", "-f"]);
    sha256.git(&["update-index", "--split-index"]);
    assert!(sha256.tracks(".isolith"), "split index with long hashes");

    repository.git(&["worktree", "add", "-q", "-f", "wt/feature"]);
    assert!(repository.tracks("wt/feature/.isolith"), "linked worktree");

    let outer = Repository::new(&[]);
    let url = repository.path().display().to_string();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, "sub"]);
    assert!(outer.tracks("sub/.isolith"), "submodule");
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", &url, ".isolith"]);
    assert!(outer.tracks(".isolith"), "a submodule in its place");

    let linked = Repository::new(&[]);
    std::os::unix::fs::symlink("elsewhere", linked.path().join(".isolith")).unwrap();
    linked.git(&["add", ".isolith"]);
    assert!(linked.tracks(".isolith"), "a link in its place");
}

#[test]
fn no_repository_tracks_nothing_and_an_empty_one_neither() {
    let place = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(place.path()).unwrap();
    assert_eq!(tracking_repository(&path.join(".isolith")).unwrap(), None);
    assert!(!Repository::new(&[]).tracks(".isolith"));
}

#[test]
fn a_hostile_index_is_refused_at_no_cost() {
    let place = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(place.path()).unwrap();
    fs::create_dir(path.join(".git")).unwrap();
    let index = path.join(".git/index");
    let refused = || tracking_repository(&path.join(".isolith")).unwrap_err().1;

    let file = File::create(&index).unwrap();
    file.set_len(20 << 30).unwrap();
    assert_eq!(refused().to_string(), "it is too large");
    file.set_len(MAX_INDEX_BYTES).unwrap();
    assert_eq!(refused().kind(), ErrorKind::InvalidData);

    let header = |count: u32| [&b"DIRC\0\0\0\x02"[..], &count.to_be_bytes()].concat();
    let endless = [header(u32::MAX), vec![b'a'; 1 << 20]].concat();
    for bytes in [header(u32::MAX), header(1), endless, b"DIRC\0\0\0\x09".to_vec(), vec![]] {
        fs::write(&index, bytes).unwrap();
        refused();
    }
    // Paths that grow with every entry, as those of version 4 may.
    let mut growing = [&b"DIRC\0\0\0\x04"[..], &9_u32.to_be_bytes()].concat();
    for _ in 0..9 {
        growing.extend([[0; 60].as_slice(), &[0x0F, 0xFF, 0], &vec![b'a'; 60_000], &[0]].concat());
    }
    fs::write(&index, [growing, vec![0; 20]].concat()).unwrap();
    refused();
    // The hash at the end is not an extension, whatever it looks like.
    let plain = [&b"DIRC\0\0\0\x02\0\0\0\0"[..], b"abcdefghijklmnopqrst"].concat();
    fs::write(&index, plain).unwrap();
    assert_eq!(tracking_repository(&path.join(".isolith")).unwrap(), None);
    fs::remove_file(&index).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &index, fifo, mode, 0).unwrap();
    assert_eq!(refused().kind(), ErrorKind::InvalidData);
}
