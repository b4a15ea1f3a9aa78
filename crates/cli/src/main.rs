//! The `isolith` command: flags, terminal, progress, exit codes.

mod drill;
mod failure;
mod flags;
mod output;

use std::process::ExitCode;

use flags::{Command, Invocation};
use isolith_types::Failure;
use output::Output;

fn main() -> ExitCode {
    // Before anything else: this process may be a worker.
    isolate::worker_main(&[isolate::role::<drill::Saboteur>()]);

    let Invocation { command, output } = match flags::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(status) => return status,
    };
    output.start_log();
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
        Command::Drill(plan) => drill::run(&plan, output),
        Command::Completions(shell) => {
            flags::print_completions(shell);
            Ok(ExitCode::SUCCESS)
        }
    }
}
