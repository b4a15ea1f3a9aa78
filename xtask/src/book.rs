//! The documentation in docs/, built as a book by mdBook where that is installed.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::products;

/// Builds the book beside the build's other products.
pub(crate) fn run() -> Result<()> {
    if !Path::new("book.toml").exists() {
        return Ok(());
    }
    let probe = Command::new("mdbook").arg("--version").stdout(Stdio::null()).status();
    if probe.is_err() {
        eprintln!(
            "xtask: SKIPPED mdbook build: it is not installed (`cargo install mdbook --locked`)"
        );
        return Ok(());
    }
    let folder = products()?.join("book");
    eprintln!("xtask: mdbook build --dest-dir {}", folder.display());
    let status = Command::new("mdbook")
        .args(["build", "--dest-dir"])
        .arg(&folder)
        .status()
        .context("`mdbook build` could not be started")?;
    ensure!(status.success(), "`mdbook build` failed: {status}");
    Ok(())
}
