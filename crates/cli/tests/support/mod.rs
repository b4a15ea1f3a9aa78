//! A store in a temporary folder, used through the real program.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder with a store, deleted at the end of the test.
pub(crate) struct TestEnv {
    folder: TempDir,
    store: PathBuf,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::called("store")
    }

    /// Names the store's folder.
    pub(crate) fn called(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join(name);
        Self { folder, store }
    }

    /// With a collection `docs` of this many records.
    pub(crate) fn with_docs(records: usize) -> Self {
        let env = Self::new();
        let file = env.write_records(records, "");
        let output = env.run(&["ingest", file.to_str().unwrap(), "--collection", "docs"]);
        assert!(output.status.success(), "{output:?}");
        env
    }

    /// A file of records, each with a document that ends in `ballast`.
    pub(crate) fn write_records(&self, records: usize, ballast: &str) -> PathBuf {
        let mut text = String::new();
        for n in 0..records {
            let angle = n as f64 * 0.7;
            let vector = [angle.sin(), angle.cos(), (angle * 0.3).sin(), 0.5];
            let _ = writeln!(
                text,
                r#"{{"id":"r{n}","embedding":{vector:?},"document":"text {n} {ballast}","metadata":{{"n":{n}}}}}"#
            );
        }
        let file = self.folder.path().join("records.jsonl");
        fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn store(&self) -> &Path {
        &self.store
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolith"));
        command.args(arguments).arg("--store").arg(self.store());
        command.stdin(Stdio::null()).env_remove("ISOLITH_LOG").env_remove("ISOLITH_FAULT");
        command.env("ISOLITH_SECRET_FILE", self.folder.path().join("secret"));
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Exit status and document of a command with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.run(&[arguments, &["--json"]].concat());
        document(&output)
    }

    /// The only file in `segments/` with this extension.
    pub(crate) fn segment(&self, extension: &str) -> PathBuf {
        let files = files_in(&self.store().join("segments"));
        let mut fitting: Vec<PathBuf> = files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|it| it == extension))
            .collect();
        assert_eq!(fitting.len(), 1, "{fitting:?}");
        fitting.remove(0)
    }

    /// Opens the database directly, after a checkpoint.
    pub(crate) fn truth(&self) -> rusqlite::Connection {
        let db = isolith_pages::open(
            &self.store().join("truth.sqlite"),
            rusqlite::OpenFlags::default(),
            isolith_pages::Checking::Every,
        )
        .unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        db
    }

    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        let files = files_in(&self.store().join("run"));
        // A hidden one is still being created.
        let made = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_string_lossy();
            name.ends_with(".sock") && !name.starts_with('.')
        };
        files.into_iter().filter(made).collect()
    }
}

pub(crate) fn document(output: &Output) -> (i32, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let document = serde_json::from_str(&text);
    let document = document.unwrap_or_else(|error| panic!("{error}: {text}{output:?}"));
    (output.status.code().unwrap(), document)
}

/// The check of this name in a doctor's report.
pub(crate) fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()
}

/// The files of a folder; none if it does not exist.
pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Waits until `look` returns something. Panics after a time limit.
pub(crate) fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that is killed at the end of the test.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}
