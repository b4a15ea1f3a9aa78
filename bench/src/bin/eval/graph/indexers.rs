//! The SCIP indexers, installed from npm into the target folder on first use.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::scip::{self, Index};

/// The content of `package.json`.
const PACKAGES: &str = r#"{
  "private": true,
  "dependencies": {
    "@sourcegraph/scip-python": "0.6.6",
    "@sourcegraph/scip-typescript": "0.4.0"
  }
}
"#;

#[derive(Clone, Copy)]
pub(super) enum Indexer {
    Python,
    TypeScript,
}

/// The installed indexers.
pub(super) struct Indexers {
    programs: PathBuf,
    /// An empty list of packages.
    environment: PathBuf,
    /// The `PATH` variable, with a Python without packages first.
    path: OsString,
}

impl Indexers {
    /// Installs the indexers if needed.
    pub(super) fn installed() -> Result<Self> {
        // This program is target/release/eval.
        let program = std::env::current_exe()?;
        let products =
            program.parent().and_then(Path::parent).context("cannot find the target folder")?;
        let folder = products.join("scip");
        let (list, programs) = (folder.join("package.json"), folder.join("node_modules/.bin"));
        if fs::read_to_string(&list).ok().as_deref() != Some(PACKAGES) || !programs.is_dir() {
            fs::create_dir_all(&folder)?;
            fs::write(&list, PACKAGES)?;
            let npm = Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"])
                .current_dir(&folder)
                .status()
                .context("the indexers need npm")?;
            ensure!(npm.success(), "npm cannot install the indexers: {npm}");
        }
        let environment = folder.join("environment.json");
        fs::write(&environment, "[]")?;
        let bare = folder.join("venv");
        if !bare.is_dir() {
            let made = Command::new("python3")
                .args(["-m", "venv", "--without-pip"])
                .arg(&bare)
                .status()
                .context("the indexer for Python needs python3")?;
            ensure!(made.success(), "cannot create a virtual environment: {made}");
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bare.join("bin")).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)?;
        Ok(Self { programs, environment, path })
    }

    /// Indexes a checkout and reads the index.
    pub(super) fn index(&self, indexer: Indexer, folder: &Path) -> Result<Index> {
        let output = folder.with_extension("scip");
        let mut command = match indexer {
            Indexer::Python => {
                let mut command = Command::new(self.programs.join("scip-python"));
                command.args(["index", ".", "--project-name=evaluated", "--project-version=1"]);
                // Otherwise references to a package that is installed here would resolve to the
                // installed copy, not to the checkout.
                command.arg("--environment").arg(&self.environment);
                command.env("PATH", &self.path);
                command.env("PYTHONPATH", folder.join("src"));
                command
            }
            Indexer::TypeScript => {
                let mut command = Command::new(self.programs.join("scip-typescript"));
                command.args(["index", "--infer-tsconfig"]);
                command
            }
        };
        let made = command.arg("--output").arg(&output).current_dir(folder).output()?;
        ensure!(output.exists(), "the indexer failed: {}", String::from_utf8_lossy(&made.stderr));
        scip::read(&fs::read(&output)?)
    }
}
