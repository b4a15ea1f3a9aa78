//! How good answers are, on questions whose right answers are known.
//!
//! `cargo xtask eval code-search CHECKOUTS`, `cargo xtask eval memory SET...` and `cargo xtask
//! eval graph --python REPOSITORY... --typescript REPOSITORY...`. The sets are not part of
//! this repository.

mod choose;
mod code_search;
mod graph;
mod issues;
mod memory;
mod score;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask eval", about = "How good answers are")]
struct Typed {
    #[command(subcommand)]
    set: Set,
}

#[derive(Subcommand)]
enum Set {
    /// Questions about public repositories: file-level NDCG@10
    CodeSearch(code_search::Options),
    /// Edges of the code graph, beside those of exact indexes: precision and recall
    Graph(graph::Options),
    /// Bug reports, asked whole: are the files and lines of the fix among the first hits?
    Issues(issues::Options),
    /// Questions about conversations and notes: recall@10, MRR@10
    Memory(memory::Options),
}

fn main() -> Result<()> {
    // Before anything else: this process may be a worker.
    isolate::worker_main(&isolith_engine::worker_roles());
    match Typed::parse().set {
        Set::CodeSearch(options) => code_search::run(&options),
        Set::Graph(options) => graph::run(&options),
        Set::Issues(options) => issues::run(&options),
        Set::Memory(options) => memory::run(&options),
    }
}

/// Where the sets lie beside a checkout of this repository.
fn beside(set: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/eval").join(set)
}
