//! Flags in two steps: what was typed, then what it means.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use isolith_types::{Code, Failure};

use crate::drill::Plan;
use crate::output::Output;

/// What a command is to do, with everything decided.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) output: Output,
}

pub(crate) enum Command {
    Drill(Plan),
    Completions(Shell),
}

#[derive(Parser)]
#[command(name = "isolith", version, about, max_term_width = 100)]
struct Typed {
    #[command(subcommand)]
    command: TypedCommand,
    #[command(flatten)]
    output: TypedOutput,
}

/// Flags that every command takes.
#[derive(Args)]
struct TypedOutput {
    /// Print one JSON document on standard output, and nothing else there
    #[arg(long, global = true)]
    json: bool,
    /// Show no progress
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Log to standard error: -v what went wrong, -vv every worker's life, -vvv all
    /// (ISOLITH_LOG takes filters such as isolate=debug)
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand)]
enum TypedCommand {
    /// Crash, hang and corrupt real workers, and show that no job is lost
    ///
    /// Starts worker processes in a scratch folder and makes them fail in every way
    /// there is: SIGSEGV, SIGBUS, panic, hang, out of memory, garbage on the wire ...
    /// The faults are real and the supervisor is told nothing. Each job leaves a mark
    /// when it is done, so that lost and repeated jobs are counted, not guessed.
    /// Exits with 1 unless nothing was misclassified, lost, duplicated or left behind.
    Drill(TypedDrill),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Args)]
struct TypedDrill {
    /// How many faults to inject, evenly over all kinds
    #[arg(long, value_name = "N", default_value_t = 280, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// The order of the faults; the same seed gives the same order [default: random]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Parses the command line. What cannot be parsed is said here; the exit status
/// comes back.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    let typed = Typed::try_parse_from(&arguments).map_err(|error| {
        let wants_json = arguments.iter().any(|argument| argument == "--json");
        if error.use_stderr() && wants_json {
            let message = error.to_string();
            let message = message.trim_start_matches("error: ").trim_end();
            Output::json().fail(&Failure::new(Code::Usage, message));
            return ExitCode::from(Code::Usage.exit_status());
        }
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })?;
    let TypedOutput { json, quiet, verbose } = typed.output;
    let command = match typed.command {
        TypedCommand::Drill(TypedDrill { count, seed }) => {
            Command::Drill(Plan { count, seed: seed.unwrap_or_else(|| fastrand::u64(..1 << 32)) })
        }
        TypedCommand::Completions { shell } => Command::Completions(shell),
    };
    Ok(Invocation { command, output: Output::new(json, quiet, verbose) })
}

pub(crate) fn print_completions(shell: Shell) {
    clap_complete::generate(shell, &mut Typed::command(), "isolith", &mut io::stdout());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_consistent() {
        Typed::command().debug_assert();
    }

    #[test]
    fn help_texts() {
        let mut command = Typed::command();
        insta::assert_snapshot!("help", command.render_help());
        let drill = command.find_subcommand_mut("drill").unwrap();
        insta::assert_snapshot!("help_drill", drill.render_long_help());
    }
}
