//! Builds the documentation in docs/ with mdBook, if that is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::target_folder;

/// Builds the book in the target folder.
pub(crate) fn run() -> Result<()> {
    if !Path::new("book.toml").exists() {
        return Ok(());
    }
    let probe = Command::new("mdbook").arg("--version").stdout(Stdio::null()).status();
    if probe.is_err() {
        eprintln!("xtask: SKIPPED mdbook: not installed (`cargo install mdbook --locked`)");
        return Ok(());
    }
    let folder = target_folder()?.join("book");
    eprintln!("xtask: mdbook build --dest-dir {}", folder.display());
    let status = Command::new("mdbook")
        .args(["build", "--dest-dir"])
        .arg(&folder)
        .status()
        .context("cannot start `mdbook build`")?;
    ensure!(status.success(), "`mdbook build` failed: {status}");
    Ok(())
}
