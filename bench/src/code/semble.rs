//! semble, with our embedding model instead of its own, which is larger and would have to be
//! downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::processes::{self, Usage};
use crate::python::rival;

/// Skipped once it has failed.
pub(super) struct Semble {
    python: Option<PathBuf>,
    model: PathBuf,
    cache: PathBuf,
}

/// What semble indexes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    Code,
    All,
}

#[derive(Deserialize)]
struct Nothing {}

impl Semble {
    pub(super) fn prepare(python: Option<PathBuf>, folder: &Path) -> Self {
        let (model, cache) = (folder.join("model"), folder.join("semble"));
        let mut semble = Self { python, model, cache };
        let stem = rival("../../crates/embed/model/static-code-256.stem");
        let target = semble.model.clone();
        semble.phase::<Nothing>("model", [stem.as_os_str(), target.as_os_str()]);
        semble
    }

    /// A search with semble's own command, which also updates its index.
    pub(super) fn search(&self, question: &str, code: &Path, content: Content) -> Option<Command> {
        let mut command = Command::new(self.beside_python("semble")?);
        command.args(["search", question]).arg(code).args(["--top-k", "10"]);
        if matches!(content, Content::All) {
            command.args(["--content", "all"]);
        }
        self.set_environment(&mut command);
        Some(command)
    }

    /// ripgrep from semble's environment, else the system's.
    pub(super) fn ripgrep(&self) -> Command {
        let beside = self.beside_python("rg").filter(|program| program.is_file());
        Command::new(beside.unwrap_or_else(|| "rg".into()))
    }

    /// Runs a phase of the rival's script and reads its report.
    pub(super) fn phase<T: DeserializeOwned>(
        &mut self,
        phase: &str,
        arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
    ) -> Option<T> {
        let mut command = Command::new(self.python.as_ref()?);
        command.arg(rival("semble_code.py")).arg(phase).args(arguments);
        self.set_environment(&mut command);
        let outcome = processes::report(&mut command).map(|(report, _)| report);
        self.or_disable(outcome)
    }

    /// The result; after a failure, `None`, and semble is skipped from then on.
    pub(super) fn or_disable<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome
            .map_err(|error| {
                eprintln!("bench: skipping semble: {error:#}");
                self.python = None;
            })
            .ok()
    }

    pub(super) fn run(&mut self, command: Option<Command>) -> Option<Usage> {
        let outcome = processes::run(&mut command?).context("a search").map(|(_, used)| used);
        self.or_disable(outcome)
    }

    pub(super) fn forget_index(&self) -> Result<()> {
        if self.cache.exists() {
            std::fs::remove_dir_all(&self.cache)?;
        }
        Ok(())
    }

    pub(super) fn model(&self) -> &Path {
        &self.model
    }

    fn beside_python(&self, program: &str) -> Option<PathBuf> {
        Some(self.python.as_ref()?.with_file_name(program))
    }

    fn set_environment(&self, command: &mut Command) {
        command.env("SEMBLE_MODEL_NAME", &self.model).env("SEMBLE_CACHE_LOCATION", &self.cache);
        // No downloads while it is measured.
        command.env("HF_HUB_OFFLINE", "1");
    }
}
