//! Licences, sources, bans and known vulnerabilities of the dependencies, by cargo-deny and
//! `deny.toml`. What is not at hand is skipped, and said to be: nothing is downloaded but the
//! advisories.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::cargo;

/// Checks what can be checked here.
pub(crate) fn run() -> Result<()> {
    if !succeeds(&["deny", "--version"]) {
        eprintln!(
            "xtask: SKIPPED cargo deny: it is not installed \
             (`cargo install cargo-deny --locked` takes some minutes)"
        );
        return Ok(());
    }
    cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"], &[])?;
    if !succeeds(&["deny", "--locked", "fetch", "db"]) {
        eprintln!("xtask: SKIPPED advisories: the database cannot be reached");
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
