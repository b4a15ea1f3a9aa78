//! Tests the Python package: the wheel, in each Python of this machine.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::clients::{create_environment, run_command};
use crate::target_folder;
use crate::wheel::{self, PACKAGE};

/// The oldest Python that the package supports.
const OLDEST: (u32, u32) = (3, 9);

/// Prints the version, if environments can be created with it.
const PROBE: &str = "import sys, venv, ensurepip; print(*sys.version_info[:2])";

/// The package lists of all Pythons, and of the newest one, which runs all tests.
const LISTS: [&str; 1] = ["requirements-test.txt"];
const ALL_LISTS: [&str; 3] =
    ["requirements-dev.txt", "requirements-integrations.txt", "requirements-examples.txt"];

/// Builds the wheel, installs it and runs the tests in each Python. The newest one also has the
/// packages that the package works with, and checks types and style.
pub(crate) fn run() -> Result<()> {
    let wheel = wheel::build(None)?;
    let pythons = pythons();
    let newest = pythons.last_key_value().map(|(version, _)| *version);
    ensure!(newest.is_some(), "the Python package needs Python {OLDEST:?} or newer, with venv");
    for (version, program) in pythons {
        let is_newest = Some(version) == newest;
        let lists = if is_newest { ALL_LISTS.as_slice() } else { &LISTS };
        let folder = target_folder()?.join(format!("python-{}.{}", version.0, version.1));
        let python = install(&wheel, &folder, &program, lists)?;
        run_command(in_package(&python).args(["pytest", "-q", "tests"]))?;
        if is_newest {
            run_command(in_package(&python).args(["mypy"]))?;
            run_command(in_package(&python).args(["ruff", "check", "."]))?;
            run_command(in_package(&python).args(["ruff", "format", "--check", "."]))?;
        }
    }
    Ok(())
}

/// Runs many processes on one store, from the wheel, while workers and servers are killed.
pub(crate) fn crowd() -> Result<()> {
    let wheel = wheel::build(None)?;
    let folder = target_folder()?.join("python-crowd");
    let python = install(&wheel, &folder, Path::new("python3"), &LISTS)?;
    run_command(Command::new(python).arg("tests/clients/python_crowd.py"))
}

/// Installs the wheel in an environment of its own; returns its interpreter.
fn install(wheel: &Path, folder: &Path, program: &Path, lists: &[&str]) -> Result<PathBuf> {
    let lists: Vec<PathBuf> = lists.iter().map(|list| Path::new(PACKAGE).join(list)).collect();
    let lists: Vec<&Path> = lists.iter().map(PathBuf::as_path).collect();
    let python = create_environment(program, folder, &lists)?;
    // It replaces a wheel of the same version.
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
    run_command(Command::new(&python).args(pip).arg(wheel))?;
    Ok(python)
}

/// A module that runs in the package's folder.
fn in_package(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(PACKAGE).arg("-m");
    command
}

/// The supported Pythons by version: on the path, and those of pyenv.
fn pythons() -> BTreeMap<(u32, u32), PathBuf> {
    let mut programs = vec![PathBuf::from("python3")];
    programs.extend((OLDEST.1..OLDEST.1 + 12).map(|minor| format!("python3.{minor}").into()));
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| env::home_dir().map(|home| home.join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    programs
        .extend(versions.into_iter().flatten().flatten().map(|it| it.path().join("bin/python3")));
    let mut found = BTreeMap::new();
    for program in programs {
        if let Some(version) = version_of(&program).filter(|version| *version >= OLDEST) {
            found.entry(version).or_insert(program);
        }
    }
    found
}

fn version_of(python: &Path) -> Option<(u32, u32)> {
    let output = Command::new(python).args(["-c", PROBE]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
