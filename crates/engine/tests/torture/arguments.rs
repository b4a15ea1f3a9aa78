//! What was typed.

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
    /// Tortures a store.
    Run(RunArguments),
    /// Is one of the processes that use it.
    Member(MemberArguments),
}

#[derive(Args, Clone)]
pub(crate) struct RunArguments {
    /// Processes on the store at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: u32,
    /// How long they are tortured
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// What chance starts from; the system has its own as well
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// One JSON document on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Keeps the store and the journals in this folder, which must not exist
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct MemberArguments {
    /// The folder with store and journals
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// Which process this is
    #[arg(long)]
    pub(crate) member: u32,
    /// How many there are
    #[arg(long)]
    pub(crate) members: u32,
    /// What chance starts from
    #[arg(long)]
    pub(crate) seed: u64,
    /// When to stop, in microseconds of the monotonic clock
    #[arg(long)]
    pub(crate) until: u64,
}
