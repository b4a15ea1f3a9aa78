//! A small project with code in several languages, in its own environment.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::test_env::{Ran, TestEnv};

pub struct Project {
    pub env: TestEnv,
}

const RETRY: &str = r#"//! Retries with exponential backoff.

use std::time::Duration;

/// How often an operation is tried again, and how long to wait in between.
pub struct RetryPolicy {
    /// The most attempts.
    pub attempts: u32,
    /// The delay before the second attempt.
    pub first_delay: Duration,
}

impl RetryPolicy {
    /// The exponential delay between attempts, with a ceiling so that nobody waits for
    /// ever: each failed attempt doubles it.
    pub fn backoff(&self, attempt: u32) -> Duration {
        let factor = 1u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.first_delay.saturating_mul(factor).min(Duration::from_secs(30))
    }

    /// Runs an operation until it succeeds or the attempts are used up.
    pub fn run<T, E>(&self, mut operation: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        let mut attempt = 0;
        loop {
            match operation() {
                Err(_) if attempt + 1 < self.attempts => attempt += 1,
                outcome => return outcome,
            }
            std::thread::sleep(self.backoff(attempt));
        }
    }
}
"#;

const STORE: &str = r#"//! Where records are kept.

/// Keeps records on disk.
pub struct RecordStore {
    path: std::path::PathBuf,
}

impl RecordStore {
    /// Opens the file with all records, and makes it if there is none.
    pub fn open(path: std::path::PathBuf) -> Self {
        Self { path }
    }

    /// Appends one record and flushes it.
    pub fn append(&self, record: &[u8]) -> std::io::Result<()> {
        use std::io::Write;
        let mut file = std::fs::File::options().append(true).create(true).open(&self.path)?;
        file.write_all(record)?;
        file.sync_data()
    }
}
"#;

const PARSE: &str = r#""""Reads mail headers."""


def parse_header(line):
    """Split a header line into its name and its value."""
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


class HeaderParser:
    """Collects the headers of one message until the empty line."""

    def __init__(self):
        self.headers = {}

    def feed(self, line):
        name, value = parse_header(line)
        self.headers.setdefault(name, []).append(value)
"#;

const TEST: &str = r#"#[test]
fn retry_backoff_doubles() {
    let policy = RetryPolicy { attempts: 3, first_delay: Duration::from_millis(1) };
    assert_eq!(policy.backoff(1), policy.backoff(0) * 2);
}
"#;

impl Project {
    pub fn empty() -> Self {
        let env = TestEnv::new();
        fs::create_dir(env.path("project")).unwrap();
        Self { env }
    }

    pub fn sample() -> Self {
        let project = Self::empty();
        for (path, text) in [
            ("src/retry.rs", RETRY),
            ("src/store.rs", STORE),
            ("tools/parse.py", PARSE),
            ("tests/retry_test.rs", TEST),
            (
                "README.md",
                "# Sample\n\nRetries, records and headers.\n\n## Use\n\nParse, retry, store.\n",
            ),
            ("Cargo.toml", "[package]\nname = \"sample\"\n"),
        ] {
            project.write(path, text);
        }
        project
    }

    /// A project with many files.
    pub fn large(files: usize) -> Self {
        let project = Self::empty();
        for number in 0..files {
            project.write(&format!("src/part{}/file{number}.rs", number % 7), body(number));
        }
        project
    }

    pub fn folder(&self) -> PathBuf {
        fs::canonicalize(self.env.path("project")).unwrap()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.env.path("project").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The binary, in the project's folder, with the store that it finds there.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.bare(arguments);
        command.current_dir(self.env.path("project"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    }

    pub fn fails(&self, arguments: &[&str], status: i32, code: &str) -> Value {
        self.env.fails_as(self.command(arguments), status, code)
    }

    /// Indexes; the counts of the report must add up.
    pub fn index(&self, arguments: &[&str]) -> Value {
        let report = self.json(&[&["index"], arguments].concat());
        if report["files"].is_object() {
            adds_up(&report);
        }
        report
    }

    pub fn search(&self, arguments: &[&str]) -> Value {
        self.json(&[&["search"], arguments].concat())
    }

    /// The paths of the files found, in order.
    pub fn paths(&self, arguments: &[&str]) -> Vec<String> {
        let found = self.search(arguments);
        let mut paths: Vec<String> = Vec::new();
        for hit in found["hits"].as_array().unwrap() {
            let path = hit["path"].as_str().unwrap();
            if !paths.iter().any(|known| known == path) {
                paths.push(path.to_owned());
            }
        }
        paths
    }

    /// Opens the database directly. Nothing else may be using it.
    pub fn truth(&self) -> rusqlite::Connection {
        isolith_pages::open(
            &self.folder().join(".isolith/truth.sqlite"),
            rusqlite::OpenFlags::default(),
            isolith_pages::Checking::Every,
        )
        .unwrap()
    }

    /// Every file with its hash and everything stored about its chunks.
    pub fn content(&self) -> Vec<(String, Vec<u8>, String, Vec<u8>)> {
        let truth = self.truth();
        let mut rows = truth
            .prepare(
                "SELECT file.path, file.hash, record.document || chunk.symbols || chunk.start_line, \
                 vector.data FROM file JOIN chunk ON chunk.file = file.id \
                 JOIN record ON record.row = chunk.row JOIN vector ON vector.row = chunk.row \
                 ORDER BY file.path, chunk.start_line",
            )
            .unwrap();
        let rows = rows
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap();
        rows.map(Result::unwrap).collect()
    }
}

/// Source code derived from a number.
pub fn body(number: usize) -> String {
    let mut text = format!("//! Part {number}.\n\n");
    for function in 0..12 {
        text += &format!(
            "/// Computes value {function} of part {number}.\npub fn compute_{number}_{function}(input: u64) -> u64 {{\n    \
             let scaled = input.wrapping_mul({number} + {function});\n    \
             if scaled % 3 == 0 {{ scaled / 3 }} else {{ scaled + {function} }}\n}}\n\n"
        );
    }
    text
}

/// Every file that an index run has seen is counted once.
pub fn adds_up(report: &Value) {
    let files = report["files"].as_object().unwrap();
    let others = files.iter().filter(|(name, _)| !["seen", "removed"].contains(&name.as_str()));
    let sum: u64 = others.map(|(_, count)| count.as_u64().unwrap()).sum();
    assert_eq!(files["seen"], sum, "{report}");
}

/// Files seen, indexed, unchanged, removed and renamed.
pub fn counts(report: &Value) -> Value {
    let files = &report["files"];
    json!([files["seen"], files["indexed"], files["unchanged"], files["removed"], files["renamed"]])
}
