//! Development commands; `cargo xtask --help` lists them.

mod acceptance;
mod book;
mod check;
mod clients;
mod deny;
mod fuzz;
mod promtool;
mod python;
mod web;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development commands")]
enum Task {
    /// Check formatting, lints, documentation and tests; needs git and python3, and no network once
    /// the dependencies are downloaded.
    Check {
        /// Also build and test the pages (npm, chromium), check dependencies (cargo-deny) and metrics
        /// (promtool), build the book (mdbook), and test the MCP clients from PyPI and npm and the
        /// Python package, as CI does. Skips chromium, cargo-deny, promtool and mdbook with a message
        /// if they are not installed
        #[arg(long)]
        all: bool,
    },
    /// Check licenses, sources and advisories of the dependencies (deny.toml); skipped with a
    /// message if cargo-deny is not installed.
    Deny,
    /// Check the alert rules, the dashboard and the metrics of a server; skipped with a message if
    /// promtool is not installed.
    Promtool,
    /// Build the documentation as a book in target/book; skipped with a message if mdbook is not
    /// installed.
    Book,
    /// Test the MCP server with third-party clients: the official Python package, the Inspector
    /// and the conformance suite; needs python3 and npm.
    Clients,
    /// Build the pages for browsers in web/dist, from which the next build of the program takes
    /// them; needs Node.js with npm.
    Web {
        /// Also test them: their logic, and all of them in Chromium, with a build of the program
        #[arg(long)]
        test: bool,
    },
    /// Build a wheel of the Python package, with the program and the pages in it; needs python3 with
    /// venv, and npm.
    Wheel {
        /// Build for another platform, such as aarch64-unknown-linux-musl, with zig (from PyPI)
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
    },
    /// Build the wheel of the Python package, and test it in each Python of this machine; needs
    /// python3 with venv.
    Python,
    /// Run what takes too long for every change: Chroma's own tests and the frameworks that use
    /// Chroma, against the release build; two servers on one store with workers that are killed, and a
    /// server with 1,200 connections; 16 Python processes on one store for two minutes; the pages in
    /// Chromium, which must be installed, as must npm; 500 damaged stores; a minute of random kills.
    Acceptance {
        /// Only these: chroma, frameworks, servers, python, damage, torture
        checks: Vec<String>,
    },
    /// Run the benchmarks of `bench/`.
    Bench {
        /// Options of the benchmark: --quick, --json, --only PART, --vectors FILE,
        /// --repos FOLDER..., --program FILE
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Evaluate search quality on queries with known answers.
    Eval {
        /// Options of the evaluation: code-search CHECKOUTS [--ablation] [--misses] ...,
        /// memory SET... [--ablation] ..., graph --python REPOSITORY... --typescript
        /// REPOSITORY... (needs npm)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the targets of fuzz/; needs a nightly toolchain, cargo-fuzz and a C++ compiler.
    Fuzz {
        /// Time per target
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// Only these targets; all if none is given
        targets: Vec<String>,
    },
    /// Run the openCypher compatibility kit, which is not part of the repository, on a graph in
    /// memory and on that of a store, and report passed, refused and wrong results.
    Tck {
        /// The kit's features: the folder tck/features of opencypher/openCypher
        features: String,
    },
    /// Damage the files of a store at random, and check that no answer changes silently; see
    /// docs/torture.md.
    Damage {
        /// Options of the trials: --count N, --seed X, --trial K, --keep FOLDER, --jobs J,
        /// --json
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run many processes on one store and kill them at random; see docs/torture.md.
    Torture {
        /// Options of the test: --processes N, --seconds S, --seed X, --json,
        /// --keep FOLDER
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> Result<()> {
    match Task::parse() {
        Task::Check { all } => check::run(all),
        Task::Deny => deny::run(),
        Task::Promtool => promtool::run(),
        Task::Book => book::run(),
        Task::Clients => clients::run(),
        Task::Web { test } => {
            web::build()?;
            if test {
                web::test()?;
                cargo(&["build", "--package", "isolith", "--locked"], &[])?;
                web::browse(&target_folder()?.join("debug/isolith"))?;
            }
            Ok(())
        }
        Task::Wheel { target } => wheel::build(target.as_deref()).map(drop),
        Task::Python => python::run(),
        Task::Acceptance { checks } => acceptance::run(&checks),
        Task::Fuzz { seconds, targets } => fuzz::run(seconds, &targets),
        Task::Tck { features } => {
            let line = ["run", "--package", "isolith-store", "--example", "tck", "--"];
            cargo(&[&line[..], &[&features]].concat(), &[])
        }
        Task::Bench { arguments } => {
            let has = |option: &str| arguments.iter().any(|argument| argument == option);
            if !has("--program") {
                // The benchmark runs the program next to itself.
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
        Task::Damage { arguments } => damage(&strings(&arguments)),
        Task::Torture { arguments } => torture(&strings(&arguments)),
    }
}

fn strings(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn damage(arguments: &[&str]) -> Result<()> {
    let line = ["test", "--package", "isolith", "--test", "damage", "--", "run"];
    cargo(&[&line, arguments].concat(), &[])
}

fn torture(arguments: &[&str]) -> Result<()> {
    // Not a release build, which has no debug assertions.
    let line = ["test", "--package", "isolith-engine", "--test", "torture", "--", "run"];
    cargo(&[&line, arguments].concat(), &[])
}

/// The target folder, which contains this program as debug/xtask.
fn target_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder =
        program.parent().and_then(Path::parent).context("cannot find the target folder")?;
    Ok(folder.to_owned())
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("xtask: {line}");
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}
