//! `isolith memory`.

mod drawers;
mod folder;
mod import;
mod input;
mod list;
mod search;
mod show;

use std::process::ExitCode;

use isolith_engine::{
    Checkpoint, DiaryEntry, EngineOptions, Key, MemorySearch, StorePlace, WhichDrawers,
};
use isolith_types::{DrawerPatch, Failure, Moment, NewDrawer};

use crate::output::Output;
use crate::session::Session;
pub(crate) use import::MemoryImportPlan;
pub(crate) use input::read_text;
pub(crate) use list::ListPlan;

/// A command on memory.
pub(crate) enum MemoryCommand {
    Import(MemoryImportPlan),
    Drawers(DrawerCommand),
}

/// A command on drawers.
pub(crate) enum DrawerCommand {
    Add { drawer: Box<NewDrawer>, near: Option<f32>, key: Option<Key> },
    Search { search: Box<MemorySearch>, lines: bool },
    Get { ids: Vec<String> },
    List(ListPlan),
    Update { id: String, patch: Box<DrawerPatch>, key: Option<Key> },
    Delete { which: WhichDrawers, sure: bool, key: Option<Key> },
    Taxonomy,
    WriteDiary { entry: DiaryEntry, key: Option<Key> },
    WakeUp { names: Vec<String>, budget: u32 },
    Checkpoint { checkpoint: Box<Checkpoint>, key: Option<Key> },
    ReadDiary { agent: String, day: Option<Moment>, last: u32 },
}

pub(crate) fn run(
    store: &StorePlace,
    command: MemoryCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let command = match command {
        MemoryCommand::Import(plan) => return import::run(store, &plan, output),
        MemoryCommand::Drawers(command) => command,
    };
    let create = matches!(
        command,
        DrawerCommand::Add { .. }
            | DrawerCommand::WriteDiary { .. }
            | DrawerCommand::Checkpoint { .. }
    );
    let writes =
        create || matches!(command, DrawerCommand::Update { .. } | DrawerCommand::Delete { .. });
    let mut session = Session::open(store, EngineOptions { create, ..EngineOptions::default() })?;
    session.run(async |engine| drawers::perform(engine, command, output).await)?;
    match writes {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(ExitCode::SUCCESS)
}
