//! Tests the servers with third-party clients: the MCP server with the official Python package, the
//! Inspector and the conformance suite, the API with Schemathesis, and Chroma's API with Chroma's Python
//! client. They are installed in the target folder on first use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, target_folder};

/// The folder of the scripts and their package lists.
const SCRIPTS: &str = "tests/clients";

/// Runs all clients against the test build of the program.
pub(crate) fn run() -> Result<()> {
    // Only the test build has the tools that the conformance suite expects. The whole workspace is
    // built because a single package would be compiled again with other features.
    cargo(&["test", "--workspace", "--tests", "--no-run", "--locked"], &[])?;
    let target = target_folder()?;
    let program = target.join("debug/isolith");
    let folder = target.join("clients");
    let python = install_python(&folder, Path::new("requirements.txt"))?;
    let modules = install_modules(&folder, &Path::new(SCRIPTS).join("package.json"))?;
    for name in ["every_tool.py", "crowd.py", "described.py", "chroma_client.py"] {
        run_script(&python, name, &program)?;
    }
    run_command(script(&python, "from_npm.py", &program).arg(&modules))
}

/// Runs one of the scripts against a program.
pub(crate) fn run_script(python: &Path, name: &str, program: &Path) -> Result<()> {
    run_command(&mut script(python, name, program))
}

fn script(python: &Path, name: &str, program: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg(Path::new(SCRIPTS).join(name)).arg(program);
    command
}

/// Creates a virtual environment with the packages of one of the lists; returns its interpreter.
pub(crate) fn install_python(folder: &Path, list: &Path) -> Result<PathBuf> {
    create_environment(Path::new("python3"), folder, &[&Path::new(SCRIPTS).join(list)])
}

/// Creates a virtual environment with the packages of the lists; returns its interpreter.
pub(crate) fn create_environment(python: &Path, folder: &Path, lists: &[&Path]) -> Result<PathBuf> {
    let environment = folder.join("venv");
    let ours = environment.join("bin/python");
    if !ours.exists() {
        run_command(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    }
    let mut pip = Command::new(&ours);
    pip.args(["-m", "pip", "install", "--quiet"]);
    for list in lists {
        pip.arg("--requirement").arg(list);
    }
    run_command(&mut pip)?;
    Ok(ours)
}

/// Installs the npm packages of one of the lists; returns their folder.
pub(crate) fn install_modules(folder: &Path, wanted: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let installed = folder.join("package.json");
    let modules = folder.join("node_modules");
    let is_current = fs::read(wanted)? == fs::read(&installed).unwrap_or_default();
    if !is_current || !modules.is_dir() {
        // The list is copied last, so that an interrupted installation is repeated.
        let _ = fs::remove_file(&installed);
        let scratch = folder.join("npm");
        fs::create_dir_all(&scratch)?;
        fs::copy(wanted, scratch.join("package.json"))?;
        run_command(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"])
                .current_dir(&scratch),
        )?;
        let _ = fs::remove_dir_all(&modules);
        fs::rename(scratch.join("node_modules"), &modules)?;
        fs::copy(wanted, &installed)?;
    }
    Ok(modules)
}

pub(crate) fn run_command(command: &mut Command) -> Result<()> {
    eprintln!("xtask: {command:?}");
    let hint = "this needs python3 (with venv), the clients npm as well";
    let status = command.status().with_context(|| format!("{command:?}: {hint}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
