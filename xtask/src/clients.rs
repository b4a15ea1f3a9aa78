//! The MCP server, tried with clients that others have written: the official Python
//! package, the Inspector and the conformance suite. They are installed beside the build's
//! other products when they are first needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, products};

/// Where the scripts and the lists of packages are.
const SCRIPTS: &str = "tests/clients";

/// Runs all of them on the program as tests build it.
pub(crate) fn run() -> Result<()> {
    // The tests' build: it has what the conformance suite asks for besides our own tools.
    // Of the whole workspace, as the check builds it anyway: alone it would be another one.
    cargo(&["test", "--workspace", "--tests", "--no-run", "--locked"], &[])?;
    let products = products()?;
    let program = products.join("debug/isolith");
    let folder = products.join("clients");
    let python = python(&folder)?;
    let modules = modules(&folder)?;
    let script = |name: &str| {
        let mut command = Command::new(&python);
        command.arg(Path::new(SCRIPTS).join(name)).arg(&program);
        command
    };
    run_command(&mut script("every_tool.py"))?;
    run_command(&mut script("crowd.py"))?;
    run_command(script("from_npm.py").arg(&modules))
}

/// A Python with the packages in it.
fn python(folder: &Path) -> Result<PathBuf> {
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let list = Path::new(SCRIPTS).join("requirements.txt");
    run_command(
        Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(list),
    )?;
    Ok(python)
}

/// The folder of npm's packages, a Node.js that is new enough among them.
fn modules(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (wanted, installed) =
        (Path::new(SCRIPTS).join("package.json"), folder.join("package.json"));
    let modules = folder.join("node_modules");
    let same = fs::read(&wanted)? == fs::read(&installed).unwrap_or_default();
    if !same || !modules.is_dir() {
        // Kept last, so that a run that was broken off begins again.
        let _ = fs::remove_file(&installed);
        let scratch = folder.join("npm");
        fs::create_dir_all(&scratch)?;
        fs::copy(&wanted, scratch.join("package.json"))?;
        run_command(
            Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"])
                .current_dir(&scratch),
        )?;
        let _ = fs::remove_dir_all(&modules);
        fs::rename(scratch.join("node_modules"), &modules)?;
        fs::copy(&wanted, &installed)?;
    }
    Ok(modules)
}

fn run_command(command: &mut Command) -> Result<()> {
    eprintln!("xtask: {command:?}");
    let hint = "the clients need python3 (with venv) and npm";
    let status = command.status().with_context(|| format!("{command:?}: {hint}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
