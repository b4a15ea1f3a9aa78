//! `isolith memory`: what is remembered, by hand.

mod import;
mod input;
mod search;
mod show;

use std::path::Path;
use std::process::ExitCode;

use isolith_engine::{DiaryEntry, Engine, EngineOptions, Key, MemorySearch, WhichDrawers};
use isolith_types::{
    Code, Drawer, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, DrawerPlace, Failure, Moment,
    NewDrawer,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::Output;
use crate::session::Session;
pub(crate) use import::ImportPlan;
pub(crate) use input::read_text;

/// What is to be done.
pub(crate) enum MemoryCommand {
    Add { drawer: Box<NewDrawer>, near: Option<f32>, key: Option<Key> },
    Search { search: Box<MemorySearch>, lines: bool },
    Get { ids: Vec<String> },
    List(ListPlan),
    Update { id: String, patch: Box<DrawerPatch>, key: Option<Key> },
    Delete { which: WhichDrawers, sure: bool, key: Option<Key> },
    Taxonomy,
    WriteDiary { entry: DiaryEntry, key: Option<Key> },
    ReadDiary { agent: String, day: Option<Moment>, last: u32 },
    Import(ImportPlan),
}

/// Which drawers are listed, and how.
pub(crate) enum ListPlan {
    /// A page, as a table or a JSON document or a line for each.
    Page { filter: DrawerFilter, page: DrawerPage, lines: bool },
    /// All, a line for each, as an import takes them.
    All { filter: DrawerFilter },
}

/// Similar drawers that are shown.
const SIMILAR: u32 = 10;

/// Drawers that are read at once where all are wanted.
const BATCH: u32 = 500;

pub(crate) fn run(
    store: &Path,
    command: MemoryCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    if let MemoryCommand::Import(plan) = command {
        return import::run(store, &plan, output);
    }
    let create = matches!(command, MemoryCommand::Add { .. } | MemoryCommand::WriteDiary { .. });
    let writes =
        create || matches!(command, MemoryCommand::Update { .. } | MemoryCommand::Delete { .. });
    let mut session = Session::open(store, EngineOptions { create, ..EngineOptions::default() })?;
    match command {
        MemoryCommand::List(plan) => {
            session.run(async |engine| list(engine, plan, output).await)?;
        }
        MemoryCommand::Search { search, lines } => {
            let found = session.run(async |engine| engine.search_memory(&search).await)?;
            search::print(found, &search.text, lines, output)?;
        }
        command => {
            let (document, text) =
                session.run(async |engine| perform(engine, command, output).await)?;
            output.result(&document, &text)?;
        }
    }
    match writes {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result as JSON and as text.
async fn perform(
    engine: &Engine,
    command: MemoryCommand,
    output: &Output,
) -> Result<(Value, String), Failure> {
    match command {
        MemoryCommand::Add { drawer, near, key } => add(engine, *drawer, near, key).await,
        MemoryCommand::Get { ids } => get(engine, ids, output).await,
        MemoryCommand::Update { id, patch, key } => {
            let updated = engine.update_drawer(&id, *patch, key).await?;
            let what = if updated.changed { "updated" } else { "nothing to change in" };
            let document = json!({ "drawer": updated.drawer, "changed": updated.changed });
            Ok((document, format!("{what} {id}\n")))
        }
        MemoryCommand::Delete { which, sure, key } => delete(engine, which, sure, key).await,
        MemoryCommand::Taxonomy => {
            let wings = engine.taxonomy().await?;
            let drawers: u64 = wings.iter().map(|wing| wing.drawers).sum();
            let text = show::taxonomy(&wings);
            Ok((json!({ "wings": wings, "drawers": drawers }), text))
        }
        MemoryCommand::WriteDiary { entry, key } => {
            let added = engine.write_diary(entry, key).await?;
            let text = format!("written as {}\n", added.id);
            Ok((json!(added), text))
        }
        MemoryCommand::ReadDiary { agent, day, last } => {
            let entries = engine.read_diary(&agent, day, last).await?;
            let text = show::diary(&entries, &output.paint());
            Ok((json!({ "agent": agent, "entries": entries }), text))
        }
        MemoryCommand::List(_) | MemoryCommand::Search { .. } | MemoryCommand::Import(_) => {
            Err(Failure::new(Code::Failed, "this command prints its result by itself"))
        }
    }
}

async fn add(
    engine: &Engine,
    drawer: NewDrawer,
    near: Option<f32>,
    key: Option<Key>,
) -> Result<(Value, String), Failure> {
    // Before it is there itself.
    let similar = match near {
        Some(threshold) => {
            let all = DrawerFilter::default();
            Some(engine.similar_drawers(&drawer.text, &all, threshold, SIMILAR).await?)
        }
        None => None,
    };
    let added = engine.add_drawers(vec![drawer], key).await?.into_iter().next();
    let added =
        added.ok_or_else(|| Failure::new(Code::Failed, "the writer left the drawer out"))?;
    let mut text = match added.created {
        true => format!("remembered as {}\n", added.id),
        false => format!("known already as {}\n", added.id),
    };
    let mut document = json!(added);
    if let Some(mut similar) = similar {
        similar.retain(|it| it.drawer.id != added.id);
        text += &show::similar(&similar);
        document["similar"] = json!(similar);
    }
    Ok((document, text))
}

async fn get(
    engine: &Engine,
    ids: Vec<String>,
    output: &Output,
) -> Result<(Value, String), Failure> {
    let found = engine.drawers(ids.clone()).await?;
    let missing: Vec<&String> =
        ids.iter().zip(&found).filter(|(_, drawer)| drawer.is_none()).map(|(id, _)| id).collect();
    let drawers: Vec<&Drawer> = found.iter().flatten().collect();
    if drawers.is_empty() {
        return Err(nowhere(&missing));
    }
    if !missing.is_empty() {
        output.note(&nowhere(&missing).message);
    }
    let text = show::drawers(&drawers, &output.paint());
    Ok((json!({ "drawers": drawers, "missing": missing }), text))
}

fn nowhere(ids: &[&String]) -> Failure {
    let named: Vec<&str> = ids.iter().take(5).map(|id| id.as_str()).collect();
    let more = if ids.len() > named.len() { " ..." } else { "" };
    let message = format!("there is no drawer {}{more}", named.join(", "));
    Failure::new(Code::NotFound, message).with_hint("`isolith memory list` shows what there is")
}

async fn delete(
    engine: &Engine,
    which: WhichDrawers,
    sure: bool,
    key: Option<Key>,
) -> Result<(Value, String), Failure> {
    if let (false, WhichDrawers::Matching(filter)) = (sure, &which) {
        let (_, total) = engine.list_drawers(filter, DrawerPage::default()).await?;
        let message = format!("this would delete {total} drawers in all rooms");
        return Err(Failure::new(Code::Usage, message).with_hint("say --yes, or name a --room"));
    }
    let ids = match &which {
        WhichDrawers::Ids(ids) => ids.clone(),
        WhichDrawers::Matching(_) => Vec::new(),
    };
    let done = engine.delete_drawers(which, key).await?;
    if done.deleted == 0 && done.missing > 0 {
        return Err(nowhere(&ids.iter().collect::<Vec<_>>()));
    }
    let mut text = format!("deleted {} drawers\n", done.deleted);
    if done.missing > 0 {
        text += &format!("{} ids were not there\n", done.missing);
    }
    Ok((json!({ "deleted": done.deleted, "missing": done.missing }), text))
}

async fn list(engine: &Engine, plan: ListPlan, output: &Output) -> Result<(), Failure> {
    match plan {
        ListPlan::All { filter } => list_all(engine, &filter, output).await,
        ListPlan::Page { filter, page, lines } => {
            let (drawers, total) = pages(engine, &filter, &page).await?;
            if lines {
                return output.lines(&drawers);
            }
            let text = show::list(&drawers, total, page.offset, &output.paint());
            let document = json!({ "drawers": drawers, "total": total, "offset": page.offset });
            output.result(&document, &text)
        }
    }
}

/// A page that may come in parts.
async fn pages(
    engine: &Engine,
    filter: &DrawerFilter,
    page: &DrawerPage,
) -> Result<(Vec<Drawer>, u64), Failure> {
    let (mut drawers, total) = engine.list_drawers(filter, page.clone()).await?;
    loop {
        let got = drawers.len() as u64;
        let left = u64::from(page.limit) - got;
        if got == 0 || left == 0 || page.offset + got >= total {
            return Ok((drawers, total));
        }
        let limit = u32::try_from(left).unwrap_or(u32::MAX);
        let rest = DrawerPage { offset: page.offset + got, limit, ..page.clone() };
        let (more, _) = engine.list_drawers(filter, rest).await?;
        if more.is_empty() {
            return Ok((drawers, total));
        }
        drawers.extend(more);
    }
}

/// Each page begins behind the last drawer of the one before, whatever others change.
async fn list_all(engine: &Engine, filter: &DrawerFilter, output: &Output) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = DrawerPage {
            order: DrawerOrder::Position,
            after,
            limit: BATCH,
            ..DrawerPage::default()
        };
        let (drawers, _) = engine.list_drawers(filter, page).await?;
        let Some(last) = drawers.last() else { return Ok(()) };
        after = Some(DrawerPlace {
            wing: last.wing.clone(),
            room: last.room.clone(),
            position: last.position,
        });
        output.lines(&drawers.iter().map(Ready::of).collect::<Vec<_>>())?;
    }
}

/// A drawer as an import takes it. Its id and position follow from the rest.
#[derive(Serialize)]
struct Ready<'a> {
    text: &'a str,
    wing: &'a str,
    room: &'a str,
    source: Option<&'a str>,
    author: Option<&'a str>,
    date: Option<Moment>,
    date_text: Option<&'a str>,
    tags: &'a [String],
    metadata: &'a isolith_types::Metadata,
}

impl<'a> Ready<'a> {
    fn of(drawer: &'a Drawer) -> Self {
        Self {
            text: &drawer.text,
            wing: &drawer.wing,
            room: &drawer.room,
            source: drawer.source.as_deref(),
            author: drawer.author.as_deref(),
            date: drawer.date,
            date_text: drawer.date_text.as_deref(),
            tags: &drawer.tags,
            metadata: &drawer.metadata,
        }
    }
}
