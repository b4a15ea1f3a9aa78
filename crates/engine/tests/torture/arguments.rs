//! Command-line arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "torture")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Torture a store
    Run(RunArguments),
    /// Run as one of the processes that use it
    Member(MemberArguments),
}

#[derive(Args, Clone)]
pub(crate) struct RunArguments {
    /// Number of processes that use the store at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: u32,
    /// Duration in seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Seed of random decisions; scheduling is random as well
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the store and the journals in this folder, which must not exist
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct MemberArguments {
    /// Folder with the store and the journals
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// Number of this process
    #[arg(long)]
    pub(crate) member: u32,
    /// Number of processes
    #[arg(long)]
    pub(crate) members: u32,
    /// Seed of random decisions
    #[arg(long)]
    pub(crate) seed: u64,
    /// When to stop, in microseconds of the monotonic clock
    #[arg(long)]
    pub(crate) until: u64,
}
