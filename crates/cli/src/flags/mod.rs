//! Flags in two steps: what was typed, then what it means.

mod code;
mod examples;
mod facts;
mod graph;
mod graph_import;
mod hook;
mod manual;
mod meaning;
mod memory;
mod memory_import;
mod serve;
mod settings;
mod setup;
mod typed;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap_complete::Shell;
use isolith_engine::StorePlace;
use isolith_types::{Code, Failure};

use crate::code::{IndexCommand, SearchPlan, WatchPlan};
use crate::collection::{CollectionCommand, CollectionPlaces};
use crate::config::ConfigCommand;
use crate::doctor::DoctorCommand;
use crate::drill::DrillPlan;
use crate::facts::FactCommand;
use crate::graph::GraphCommand;
use crate::hook::HookPlan;
use crate::ingest::IngestPlan;
use crate::logs::LogFiles;
use crate::memory::MemoryCommand;
use crate::output::Output;
use crate::setup::SetupPlan;
use crate::terminal;
use crate::transfer::{ExportPlan, ImportPlan};
pub(crate) use manual::{ManPage, completions, man_pages};
use meaning::Decided;
use serve::ServePlan;
pub(crate) use serve::{HttpPlan, Pages, TokenSource};
use typed::Typed;

/// A resolved command, and how it prints.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) output: Output,
    /// The log filter that the user has set.
    pub(crate) log: Option<String>,
}

pub(crate) enum Command {
    Index(StorePlace, IndexCommand),
    Search(StorePlace, SearchPlan),
    Watch(StorePlace, WatchPlan),
    Memory(StorePlace, MemoryCommand),
    Fact(StorePlace, FactCommand),
    Graph(StorePlace, GraphCommand),
    Collection(CollectionPlaces, CollectionCommand),
    Ingest(CollectionPlaces, IngestPlan),
    Export(CollectionPlaces, ExportPlan),
    Import(CollectionPlaces, ImportPlan),
    Adopt(StorePlace, bool),
    Doctor(StorePlace, DoctorCommand),
    /// With whether to check only.
    Status(StorePlace, bool),
    Mcp(ServePlan),
    Hook(HookPlan),
    Setup(SetupPlan),
    Serve(ServePlan, Box<HttpPlan>),
    Config(ConfigCommand),
    Drill(DrillPlan),
    Completions(Shell),
    Man(PathBuf),
}

impl Command {
    /// The log files of a long-running command.
    pub(crate) fn log_files(&self) -> Option<LogFiles> {
        match self {
            Self::Watch(store, _) => Some(LogFiles::of_store(store)),
            Self::Hook(plan) => Some(LogFiles::of_store(&plan.store)),
            Self::Mcp(plan) | Self::Serve(plan, _) => plan.logs.as_ref().map(LogFiles::of_store),
            Self::Index(..)
            | Self::Search(..)
            | Self::Memory(..)
            | Self::Fact(..)
            | Self::Graph(..)
            | Self::Collection(..)
            | Self::Ingest(..)
            | Self::Export(..)
            | Self::Import(..)
            | Self::Adopt(..)
            | Self::Doctor(..)
            | Self::Status(..)
            | Self::Setup(_)
            | Self::Config(_)
            | Self::Drill(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }
}

/// Parses the command line. Reports errors, and returns the exit status for them.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    // A client would take any other status for a decision, or show it.
    let status = |status| match arguments.get(1).is_some_and(|command| command == "hook") {
        true => ExitCode::SUCCESS,
        false => status,
    };
    let typed = Typed::try_parse_from(&arguments).map_err(|error| {
        let wants_json = arguments.iter().any(|argument| argument == "--json");
        if error.use_stderr() && wants_json {
            let message = error.to_string();
            let message = message.trim_start_matches("error: ").trim_end();
            return status(refuse(&Output::json(), &Failure::new(Code::Usage, message)));
        }
        match error.use_stderr() {
            // The message quotes what was typed, which may contain control characters.
            true => terminal::tell(error.render().to_string().trim_end()),
            false => drop(error.print()),
        }
        status(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)))
    })?;
    let output = Output::new(typed.common.json, typed.common.quiet, typed.common.verbose)
        .with_store(typed.common.store.as_deref());
    let decided = meaning::decide(typed).map_err(|failure| status(refuse(&output, &failure)))?;
    let Decided { command, log, warnings } = decided;
    for warning in warnings {
        output.note(&format!("warning: {warning}"));
    }
    Ok(Invocation { command, output, log })
}

fn refuse(output: &Output, failure: &Failure) -> ExitCode {
    output.fail(failure);
    ExitCode::from(failure.code.exit_status())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Typed::command().debug_assert();
    }

    /// All commands with the words that select them, the program itself first.
    fn commands<'c>(
        command: &'c clap::Command,
        path: &[&'c str],
    ) -> Vec<(Vec<&'c str>, &'c clap::Command)> {
        let mut all = vec![(path.to_vec(), command)];
        for below in command.get_subcommands().filter(|it| it.get_name() != "help") {
            all.extend(commands(below, &[path, &[below.get_name()]].concat()));
        }
        all
    }

    #[test]
    fn every_command_has_examples_that_can_be_parsed() {
        let mut command = Typed::command();
        command.build();
        for (path, found) in commands(&command, &[]) {
            let help = found.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> =
                help.lines().filter(|line| line.starts_with("  isolith ")).collect();
            assert!(!examples.is_empty(), "{path:?} has no example");
            for example in examples {
                let parsed = Typed::try_parse_from(words(example));
                assert!(parsed.is_ok(), "{example}: {}", parsed.err().unwrap());
            }
        }
    }

    /// The words of an example as a shell splits them, without redirections and explanations.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        let command = example.trim().split("   ").next().unwrap();
        for letter in command.split(" > ").next().unwrap().chars() {
            match (letter, quote) {
                ('"' | '\'', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (' ', None) => words.push(String::new()),
                (letter, _) => words.last_mut().unwrap().push(letter),
            }
        }
        words
    }

    #[test]
    fn help_texts() {
        let mut command = Typed::command();
        command.build();
        insta::assert_snapshot!("help", command.render_long_help());
        insta::assert_snapshot!("short_help", command.render_help());
        for (path, found) in commands(&command, &[]).into_iter().skip(1) {
            let help = found.clone().render_long_help();
            insta::assert_snapshot!(format!("help_{}", path.join("_")), help);
        }
    }
}
