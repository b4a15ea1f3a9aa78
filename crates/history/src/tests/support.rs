//! Small repositories, created with the `git` program.

use std::fs;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isolate_types::InWorker;

use crate::{History, HistoryError, Repository, last_changes, repository_of};

/// The time of the first commit, in seconds; each later one is a minute after the previous one.
const FIRST: i64 = 1_700_000_000;

/// A repository in a folder of its own.
pub(super) struct Sample {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
    commits: i64,
}

impl Sample {
    pub(super) fn new() -> Self {
        Self::with_format("sha1")
    }

    pub(super) fn with_format(format: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("repository");
        fs::create_dir(&path).unwrap();
        let format = format!("--object-format={format}");
        git(&path, &["init", "--quiet", "--initial-branch=main", &format]);
        Self { _folder: folder, path, commits: 0 }
    }

    /// A path next to the repository.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    pub(super) fn write(&self, path: &str, content: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments)
    }

    /// Commits all changes; the commit's number determines its time.
    pub(super) fn commit(&mut self, author: &str) {
        self.git(&["add", "--all"]);
        self.dated(author, &["commit", "--quiet", "--allow-empty", "--message=change"]);
    }

    /// Runs a command that creates a commit.
    pub(super) fn dated(&mut self, author: &str, arguments: &[&str]) {
        let date = format!("{} +0200", FIRST + self.commits * 60);
        self.commits += 1;
        let mut command = command(&self.path);
        command.env("GIT_AUTHOR_NAME", author).env("GIT_COMMITTER_DATE", &date);
        // A distant author date shows that the commit date is used.
        run(command.env("GIT_AUTHOR_DATE", "1000000000 +0000").args(arguments));
    }

    pub(super) fn object_file(&self, revision: &str) -> PathBuf {
        let id = self.git(&["rev-parse", revision]);
        self.path.join(".git/objects").join(&id[..2]).join(&id[2..])
    }

    pub(super) fn history(&self) -> History {
        history(&self.path).unwrap()
    }

    /// The changes as lines: path, author, commit number.
    pub(super) fn lines(&self) -> Vec<String> {
        lines(&self.history())
    }
}

pub(super) fn lines(history: &History) -> Vec<String> {
    let number = |milliseconds: i64| (milliseconds / 1_000 - FIRST) / 60;
    let line = |change: &crate::FileChange| {
        format!("{} {} {}", change.path, change.author, number(change.changed_at))
    };
    history.changes.iter().map(line).collect()
}

pub(super) fn history(folder: &Path) -> Result<History, HistoryError> {
    let repository = repository_of(folder).unwrap();
    let below = repository.below(folder).unwrap();
    read(&repository, &below)
}

pub(super) fn read(repository: &Repository, below: &str) -> Result<History, HistoryError> {
    last_changes(repository, below, Duration::MAX, &|| false, InWorker::in_process())
}

pub(super) fn git(folder: &Path, arguments: &[&str]) -> String {
    run(command(folder).args(arguments))
}

pub(super) fn git_with_input(folder: &Path, arguments: &[&str], input: &str) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input.as_bytes()).unwrap();
    file.rewind().unwrap();
    run(command(folder).args(arguments).stdin(file))
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    // Ignore the configuration of the user who runs the tests.
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.env("GIT_COMMITTER_NAME", "Committer").env("GIT_COMMITTER_EMAIL", "c@example.org");
    command.env("GIT_AUTHOR_NAME", "Author").env("GIT_AUTHOR_EMAIL", "a@example.org");
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("these tests need the git program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
