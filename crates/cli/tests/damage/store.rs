//! The store that is copied, filled by the real program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::questions::{QUESTIONS, stable};

/// A folder with a store, the code that it indexes, and a home.
pub(crate) struct Template {
    folder: PathBuf,
}

/// An answer: exit status and output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: Option<i32>,
    pub(crate) value: Value,
}

const WORDS: [&str; 10] =
    ["apple", "river", "seven", "deadline", "agreed", "garden", "paper", "winter", "train", "blue"];

impl Template {
    /// The store in this folder, created if it does not exist.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let template = Self { folder: folder.to_owned() };
        if !template.store().exists() {
            fs::create_dir_all(folder.join("home"))?;
            template.fill()?;
        }
        Ok(template)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Every file of the store, relative to it, sorted.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        collect(&self.store(), &self.store(), &mut found)?;
        found.sort();
        Ok(found)
    }

    /// Copies the store to a folder `store` in `place`, with the code beside it that it
    /// indexed. Returns where the store is.
    pub(crate) fn copy(&self, place: &Path) -> Result<PathBuf> {
        copy_all(&self.folder.join("code"), &place.join("code"))?;
        copy_all(&self.store(), &place.join("store"))?;
        Ok(place.join("store"))
    }

    /// The answers of the store itself.
    pub(crate) fn ask_everything(&self) -> Result<Vec<Answer>> {
        // Asked in a copy: nothing that a command leaves behind is in the template.
        let place = tempfile::tempdir()?;
        let copy = self.copy(place.path())?;
        let first = self.ask(&copy)?;
        for (question, answer) in QUESTIONS.iter().zip(&first) {
            if answer.status != Some(0) {
                bail!("{question:?} cannot be answered: {answer:?}");
            }
        }
        let second = self.ask(&copy)?;
        if first != second {
            let differ = QUESTIONS.iter().zip(first.iter().zip(&second));
            let differ: Vec<_> = differ.filter(|(_, (one, other))| one != other).collect();
            bail!("answers change by themselves: {differ:#?}");
        }
        if self.doctor_complains(&copy)? {
            bail!("the doctor finds something wrong with a sound store");
        }
        Ok(first)
    }

    /// All answers of a copy.
    pub(crate) fn ask(&self, store: &Path) -> Result<Vec<Answer>> {
        QUESTIONS.iter().map(|question| self.answer(store, question)).collect()
    }

    /// The answer of a copy to one question.
    pub(crate) fn answer(&self, store: &Path, question: &[&str]) -> Result<Answer> {
        let out = store.with_extension("export");
        let _ = fs::remove_dir_all(&out);
        let _ = fs::remove_file(&out);
        let vector = self.folder.join("vector.json");
        let line: Vec<String> = question
            .iter()
            .map(|word| match *word {
                "OUT" => out.display().to_string(),
                "VECTOR" => vector.display().to_string(),
                word => word.to_owned(),
            })
            .collect();
        let output = self.command(store, &line).output()?;
        let mut value = parse(&output.stdout, store);
        if question.contains(&"OUT") {
            value = json!([value, exported(&out, store)]);
        }
        Ok(Answer { status: output.status.code(), value: stable(value) })
    }

    /// Whether the doctor finds something wrong with a copy.
    pub(crate) fn doctor_complains(&self, store: &Path) -> Result<bool> {
        let line = ["doctor", "--full", "--json"].map(str::to_owned);
        let output = self.command(store, &line).output()?;
        let report = parse(&output.stdout, store);
        Ok(!output.status.success() || report["ok"] != true)
    }

    fn command(&self, store: &Path, line: &[String]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolith"));
        command.args(line).arg("--store").arg(store).current_dir(&self.folder);
        command.stdin(Stdio::null()).env("HOME", self.folder.join("home"));
        for name in [
            "ISOLITH_STORE",
            "ISOLITH_LOG",
            "ISOLITH_FAULT",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "ISOLITH_SECRET_FILE",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn fill(&self) -> Result<()> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        fs::write(self.folder.join("vector.json"), "[0.3, 0.8, -0.2, 0.5]")?;
        let types = Path::new(env!("CARGO_MANIFEST_DIR")).join("../types/src");
        copy_all(&types, &self.folder.join("code"))?;
        self.must(&["index", &path("code")])?;
        fs::write(self.folder.join("records.jsonl"), records(0..400))?;
        self.must(&["ingest", &path("records.jsonl"), "--collection", "docs"])?;
        fs::write(self.folder.join("more.jsonl"), records(400..430))?;
        self.must(&["ingest", &path("more.jsonl"), "--collection", "docs"])?;
        fs::write(self.folder.join("drawers.jsonl"), drawers(0..150))?;
        self.must(&["memory", "import", &path("drawers.jsonl"), "--format", "drawers"])?;
        self.must(&[
            "graph",
            "query",
            "UNWIND range(1, 60) AS n CREATE \
            (:Person {name: 'person ' + n, n: n})-[:KNOWS {since: n}]->(:Person {n: 100 + n})",
        ])?;
        // An open reader of an older snapshot keeps the last writes in the log.
        let reader = rusqlite::Connection::open(self.filled().join("truth.sqlite"))?;
        reader.execute_batch("BEGIN")?;
        reader.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        for number in 0..8 {
            let object = format!("place {number}");
            self.must(&["fact", "add", "Max", "lives in", &object, "--from", "2020-01-01"])?;
            let text = format!("A late note: {} was seen {}.", word(number), word(number * 3));
            self.must(&["memory", "add", &text, "--wing", "late", "--room", "notes"])?;
        }
        let log = self.filled().join("truth.sqlite-wal").metadata()?.len();
        ensure!(log > 0, "the log of the last writes is empty");
        copy_all(&self.filled(), &self.store())
    }

    /// Where the store is created, beside its final place.
    fn filled(&self) -> PathBuf {
        self.folder.join("filled")
    }

    fn must(&self, line: &[&str]) -> Result<()> {
        let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let output = self.command(&self.filled(), &line).output()?;
        if !output.status.success() {
            bail!("{line:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

fn word(number: usize) -> &'static str {
    WORDS[number % WORDS.len()]
}

fn text(number: usize) -> String {
    let mut random = fastrand::Rng::with_seed(number as u64);
    (0..12).map(|_| word(random.usize(..WORDS.len()))).collect::<Vec<_>>().join(" ")
}

fn records(numbers: std::ops::Range<usize>) -> String {
    let mut lines = String::new();
    for n in numbers {
        let angle = n as f64 * 0.7;
        let vector = [angle.sin(), angle.cos(), (angle * 0.3).sin(), 0.5];
        let metadata = json!({ "n": n, "tenth": n % 10, "word": word(n) });
        let record = json!({
            "id": format!("r{n}"), "embedding": vector, "document": text(n), "metadata": metadata,
        });
        let _ = writeln!(lines, "{record}");
    }
    lines
}

fn drawers(numbers: std::ops::Range<usize>) -> String {
    let mut lines = String::new();
    for n in numbers {
        let drawer = json!({
            "text": format!("Note {n}: {}.", text(n + 1000)),
            "wing": format!("wing {}", n % 3), "room": word(n), "tags": [word(n + 1)],
        });
        let _ = writeln!(lines, "{drawer}");
    }
    lines
}

/// One document, or one for each line, without the place of the copy.
fn parse(printed: &[u8], store: &Path) -> Value {
    let place = store.parent().unwrap_or(store).display().to_string();
    let printed = String::from_utf8_lossy(printed).replace(&place, "PLACE");
    serde_json::from_str(&printed).unwrap_or_else(|_| {
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| json!(line));
        Value::Array(printed.lines().map(line).collect())
    })
}

/// The content of an export, by file.
fn exported(out: &Path, store: &Path) -> Value {
    let mut files = Vec::new();
    if out.is_file() {
        files.push(out.to_owned());
    } else if collect(out, out, &mut files).is_ok() {
        files.iter_mut().for_each(|file| *file = out.join(&*file));
        files.sort();
    }
    let content = |file: &PathBuf| parse(&fs::read(file).unwrap_or_default(), store);
    Value::Array(files.iter().map(content).collect())
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path().strip_prefix(root)?.to_owned());
        }
    }
    Ok(())
}

/// Copies a folder with its modes; sockets stay where they are.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, place) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_all(&entry.path(), &place)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
