//! The fuzz targets of `fuzz/`, each for some time, on nightly with cargo-fuzz.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::products;

/// Where the targets are, one file each.
const TARGETS: &str = "fuzz/fuzz_targets";

/// Runs all targets, or those named, for `seconds` each. The committed corpus is read only;
/// what a fuzzer finds interesting goes beside the build's products.
pub(crate) fn run(seconds: u64, named: &[String]) -> Result<()> {
    if let Some(missing) = missing() {
        eprintln!("xtask: cannot fuzz: {missing}");
        eprintln!("xtask: `cargo test -p isolith-fuzz` runs the corpus without it");
        std::process::exit(1);
    }
    let targets = if named.is_empty() { targets()? } else { named.to_vec() };
    // The same versions as in the product.
    fs::copy("Cargo.lock", "fuzz/Cargo.lock").context("cannot copy Cargo.lock")?;
    let folder = products()?.join("fuzz");
    for target in &targets {
        let found = folder.join("corpus").join(target);
        fs::create_dir_all(&found).with_context(|| format!("cannot create {}", found.display()))?;
        let mut command = cargo_fuzz();
        command.args(["run", target]).arg(&found).arg(format!("fuzz/corpus/{target}"));
        command.arg("--target-dir").arg(folder.join("build"));
        command.args(["--", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={seconds}"));
        eprintln!("xtask: {command:?}");
        let status = command.status().with_context(|| format!("{command:?}"))?;
        ensure!(
            status.success(),
            "{target} failed: its input is in fuzz/artifacts/{target}; once it is fixed, add it \
             to fuzz/corpus/{target}"
        );
    }
    eprintln!("xtask: nothing found by {}", targets.join(", "));
    Ok(())
}

/// What has to be installed first.
fn missing() -> Option<&'static str> {
    let succeeds = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // Asked for by its list, since running a toolchain that is missing would install it.
    let toolchains = Command::new("rustup").args(["toolchain", "list"]).output().ok();
    let has_nightly = toolchains
        .is_some_and(|output| String::from_utf8_lossy(&output.stdout).contains("nightly"));
    match () {
        () if !has_nightly => Some("no nightly toolchain (`rustup toolchain install nightly`)"),
        () if !succeeds(cargo_fuzz().arg("--version")) => {
            Some("no cargo-fuzz (`cargo install cargo-fuzz --locked`)")
        }
        () if !succeeds(Command::new("c++").arg("--version")) => {
            Some("no C++ compiler, which libFuzzer is built with (Debian: g++)")
        }
        () => None,
    }
}

fn cargo_fuzz() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]);
    // Set by cargo, for the toolchain that runs this program.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("CARGO_TARGET_DIR");
    command
}

fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(TARGETS).context("cannot read the list of targets")? {
        let path = entry?.path();
        targets
            .extend(path.file_stem().and_then(|name| Path::new(name).to_str()).map(String::from));
    }
    targets.sort();
    Ok(targets)
}
