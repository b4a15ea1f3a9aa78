//! The `isolith` command: flags, terminal, progress, exit codes.

mod adopt;
mod browser;
mod code;
mod collection;
mod config;
mod doctor;
mod drill;
mod facts;
mod flags;
mod graph;
mod highlight;
mod hook;
mod ingest;
mod logs;
mod manual;
mod memory;
mod output;
mod serve;
mod session;
mod setup;
mod status;
mod table;
mod terminal;
mod transfer;
mod wording;

use std::process::ExitCode;

use flags::{Command, Invocation};
use isolith_types::Failure;
use output::Output;

fn main() -> ExitCode {
    // First of all: this process may be a worker.
    let mut roles = vec![isolate::role::<drill::Saboteur>()];
    roles.extend(isolith_engine::worker_roles());
    isolate::worker_main(&roles);

    let Invocation { command, output, log } = match flags::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(status) => return status,
    };
    output.start_log(log.as_deref(), command.log_files());
    match run(command, &output) {
        Ok(status) => status,
        Err(failure) => {
            output.fail(&failure);
            ExitCode::from(failure.code.exit_status())
        }
    }
}

fn run(command: Command, output: &Output) -> Result<ExitCode, Failure> {
    match command {
        Command::Fact(store, command) => facts::run(&store, command, output),
        Command::Graph(store, command) => graph::run(&store, command, output),
        Command::Collection(places, command) => collection::run(&places, command, output),
        Command::Index(store, plan) => code::index(&store, plan, output),
        Command::Search(store, plan) => code::search(&store, &plan, output),
        Command::Watch(store, plan) => code::watch(&store, plan, output),
        Command::Memory(store, command) => memory::run(&store, command, output),
        Command::Ingest(places, plan) => ingest::run(&places, &plan, output),
        Command::Export(places, plan) => transfer::export(&places, &plan, output),
        Command::Import(places, plan) => transfer::import(&places, &plan, output),
        Command::Adopt(store, yes) => adopt::run(&store, yes, output),
        Command::Doctor(store, command) => doctor::run(&store, command, output),
        Command::Status(store, check) => status::run(&store, check, output),
        Command::Mcp(plan) => serve::mcp(plan.options),
        Command::Hook(plan) => Ok(hook::run(&plan, output)),
        Command::Setup(plan) => setup::run(&plan, output),
        Command::Serve(plan, http) => serve::http(plan.options, *http, output),
        Command::Config(command) => config::run(&command, output),
        Command::Drill(plan) => drill::run(&plan, output),
        Command::Completions(shell) => manual::print_completions(shell, output),
        Command::Man(folder) => manual::write_pages(&folder, output),
    }
}
