//! Runs the checks that a change must pass.

use anyhow::Result;

use crate::{book, cargo, clients, deny, promtool, python, target_folder, web};

/// Checks formatting, lints, documentation and tests. With `all`, also what needs the network or
/// other programs: the pages, dependencies, metrics, the book, the MCP clients from PyPI and npm, and the
/// Python package.
pub(crate) fn run(all: bool) -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"], &[])?;
    if all {
        // First, as the program contains them.
        web::ensure()?;
        web::test()?;
    }
    cargo(
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"],
        &[],
    )?;
    if all {
        deny::run()?;
    }
    cargo(
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )?;
    cargo(&["test", "--workspace", "--locked", "--doc"], &[])?;
    if all {
        promtool::run()?;
        book::run()?;
        clients::run()?;
        // The clients have built the program.
        web::browse(&target_folder()?.join("debug/isolith"))?;
        python::run()?;
    }
    // Last, so that the output ends with the test results.
    cargo(&["test", "--workspace", "--locked", "--tests"], &[])
}
