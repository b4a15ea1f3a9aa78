//! A separate environment for each test, with the real binary.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A temporary folder with a store, a home folder and the test's files.
pub struct TestEnv {
    folder: TempDir,
}

/// Exit status and output of a command.
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestEnv {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// With spaces and non-ASCII characters, which tools may mishandle.
    pub fn store(&self) -> PathBuf {
        self.path("a störe – 店")
    }

    /// The binary in this environment, without `--store`.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolith"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("HOME", self.path("home"));
        for name in [
            "ISOLITH_STORE",
            "ISOLITH_LOG",
            "ISOLITH_FAULT",
            "ISOLITH_TOKEN",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// The binary with this environment's store.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command.arg("--store").arg(self.store());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed, and returns its JSON document.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ran = Ran::of(&self.command(arguments).arg("--json").output().unwrap());
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    }

    /// Runs a command that must fail in this way, and returns its error.
    pub fn fails(&self, arguments: &[&str], status: i32, code: &str) -> Value {
        self.fails_as(self.command(arguments), status, code)
    }

    pub fn fails_as(&self, mut command: Command, status: i32, code: &str) -> Value {
        let ran = Ran::of(&command.arg("--json").output().unwrap());
        let error = &ran.document()["error"];
        let found = (ran.status, error["code"].as_str());
        assert_eq!(found, (Some(status), Some(code)), "{command:?}: {} {}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains(error["message"].as_str().unwrap()),
            "the message is on stderr too"
        );
        error.clone()
    }

    /// Writes a file and returns its name.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        name.to_owned()
    }

    /// Writes a file of [`row`]s.
    pub fn write_rows(&self, name: &str, rows: std::ops::Range<u64>, dimension: usize) -> String {
        let mut text = String::new();
        for number in rows {
            writeln!(text, "{}", row(number, dimension)).unwrap();
        }
        self.write(name, text)
    }

    pub fn count(&self, collection: &str) -> u64 {
        self.json(&["collection", "count", collection])["count"].as_u64().unwrap()
    }

    /// The ids of hits or records, in order.
    pub fn ids(&self, arguments: &[&str]) -> Vec<String> {
        ids_of(&self.json(arguments))
    }

    /// Opens the database directly. Nothing else may be using it.
    pub fn truth(&self) -> rusqlite::Connection {
        isolith_pages::open(
            &self.store().join("truth.sqlite"),
            rusqlite::OpenFlags::default(),
            isolith_pages::Checking::Every,
        )
        .unwrap()
    }

    /// The files in `segments/`, in order.
    pub fn segments(&self) -> Vec<PathBuf> {
        files_in(&self.store().join("segments"))
    }
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn document(&self) -> Value {
        let lines = self.stdout.lines().count();
        assert_eq!(lines, 1, "one document: {:.500} {:.500}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

pub fn ids_of(document: &Value) -> Vec<String> {
    let found = document.get("hits").or(document.get("records")).unwrap().as_array().unwrap();
    found.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A record derived from its number.
pub fn row(number: u64, dimension: usize) -> Value {
    json!({
        "id": format!("r{number}"),
        "embedding": vector(number, dimension),
        "document": format!("text {number} about topic{} and word{}", number % 17, number % 5),
        "metadata": { "n": number, "tag": format!("t{}", number % 7), "even": number.is_multiple_of(2) },
    })
}

pub fn vector(seed: u64, dimension: usize) -> Vec<f32> {
    let mut chance = fastrand::Rng::with_seed(seed);
    (0..dimension).map(|_| chance.f32() * 2.0 - 1.0).collect()
}

/// A running command, killed when dropped.
pub struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads standard error until a line contains `words`; false if it ends before.
    pub fn prints(&mut self, words: &str) -> bool {
        let mut line = String::new();
        while self.stderr.read_line(&mut line).unwrap() > 0 {
            if line.contains(words) {
                return true;
            }
            line.clear();
        }
        false
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub fn finish(mut self) -> Ran {
        let stdout = std::io::read_to_string(self.child.stdout.take().unwrap()).unwrap();
        let stderr = std::io::read_to_string(&mut self.stderr).unwrap();
        let status = self.child.wait().unwrap();
        Ran { status: status.code(), stdout, stderr }
    }

    /// The running workers of a role.
    pub fn workers(&self, role: &str) -> Vec<u32> {
        workers(self.pid(), role)
    }

    /// Waits for a worker of a role.
    pub fn worker(&self, role: &str) -> u32 {
        let mut found = None;
        wait_until(|| {
            found = self.workers(role).first().copied();
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    // It may have exited already.
    let _ = rustix::process::kill_process(pid, signal);
}

/// The children of all threads of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
        })
        .collect()
}

/// The workers of a process with this role.
pub fn workers(pid: u32, role: &str) -> Vec<u32> {
    children(pid).into_iter().filter(|pid| name(*pid) == role).collect()
}

/// A worker is named after its role.
fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

pub fn wait_until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(120), "timed out");
        std::thread::sleep(Duration::from_millis(2));
    }
}
