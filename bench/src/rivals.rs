//! The Python environment with the rivals' packages.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::python::rival;

/// A Python interpreter that can import `module`: `BENCH_PYTHON` if it is set, else one in a
/// virtual environment that is created in the target folder on first use.
pub(crate) fn python_with(module: &str) -> Option<PathBuf> {
    let python = match std::env::var_os("BENCH_PYTHON") {
        Some(python) => Ok(PathBuf::from(python)),
        None => environment(),
    };
    let usable = python.and_then(|python| {
        run(Command::new(&python).args(["-c", &format!("import {module}")]))?;
        Ok(python)
    });
    match usable {
        Ok(python) => Some(python),
        Err(error) => {
            eprintln!("bench: skipping {module}: {error:#}");
            None
        }
    }
}

fn environment() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let products =
        program.parent().and_then(Path::parent).context("cannot find the target folder")?;
    let folder = products.join("bench-venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        eprintln!("bench: installing the rivals into {}", folder.display());
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let requirements = rival("requirements.txt");
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(requirements))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
