//! Evaluates the quality of answers, on questions with known answers.
//!
//! `cargo xtask eval code-search CHECKOUTS`, `cargo xtask eval memory SET...` and `cargo xtask
//! eval graph --python REPOSITORY... --typescript REPOSITORY...`. The data is not part of this
//! repository.

mod code_search;
mod cross_validation;
mod graph;
mod issues;
mod memory;
mod score;
mod weak;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask eval", about = "Evaluate the quality of answers")]
struct Cli {
    #[command(subcommand)]
    evaluation: Evaluation,
}

#[derive(Subcommand)]
enum Evaluation {
    /// Questions about public repositories: file-level NDCG@10
    CodeSearch(code_search::Options),
    /// Edges of the code graph, compared with exact indexes: precision and recall
    Graph(graph::Options),
    /// Bug reports, asked whole: are the files and lines of the fix among the first hits?
    Issues(issues::Options),
    /// Questions about conversations and notes: recall@10, MRR@10
    Memory(memory::Options),
}

fn main() -> Result<()> {
    // Before anything else: this process may be a worker.
    isolate::worker_main(&isolith_engine::worker_roles());
    match Cli::parse().evaluation {
        Evaluation::CodeSearch(options) => code_search::run(&options),
        Evaluation::Graph(options) => graph::run(&options),
        Evaluation::Issues(options) => issues::run(&options),
        Evaluation::Memory(options) => memory::run(&options),
    }
}

/// The default folder of the data, relative to a checkout of this repository.
fn default_data(evaluation: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/eval").join(evaluation)
}
