//! Commands on drawers, and their output.

use isolith_engine::{Engine, Key, WhichDrawers};
use isolith_serve::{WakeUp, checkpoint_document};
use isolith_types::{Code, Drawer, DrawerFilter, DrawerPage, Failure, Hint, NewDrawer, counted};
use serde_json::{Value, json};

use super::list::list;
use super::{DrawerCommand, search, show};
use crate::output::Output;

/// Maximum number of similar drawers to show.
const SIMILAR: u32 = 10;

/// Runs the command and prints the result.
pub(super) async fn perform(
    engine: &Engine,
    command: DrawerCommand,
    output: &Output,
) -> Result<(), Failure> {
    let (document, text) = match command {
        DrawerCommand::Search { search, lines } => {
            let found = engine.search_memory(&search).await?;
            return search::print(found, &search.text, lines, output);
        }
        DrawerCommand::List(plan) => return list(engine, plan, output).await,
        DrawerCommand::Add { drawer, near, key } => add(engine, *drawer, near, key).await?,
        DrawerCommand::Get { ids } => get(engine, ids, output).await?,
        DrawerCommand::Update { id, patch, key } => {
            let updated = engine.update_drawer(&id, *patch, key).await?;
            let what = if updated.changed { "updated" } else { "no changes to" };
            let document = json!({ "drawer": updated.drawer, "changed": updated.changed });
            (document, format!("{what} {id}\n"))
        }
        DrawerCommand::Delete { which, sure, key } => delete(engine, which, sure, key).await?,
        DrawerCommand::Taxonomy => {
            let wings = engine.taxonomy().await?;
            let drawers: u64 = wings.iter().map(|wing| wing.drawers).sum();
            let text = show::taxonomy(&wings);
            (json!({ "wings": wings, "drawers": drawers }), text)
        }
        DrawerCommand::WriteDiary { entry, key } => {
            let added = engine.write_diary(entry, key).await?;
            let text = format!("stored as {}\n", added.id);
            (json!(added), text)
        }
        DrawerCommand::WakeUp { names, budget } => {
            let woken = isolith_serve::wake_up(engine, &names, budget).await?;
            if woken.left_out > 0 {
                let lines = counted(u64::from(woken.left_out), "line");
                output.note(&format!("{lines} left out; --budget allows more"));
            }
            let WakeUp { wings, text, tokens, left_out, .. } = woken;
            let document =
                json!({ "wings": wings, "text": text, "tokens": tokens, "left_out": left_out });
            (document, text)
        }
        DrawerCommand::Checkpoint { checkpoint, key } => {
            let saved = engine.save_checkpoint(*checkpoint, key).await?;
            let mut text = format!(
                "saved {}, {}",
                counted(saved.drawers.len() as u64, "drawer"),
                counted(saved.facts.len() as u64, "fact")
            );
            text += if saved.diary.is_some() { " and a diary entry\n" } else { "\n" };
            (checkpoint_document(saved), text)
        }
        DrawerCommand::ReadDiary { agent, day, last } => {
            let entries = engine.read_diary(&agent, day, last).await?;
            let text = show::diary(&entries, &output.paint());
            (json!({ "agent": agent, "entries": entries }), text)
        }
    };
    output.result(&document, &text)
}

async fn add(
    engine: &Engine,
    drawer: NewDrawer,
    near: Option<f32>,
    key: Option<Key>,
) -> Result<(Value, String), Failure> {
    // Search before adding, or the drawer would find itself.
    let similar = match near {
        Some(threshold) => {
            let all = DrawerFilter::default();
            Some(engine.similar_drawers(&drawer.text, &all, threshold, SIMILAR).await?)
        }
        None => None,
    };
    let added = engine.add_drawers(vec![drawer], key).await?.into_iter().next();
    let added =
        added.ok_or_else(|| Failure::new(Code::Failed, "unexpected reply from the writer"))?;
    let mut text = match added.created {
        true => format!("stored as {}\n", added.id),
        false => format!("already exists as {}\n", added.id),
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
    let message = format!("no such drawer: {}{more}", named.join(", "));
    Failure::new(Code::NotFound, message).with_hint(Hint::ListDrawers)
}

async fn delete(
    engine: &Engine,
    which: WhichDrawers,
    sure: bool,
    key: Option<Key>,
) -> Result<(Value, String), Failure> {
    if let (false, WhichDrawers::Matching(filter)) = (sure, &which) {
        let (_, total) = engine.list_drawers(filter, DrawerPage::default()).await?;
        let message = format!("this would delete {} in all rooms", counted(total, "drawer"));
        return Err(Failure::new(Code::Usage, message)
            .with_hint("confirm with --yes, or narrow it with --room"));
    }
    let ids = match &which {
        WhichDrawers::Ids(ids) => ids.clone(),
        WhichDrawers::Matching(_) => Vec::new(),
    };
    let done = engine.delete_drawers(which, key).await?;
    if done.deleted == 0 && done.missing > 0 {
        return Err(nowhere(&ids.iter().collect::<Vec<_>>()));
    }
    let mut text = format!("deleted {}\n", counted(done.deleted, "drawer"));
    if done.missing > 0 {
        text += &format!("{} not found\n", counted(done.missing, "id"));
    }
    Ok((json!({ "deleted": done.deleted, "missing": done.missing }), text))
}
