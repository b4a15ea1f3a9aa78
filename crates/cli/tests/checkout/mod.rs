//! A project in a git repository, with worktrees.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::project::{Project, adds_up};
use crate::test_env::Ran;

/// The sample project, committed.
pub struct Checkout {
    pub project: Project,
}

impl Checkout {
    pub fn new() -> Self {
        let it = Self { project: Project::sample() };
        it.project.write(".gitignore", "wt/\n.claude/\n");
        it.git(&it.main(), &["init", "-q", "-b", "main"]);
        it.git(&it.main(), &["add", "."]);
        it.git(&it.main(), &["commit", "-q", "-m", "one"]);
        it
    }

    pub fn main(&self) -> PathBuf {
        self.project.folder()
    }

    /// A folder beside the main checkout.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.main().parent().unwrap().join(name)
    }

    pub fn git(&self, folder: &Path, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    /// Adds a linked worktree with a branch of its own, in which one function is another.
    pub fn worktree(&self, folder: &Path) -> PathBuf {
        self.git(&self.main(), &["worktree", "add", "-q", folder.to_str().unwrap()]);
        let folder = fs::canonicalize(folder).unwrap();
        let path = folder.join("tools/parse.py");
        let text = fs::read_to_string(&path).unwrap().replace("parse_header", "parse_envelope");
        fs::write(path, text).unwrap();
        folder
    }

    pub fn remove_worktree(&self, folder: &Path) {
        let folder = folder.to_str().unwrap();
        self.git(&self.main(), &["worktree", "remove", "--force", folder]);
    }

    /// The binary in a folder.
    pub fn command(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.project.env.bare(arguments);
        command.current_dir(folder);
        command
    }

    pub fn run(&self, folder: &Path, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(folder, arguments).output().unwrap())
    }

    pub fn json(&self, folder: &Path, arguments: &[&str]) -> Value {
        let ran = self.run(folder, &[arguments, &["--json"]].concat());
        assert_eq!(ran.status, Some(0), "{arguments:?}: {} {}", ran.stdout, ran.stderr);
        ran.document()
    }

    pub fn fails(&self, folder: &Path, arguments: &[&str], status: i32, code: &str) -> Value {
        self.project.env.fails_as(self.command(folder, arguments), status, code)
    }

    /// Indexes a folder from within; the counts of the report must add up.
    pub fn index(&self, folder: &Path) -> Value {
        let report = self.json(folder, &["index"]);
        adds_up(&report);
        report
    }

    /// The roots and paths of the files that a search from a folder finds.
    pub fn found(&self, folder: &Path, arguments: &[&str]) -> Vec<(PathBuf, String)> {
        let found = self.json(folder, &[&["search"], arguments].concat());
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        for hit in found["hits"].as_array().unwrap() {
            let path = hit["path"].as_str().unwrap().to_owned();
            let file = (PathBuf::from(hit["root"].as_str().unwrap()), path);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// The folders of the roots in the store that a folder uses.
    pub fn roots(&self, folder: &Path) -> Vec<PathBuf> {
        let status = self.json(folder, &["status"]);
        let roots = status["roots"].as_array().unwrap();
        roots.iter().map(|root| root["folder"].as_str().unwrap().into()).collect()
    }
}
