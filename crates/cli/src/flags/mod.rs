//! Flags in two steps: what was typed, then what it means.

mod code;
mod facts;
mod graph;
mod graph_import;
mod meaning;
mod memory;
mod memory_import;
mod serve;
mod setup;
mod typed;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use isolith_engine::{IndexOptions, StorePlace};
use isolith_types::{Code, Failure};

use crate::code::{IndexPlan, SearchPlan};
use crate::collection::CollectionCommand;
use crate::doctor::DoctorCommand;
use crate::drill::Plan;
use crate::facts::FactCommand;
use crate::graph::GraphCommand;
use crate::ingest::IngestPlan;
use crate::logs::LogFiles;
use crate::memory::MemoryCommand;
use crate::output::Output;
use crate::setup::SetupPlan;
use crate::terminal::{self, Kind};
use crate::transfer::{ExportPlan, ImportPlan};
use serve::ServePlan;
pub(crate) use serve::{HttpPlan, TokenSource};
use typed::Typed;

/// What a command is to do, with everything decided.
pub(crate) struct Invocation {
    pub(crate) command: Command,
    pub(crate) output: Output,
}

pub(crate) enum Command {
    Index(StorePlace, IndexPlan),
    Search(StorePlace, SearchPlan),
    Watch(StorePlace, IndexOptions),
    Memory(StorePlace, MemoryCommand),
    Fact(StorePlace, FactCommand),
    Graph(StorePlace, GraphCommand),
    Collection(StorePlace, CollectionCommand),
    Ingest(StorePlace, IngestPlan),
    Export(StorePlace, ExportPlan),
    Import(StorePlace, ImportPlan),
    Adopt(StorePlace, bool),
    Doctor(StorePlace, DoctorCommand),
    Status(StorePlace),
    Mcp(ServePlan),
    Setup(SetupPlan),
    Serve(ServePlan, HttpPlan),
    Drill(Plan),
    Completions(Shell),
}

impl Command {
    /// Where a command that lives long keeps its log.
    pub(crate) fn log_files(&self) -> Option<LogFiles> {
        match self {
            Self::Watch(store, _) => Some(LogFiles::of_store(store)),
            Self::Mcp(plan) | Self::Serve(plan, _) => plan.logs.as_ref().map(LogFiles::of_store),
            _ => None,
        }
    }
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
            return refuse(&Output::json(), &Failure::new(Code::Usage, message));
        }
        match error.use_stderr() {
            // What was typed is part of it.
            true => terminal::tell(error.render().to_string().trim_end()),
            false => drop(error.print()),
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })?;
    let output = Output::new(typed.common.json, typed.common.quiet, typed.common.verbose);
    let command = meaning::decide(typed).map_err(|failure| refuse(&output, &failure))?;
    Ok(Invocation { command, output })
}

fn refuse(output: &Output, failure: &Failure) -> ExitCode {
    output.fail(failure);
    ExitCode::from(failure.code.exit_status())
}

pub(crate) fn print_completions(shell: Shell) {
    clap_complete::generate(
        shell,
        &mut Typed::command(),
        "isolith",
        &mut terminal::stdout(Kind::Text),
    );
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
        command.build();
        insta::assert_snapshot!("help", command.render_help());
        for path in [
            &["index"][..],
            &["search"],
            &["similar"],
            &["watch"],
            &["memory"],
            &["memory", "add"],
            &["memory", "get"],
            &["memory", "list"],
            &["memory", "update"],
            &["memory", "delete"],
            &["memory", "taxonomy"],
            &["memory", "import"],
            &["memory", "diary", "write"],
            &["memory", "diary", "read"],
            &["fact"],
            &["fact", "add"],
            &["fact", "query"],
            &["fact", "invalidate"],
            &["fact", "supersede"],
            &["fact", "timeline"],
            &["fact", "stats"],
            &["fact", "entities"],
            &["fact", "entity"],
            &["graph"],
            &["graph", "query"],
            &["graph", "import"],
            &["graph", "import", "nodes"],
            &["graph", "import", "edges"],
            &["graph", "callers"],
            &["graph", "callees"],
            &["graph", "path"],
            &["graph", "impact"],
            &["graph", "cycles"],
            &["graph", "unused"],
            &["graph", "hotspots"],
            &["graph", "stats"],
            &["mcp"],
            &["serve"],
            &["drill"],
            &["adopt"],
            &["doctor"],
            &["status"],
            &["setup"],
            &["ingest"],
            &["export"],
            &["import"],
            &["collection"],
            &["collection", "create"],
            &["collection", "delete"],
            &["collection", "get"],
            &["collection", "query"],
        ] {
            let found = path
                .iter()
                .fold(&mut command, |command, name| command.find_subcommand_mut(name).unwrap());
            insta::assert_snapshot!(format!("help_{}", path.join("_")), found.render_long_help());
        }
    }
}
