//! The long checks: what takes too much time, or too large packages, for every change.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::{cargo, clients, python, target_folder, web};

/// A check by name, and what it does.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: [Check; 7] = [
    ("chroma", || client("chroma_suite.py")),
    ("frameworks", || client("frameworks.py")),
    ("servers", || client("servers.py")),
    ("python", python::crowd),
    ("pages", pages),
    ("damage", || crate::damage(&["--count", "500"])),
    ("torture", || crate::torture(&["--processes", "16", "--seconds", "60"])),
];

/// Runs the checks with these names, or all of them.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let known: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    for name in names {
        ensure!(
            known.contains(&name.as_str()),
            "no check `{name}`; there are {}",
            known.join(", ")
        );
    }
    for (name, check) in CHECKS {
        if names.is_empty() || names.iter().any(|it| it == name) {
            eprintln!("xtask: acceptance: {name}");
            check()?;
        }
    }
    Ok(())
}

/// Tries the pages of the release build in Chromium.
fn pages() -> Result<()> {
    web::ensure()?;
    cargo(&["build", "--release", "--package", "isolith", "--locked"], &[])?;
    web::browse(&target_folder()?.join("release/isolith"))
}

/// Runs a script of tests/clients against the release build of the program.
fn client(script: &str) -> Result<()> {
    cargo(&["build", "--release", "--package", "isolith", "--locked"], &[])?;
    let target = target_folder()?;
    let python = clients::install_python(&target.join("acceptance"), Path::new("acceptance.txt"))?;
    clients::run_script(&python, script, &target.join("release/isolith"))
}
