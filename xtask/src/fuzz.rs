//! Runs the targets of `fuzz/` with cargo-fuzz on nightly.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::target_folder;

/// Has one file per target.
const TARGETS: &str = "fuzz/fuzz_targets";

/// Runs the named targets, or all, for `seconds` each. New corpus files go to the target folder,
/// not to the committed corpus.
pub(crate) fn run(seconds: u64, named: &[String]) -> Result<()> {
    if let Some(missing) = missing_tool() {
        eprintln!("xtask: cannot fuzz: {missing}");
        eprintln!("xtask: `cargo test -p isolith-fuzz` runs the committed corpus on stable");
        std::process::exit(1);
    }
    let targets = if named.is_empty() { targets()? } else { named.to_vec() };
    // Use the same dependency versions as the workspace.
    fs::copy("Cargo.lock", "fuzz/Cargo.lock").context("cannot copy Cargo.lock")?;
    let folder = target_folder()?.join("fuzz");
    for target in &targets {
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)
            .with_context(|| format!("cannot create {}", corpus.display()))?;
        let mut command = cargo_fuzz();
        command.args(["run", target]).arg(&corpus).arg(format!("fuzz/corpus/{target}"));
        command.arg("--target-dir").arg(folder.join("build"));
        command.args(["--", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={seconds}"));
        eprintln!("xtask: {command:?}");
        let status = command.status().with_context(|| format!("{command:?}"))?;
        ensure!(
            status.success(),
            "{target} failed: the input is in fuzz/artifacts/{target}; after the fix, add it to \
             fuzz/corpus/{target}"
        );
    }
    eprintln!("xtask: no failures in {}", targets.join(", "));
    Ok(())
}

fn missing_tool() -> Option<&'static str> {
    let succeeds = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // List toolchains: running a missing one would install it.
    let toolchains = Command::new("rustup").args(["toolchain", "list"]).output().ok();
    let has_nightly = toolchains
        .is_some_and(|output| String::from_utf8_lossy(&output.stdout).contains("nightly"));
    match () {
        () if !has_nightly => Some("no nightly toolchain (`rustup toolchain install nightly`)"),
        () if !succeeds(cargo_fuzz().arg("--version")) => {
            Some("no cargo-fuzz (`cargo install cargo-fuzz --locked`)")
        }
        () if !succeeds(Command::new("c++").arg("--version")) => {
            Some("no C++ compiler, which libFuzzer needs (Debian: g++)")
        }
        () => None,
    }
}

fn cargo_fuzz() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]);
    // Cargo set these for the toolchain that runs this program.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("CARGO_TARGET_DIR");
    command
}

fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(TARGETS).context("cannot read the folder of targets")? {
        let path = entry?.path();
        targets
            .extend(path.file_stem().and_then(|name| Path::new(name).to_str()).map(String::from));
    }
    targets.sort();
    Ok(targets)
}
