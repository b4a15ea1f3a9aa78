//! Checks licenses, sources, bans and advisories of the dependencies with cargo-deny and
//! `deny.toml`. Only the advisory database is downloaded.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::cargo;

/// Skips checks with a message if cargo-deny or the advisory database is missing.
pub(crate) fn run() -> Result<()> {
    if !succeeds(&["deny", "--version"]) {
        eprintln!(
            "xtask: SKIPPED cargo deny: not installed \
             (`cargo install cargo-deny --locked` takes a few minutes)"
        );
        return Ok(());
    }
    cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"], &[])?;
    if !succeeds(&["deny", "--locked", "fetch", "db"]) {
        eprintln!("xtask: SKIPPED advisories: cannot download the database");
        return Ok(());
    }
    cargo(&["deny", "--locked", "check", "--disable-fetch", "advisories"], &[])
}

fn succeeds(arguments: &[&str]) -> bool {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
