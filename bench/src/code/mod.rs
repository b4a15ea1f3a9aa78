//! Indexing and searching real code, compared with semble, ripgrep, model2vec, bare parsing and
//! our own code without isolation.
//!
//! Measures the `isolith` program itself, started like any user would. The repositories are copied
//! first, because some of their files are changed. All files are in one folder next to this program
//! and are removed at the end.

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
use crate::table::{Comparison, Row};
use front::Phase;
pub(crate) use processes::{Usage, process_tree, pss, report, run};
use semble::Semble;

const NOTES: &str = "\
CPU: user + system time of a process and all its descendants, from start to exit.
semble indexes during its first search, and looks for changes during every later one, so
its runs include one question each, ours none. By default it indexes code only; ours
indexes all text. memory: the maximum sum of PSS, sampled ten times a second.
resident: consecutive questions to a long-lived process.
";

pub(crate) fn measure(
    quick: bool,
    repos: &[PathBuf],
    program: Option<PathBuf>,
) -> Result<Vec<Comparison>> {
    let bench = std::env::current_exe()?;
    let beside = bench.parent().context("cannot find the folder of this program")?;
    let program = program.unwrap_or_else(|| beside.join("isolith"));
    ensure!(
        program.is_file(),
        "{} does not exist; pass its path with --program",
        program.display()
    );
    // Not in the system's temporary folder, which may be in memory.
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

/// A copy of a repository, and the programs to measure on it.
struct Repository {
    name: String,
    /// Contains the copy, stores and caches.
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
        let name = from.file_name().context("the repository's folder has no name")?;
        let folder = scratch.join(name);
        let code = folder.join("code");
        changes::copy(from, &code).with_context(|| format!("cannot copy {}", from.display()))?;
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
        let comparison = |rival: &str, rows: Vec<Row>, notes: String| Comparison {
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

    /// A command of the measured program, with a store.
    fn isolith(&self, command: &str, store: &Path) -> Command {
        let mut isolith = Command::new(&self.program);
        isolith.arg(command).args(["--quiet", "--json", "--store"]).arg(store);
        isolith
    }

    fn store(&self) -> PathBuf {
        self.folder.join("store")
    }

    /// The command that runs a phase in a process of its own.
    fn front(&self, phase: &Phase) -> Result<Command> {
        eprintln!("bench:   {}: {phase:?}", self.name);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(front::PHASE_FLAG).arg(serde_json::to_string(phase)?);
        Ok(command)
    }
}
