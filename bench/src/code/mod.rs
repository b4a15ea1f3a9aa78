//! Indexing and searching real code, beside semble, ripgrep, model2vec, bare parsing and
//! our own work without isolation.
//!
//! What is measured is the `isolith` program itself, started as anybody starts it. The
//! repositories are copied first, as some of their files are changed. All that is made
//! lies in one folder beside this program and is removed at the end.

mod changes;
mod embedding;
mod files;
pub(crate) mod front;
mod in_process;
mod index;
mod isolation;
mod parts;
mod processes;
mod search;
mod semble;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::rivals::python_with;
use crate::table::{Beside, Comparison};
use front::Order;
pub(crate) use processes::{Used, family, pss, report, run};
use semble::Semble;

const NOTES: &str = "\
CPU: user + system of a process and all that it started, from its start to its end.
semble indexes with its first search, and every later search of its looks for changes:
its runs have one question each, ours none. It takes code alone unless told otherwise,
ours all text. memory: the largest sum of PSS, looked at ten times a second from outside.
resident: questions one after the other to a process that lives on.
";

pub(crate) fn measure(
    quick: bool,
    repos: &[PathBuf],
    program: Option<PathBuf>,
) -> Result<Vec<Comparison>> {
    let bench = std::env::current_exe()?;
    let beside = bench.parent().context("the program is in no folder")?;
    let program = program.unwrap_or_else(|| beside.join("isolith"));
    ensure!(program.is_file(), "{} is missing: --program names another", program.display());
    // Not in the system's folder for temporary files, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-code-").tempdir_in(beside)?;
    let python = python_with("semble");
    let mut comparisons = Vec::new();
    for repo in repos {
        let mut bench = Repository::copy(repo, scratch.path(), &program, python.clone(), quick)?;
        comparisons.extend(bench.compare()?);
        fs::remove_dir_all(&bench.folder)?;
    }
    Ok(comparisons)
}

/// A copy of some code, and those who work on it.
struct Repository {
    name: String,
    /// Holds the copy, stores and caches.
    folder: PathBuf,
    code: PathBuf,
    program: PathBuf,
    semble: Semble,
    quick: bool,
}

impl Repository {
    fn copy(
        from: &Path,
        scratch: &Path,
        program: &Path,
        python: Option<PathBuf>,
        quick: bool,
    ) -> Result<Self> {
        let name = from.file_name().context("a repository needs a name")?;
        let folder = scratch.join(name);
        let code = folder.join("code");
        changes::copy(from, &code).with_context(|| format!("{} is not code", from.display()))?;
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            semble: Semble::prepare(python, &folder),
            code,
            folder,
            program: program.to_owned(),
            quick,
        })
    }

    fn compare(&mut self) -> Result<Vec<Comparison>> {
        let name = self.name.clone();
        let mut beside_semble = Vec::new();
        let (files, full) = self.index(&mut beside_semble)?;
        self.change(full, &mut beside_semble)?;
        let mut others = self.search(&mut beside_semble)?;
        let parts = self.parts()?;
        others.extend(parts.rows(full));
        others.push(self.embed(&parts)?);
        let (rows, stages) = self.isolate()?;
        others.extend(rows);
        let comparison = |rival: &str, rows: Vec<Beside>, notes: String| Comparison {
            what: format!("{name}, {files} files"),
            rival: rival.to_owned(),
            rows,
            notes,
        };
        Ok(vec![
            comparison("semble", beside_semble, NOTES.to_owned()),
            comparison("rival", others, stages),
        ])
    }

    /// Starts the program that is measured, with a store.
    fn isolith(&self, command: &str, store: &Path) -> Command {
        let mut isolith = Command::new(&self.program);
        isolith.arg(command).args(["--quiet", "--json", "--store"]).arg(store);
        isolith
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// Has this program do a phase in a process of its own.
    fn front(&self, order: &Order) -> Result<Command> {
        eprintln!("bench:   {}: {order:?}", self.name);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(front::ARGUMENT).arg(serde_json::to_string(order)?);
        Ok(command)
    }
}
