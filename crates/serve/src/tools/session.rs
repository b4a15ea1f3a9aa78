//! Tools for the beginning and the end of a session.

use isolith_engine::{Checkpoint, DiaryEntry, SavedCheckpoint};
use isolith_types::{Code, Failure, Moment, NewDrawer, NewFact, Provenance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::memory::DrawerAdded;
use crate::tool::{Call, Effect, Tool, ToolAnswer};
use crate::wake_up::{WAKE_UP_BUDGET, WAKE_UP_BUDGETS, WakeUp, nothing_known, wake_up};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_wake_up",
            Effect::Read,
            "Return what to know before work begins: project, open ends, decisions, facts. Use it when a session begins. For a question use memory_search. Example: {}",
            memory_wake_up,
        ),
        Tool::new(
            "memory_checkpoint",
            Effect::Add,
            "Save the texts, facts and diary entry of a session, all or nothing. Use it when work is done or context runs out. For one text use memory_add. Example: {\"wing\":\"shop\",\"diary\":\"Chose SQLite.\"}",
            memory_checkpoint,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WakeUpArguments {
    /// Default: this project
    wing: Option<String>,
    /// Tokens, default 700
    budget: Option<u32>,
}

pub(crate) async fn memory_wake_up(
    call: Call,
    arguments: WakeUpArguments,
) -> Result<WakeUpAnswer, Failure> {
    let stores = call.server.stores();
    let names = match arguments.wing {
        Some(wing) => vec![wing],
        None => stores.project_names(),
    };
    let budget = arguments.budget.unwrap_or(WAKE_UP_BUDGET);
    if !WAKE_UP_BUDGETS.contains(&budget) {
        let (least, most) = (WAKE_UP_BUDGETS.start(), WAKE_UP_BUDGETS.end());
        let message = format!("budget must be from {least} to {most} tokens, not {budget}");
        return Err(Failure::new(Code::BadInput, message));
    }
    let woken = match stores.memory()? {
        Some(engine) => wake_up(&engine, &names, budget).await?,
        None => nothing_known(&names),
    };
    Ok(woken.into())
}

/// The answer of `memory_wake_up`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WakeUpAnswer {
    wings: Vec<String>,
    text: String,
    tokens: u32,
    /// Lines that the budget left out.
    left_out: u32,
}

impl From<WakeUp> for WakeUpAnswer {
    fn from(woken: WakeUp) -> Self {
        let WakeUp { wings, text, tokens, left_out, .. } = woken;
        Self { wings, text, tokens, left_out }
    }
}

impl ToolAnswer for WakeUpAnswer {
    // What others wrote is marked in the text itself.
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        match self.left_out {
            0 => self.text.clone(),
            lines => format!("{}{lines} lines left out: raise budget\n", self.text),
        }
    }
}

/// What a session leaves behind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionCheckpoint {
    /// Person or project
    wing: String,
    /// Texts
    #[serde(default)]
    drawers: Vec<CheckpointDrawer>,
    /// Statements
    #[serde(default)]
    facts: Vec<CheckpointFact>,
    /// Done and next
    diary: Option<String>,
    /// Your name
    agent: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckpointDrawer {
    /// Verbatim
    text: String,
    /// Topic
    room: String,
    /// e.g. todo
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckpointFact {
    /// Who or what
    subject: String,
    /// e.g. works_at
    predicate: String,
    /// Whom or what
    object: String,
    /// Date
    #[schemars(with = "Option<String>")]
    valid_from: Option<Moment>,
}

/// Who keeps the diary if nobody is named.
const AGENT: &str = "agent";

impl From<SessionCheckpoint> for Checkpoint {
    fn from(given: SessionCheckpoint) -> Self {
        let SessionCheckpoint { wing, drawers, facts, diary, agent } = given;
        let agent = agent.unwrap_or_else(|| AGENT.to_owned());
        let drawer = |CheckpointDrawer { text, room, tags }| NewDrawer {
            text,
            room,
            tags,
            wing: wing.clone(),
            ..NewDrawer::default()
        };
        let fact = |CheckpointFact { subject, predicate, object, valid_from }| NewFact {
            subject,
            predicate,
            object,
            valid_from,
            provenance: Provenance { agent: Some(agent.clone()), ..Provenance::default() },
            ..NewFact::default()
        };
        Self {
            drawers: drawers.into_iter().map(drawer).collect(),
            facts: facts.into_iter().map(fact).collect(),
            diary: diary.map(|text| DiaryEntry {
                agent: agent.clone(),
                text,
                day: None,
                // So that it is found when the next session in this project begins.
                topic: Some(wing.clone()),
            }),
        }
    }
}

/// Reads a checkpoint as the tool takes it, from JSON.
///
/// # Errors
/// `bad_input` if it is not valid.
pub fn read_checkpoint(json: &str) -> Result<Checkpoint, Failure> {
    let parsed: Result<SessionCheckpoint, _> = serde_json::from_str(json);
    let given = parsed.map_err(|error| {
        Failure::new(Code::BadInput, format!("invalid checkpoint: {error}")).with_hint(
            "a checkpoint is {\"wing\", \"drawers\": [{\"text\", \"room\"}], \"facts\": \
             [{\"subject\", \"predicate\", \"object\"}], \"diary\"}",
        )
    })?;
    Ok(given.into())
}

/// What was stored, as JSON.
pub fn checkpoint_document(saved: SavedCheckpoint) -> Value {
    serde_json::to_value(CheckpointAnswer::from(saved)).unwrap_or_default()
}

pub(crate) async fn memory_checkpoint(
    call: Call,
    arguments: SessionCheckpoint,
) -> Result<CheckpointAnswer, Failure> {
    let engine = call.server.stores().memory_to_write()?;
    let saved = engine.save_checkpoint(arguments.into(), call.key).await?;
    Ok(saved.into())
}

/// The answer of `memory_checkpoint`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointAnswer {
    drawers: Vec<DrawerAdded>,
    facts: Vec<FactStored>,
    /// The id of the diary entry.
    diary: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct FactStored {
    id: String,
    created: bool,
}

impl From<SavedCheckpoint> for CheckpointAnswer {
    fn from(saved: SavedCheckpoint) -> Self {
        let SavedCheckpoint { drawers, facts, diary } = saved;
        let fact =
            |fact: isolith_types::AddedFact| FactStored { id: fact.id, created: fact.created };
        Self {
            drawers: drawers.into_iter().map(DrawerAdded::from).collect(),
            facts: facts.into_iter().map(fact).collect(),
            diary: diary.map(|entry| entry.id),
        }
    }
}

impl ToolAnswer for CheckpointAnswer {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let diary = if self.diary.is_some() { ", a diary entry" } else { "" };
        format!("saved: {} drawers, {} facts{diary}", self.drawers.len(), self.facts.len())
    }
}
