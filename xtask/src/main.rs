//! The developer's commands: `cargo xtask --help` lists them.

mod book;
mod check;
mod clients;
mod deny;
mod fuzz;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The developer's commands")]
enum Task {
    /// Formatting, lints, tests and documentation: without network, once the dependencies
    /// are there, and without other programs than git and python3.
    Check {
        /// Also check dependencies (cargo-deny), build the book (mdbook) and try the MCP clients
        /// from PyPI and npm: what CI runs. cargo-deny and mdbook are skipped with a message
        /// if they are not installed
        #[arg(long)]
        all: bool,
    },
    /// Licences, sources and known vulnerabilities of the dependencies (deny.toml); needs
    /// cargo-deny, and is skipped with a message where that is missing.
    Deny,
    /// The documentation as a book, in target/book; needs mdbook, and is skipped with a message
    /// where that is missing.
    Book,
    /// The MCP server, tried with the clients that others have written: Python's package,
    /// the Inspector, the conformance suite; needs python3 and npm.
    Clients,
    /// The side-by-side measurements of `bench/`, as one table.
    Bench {
        /// What the benchmark itself takes: --quick, --json, --only PART, --vectors FILE,
        /// --repos FOLDER..., --program FILE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// How good answers are, on questions whose right answers are known.
    Eval {
        /// What the evaluation itself takes: code-search CHECKOUTS [--ablation] [--misses] ...,
        /// memory SET... [--ablation] ..., graph --python REPOSITORY... --typescript
        /// REPOSITORY... (needs npm)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The fuzz targets of fuzz/, all or those named; needs a nightly toolchain, cargo-fuzz and a
    /// C++ compiler.
    Fuzz {
        /// How long to run each target
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// The targets
        targets: Vec<String>,
    },
    /// openCypher's compatibility kit, which is not part of the repository, on a graph in
    /// memory and on that of a store: what passes, what is refused, what is wrong.
    Tck {
        /// The kit's folder of features: tck/features of opencypher/openCypher
        features: String,
    },
    /// Random damage to the files of a store: no answer may change silently; see
    /// docs/torture.md.
    Damage {
        /// What the trials take: --count N, --seed X, --trial K, --keep FOLDER, --jobs J,
        /// --json
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Many processes on one store, killed at random; see docs/torture.md.
    Torture {
        /// What the torture itself takes: --processes N, --seconds S, --seed X, --json,
        /// --keep FOLDER
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Check { all } => check::run(all),
        Task::Deny => deny::run(),
        Task::Book => book::run(),
        Task::Clients => clients::run(),
        Task::Fuzz { seconds, targets } => fuzz::run(seconds, &targets),
        Task::Tck { features } => {
            let line = ["run", "--package", "isolith-store", "--example", "tck", "--"];
            cargo(&[&line[..], &[&features]].concat(), &[])
        }
        Task::Bench { arguments } => {
            let has = |option: &str| arguments.iter().any(|argument| argument == option);
            if !has("--program") {
                // Which finds the program beside itself.
                cargo(&["build", "--release", "--package", "isolith"], &[])?;
            }
            let mut line = vec!["run", "--release", "--package", "bench", "--bin", "bench", "--"];
            line.extend(arguments.iter().map(String::as_str));
            cargo(&line, &[])
        }
        Task::Eval { arguments } => {
            let mut line = vec!["run", "--release", "--package", "bench", "--bin", "eval", "--"];
            line.extend(arguments.iter().map(String::as_str));
            cargo(&line, &[])
        }
        Task::Damage { arguments } => {
            let mut line = vec!["test", "--package", "isolith", "--test", "damage", "--", "run"];
            line.extend(arguments.iter().map(String::as_str));
            cargo(&line, &[])
        }
        Task::Torture { arguments } => {
            // Not a release: what a debug build asserts is part of the torture.
            let mut line = vec!["test", "--package", "isolith-engine"];
            line.extend(["--test", "torture", "--", "run"]);
            line.extend(arguments.iter().map(String::as_str));
            cargo(&line, &[])
        }
    }
}

/// The folder of the build's products.
fn products() -> Result<PathBuf> {
    // This program is one of them: target/debug/xtask.
    let program = std::env::current_exe()?;
    let products = program.parent().and_then(Path::parent).context("the build has no folder")?;
    Ok(products.to_owned())
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("xtask: {line}");
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("`{line}` could not be started"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}
