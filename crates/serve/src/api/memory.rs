//! Endpoints for memory.

use std::collections::BTreeMap;

use isolith_engine::MemoryHits;
use isolith_types::{DrawerHit, Failure, Wing};
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::{Endpoint, Verb};
use crate::arguments::NoArguments;
use crate::text::fit;
use crate::tool::Call;
use crate::tools::diary::{diary_read, diary_write};
use crate::tools::drawer::FullDrawer;
use crate::tools::import::memory_import;
use crate::tools::memory::{
    ListedDrawers, MemoryList, list_drawers, memory_add, memory_check_duplicate, memory_delete,
    memory_get, memory_update,
};
use crate::tools::recall::{NamedPeriod, SearchMemory, find_drawers};
use crate::tools::session::{memory_checkpoint, memory_wake_up};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut all = drawers();
    all.extend(others());
    all
}

fn drawers() -> Vec<Endpoint> {
    let search = "Search memory by a question or keywords";
    vec![
        Endpoint::new((Verb::Get, "/memory/search"), "memory_search", search, memory_search),
        Endpoint::new((Verb::Post, "/memory/search"), "memory_search_post", search, memory_search),
        Endpoint::new(
            (Verb::Post, "/memory/drawers"),
            "memory_add",
            "Store a text verbatim",
            memory_add,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/memory/drawers"),
            "memory_list",
            "List drawers, the newest first",
            memory_list,
        ),
        Endpoint::new(
            (Verb::Get, "/memory/drawers/{id}"),
            "memory_get",
            "Get a drawer",
            memory_get,
        ),
        Endpoint::new(
            (Verb::Patch, "/memory/drawers/{id}"),
            "memory_update",
            "Change a drawer; omitted fields are kept",
            memory_update,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Delete, "/memory/drawers/{id}"),
            "memory_delete",
            "Delete a drawer",
            deletion::by_id,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Delete, "/memory/drawers"),
            "memory_delete_source",
            "Delete all drawers from a source",
            deletion::by_source,
        )
        .keyed(),
    ]
}

fn others() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/memory/taxonomy"),
            "memory_taxonomy",
            "Count the drawers in each room of each wing",
            taxonomy,
        ),
        Endpoint::new(
            (Verb::Post, "/memory/duplicates"),
            "memory_check_duplicate",
            "Find drawers that are nearly identical to a text",
            memory_check_duplicate,
        ),
        Endpoint::new(
            (Verb::Post, "/memory/diaries/{agent}"),
            "diary_write",
            "Add an entry to an agent's diary",
            diary_write,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Get, "/memory/diaries/{agent}"),
            "diary_read",
            "Read the latest entries of an agent's diary, or those of a day",
            diary_read,
        ),
        Endpoint::new(
            (Verb::Get, "/memory/wake-up"),
            "memory_wake_up",
            "Say what is worth knowing when a session begins",
            memory_wake_up,
        ),
        Endpoint::new(
            (Verb::Post, "/memory/checkpoints"),
            "memory_checkpoint",
            "Store texts, facts and a diary entry of a session, all or nothing",
            memory_checkpoint,
        )
        .keyed(),
        Endpoint::new(
            (Verb::Post, "/memory/import"),
            "memory_import",
            "Import a file of conversations or notes",
            memory_import,
        )
        .job(),
    ]
}

async fn memory_search(call: Call, arguments: SearchMemory) -> Result<MemoryAnswer, Failure> {
    let budget = arguments.budget;
    let mut answer = MemoryAnswer::from(find_drawers(&call, arguments).await?);
    answer.cut = fit(&mut answer.hits, budget);
    Ok(answer)
}

#[derive(Serialize, JsonSchema)]
struct MemoryAnswer {
    hits: Vec<MemoryHitAnswer>,
    /// Whether nothing fits the query well.
    weak: bool,
    /// Why the answer is incomplete.
    degraded: Option<String>,
    /// What the budget left out.
    cut: Option<String>,
    /// The dates in the question: only drawers of that time were searched.
    period: Option<NamedPeriod>,
    took_ms: u64,
}

#[derive(Serialize, JsonSchema)]
struct MemoryHitAnswer {
    #[serde(flatten)]
    drawer: FullDrawer,
    /// The part of the text that fits best.
    passage: String,
    score: f32,
    /// Why it ranks where it does.
    why: Vec<String>,
}

impl From<MemoryHits> for MemoryAnswer {
    fn from(MemoryHits { hits, weak, period, degraded, took, .. }: MemoryHits) -> Self {
        let hit = |DrawerHit { drawer, passage, score, why }: DrawerHit| {
            let drawer = drawer.into();
            MemoryHitAnswer { drawer, passage, score, why }
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let period = period.map(NamedPeriod::from);
        let hits = hits.into_iter().map(hit).collect();
        Self { hits, weak, degraded, cut: None, period, took_ms }
    }
}

async fn memory_list(call: Call, arguments: MemoryList) -> Result<DrawerPage, Failure> {
    let ListedDrawers { drawers, total, next_cursor } = list_drawers(&call, arguments).await?;
    let drawers = drawers.into_iter().map(FullDrawer::from).collect();
    Ok(DrawerPage { drawers, total, next_cursor })
}

#[derive(Serialize, JsonSchema)]
struct DrawerPage {
    drawers: Vec<FullDrawer>,
    /// Number of drawers that match.
    total: u64,
    /// The cursor of the next page, if there is one.
    next_cursor: Option<String>,
}

/// Deletion by what is in the path or in the query.
mod deletion {
    use serde::Deserialize;

    use super::{Call, Failure, JsonSchema, memory_delete};
    use crate::tools::memory::{DrawersDeleted, MemoryDelete};

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Id {
        id: String,
    }

    pub(super) async fn by_id(call: Call, Id { id }: Id) -> Result<DrawersDeleted, Failure> {
        memory_delete(call, MemoryDelete { id: Some(id), source: None }).await
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Source {
        source: String,
    }

    pub(super) async fn by_source(
        call: Call,
        Source { source }: Source,
    ) -> Result<DrawersDeleted, Failure> {
        memory_delete(call, MemoryDelete { id: None, source: Some(source) }).await
    }
}

async fn taxonomy(call: Call, _: NoArguments) -> Result<Taxonomy, Failure> {
    let wings = match call.server.stores().memory()? {
        Some(engine) => engine.taxonomy().await?,
        None => Vec::new(),
    };
    let rooms = |Wing { name, rooms, .. }: Wing| {
        (name, rooms.into_iter().map(|room| (room.name, room.drawers)).collect())
    };
    Ok(Taxonomy { wings: wings.into_iter().map(rooms).collect() })
}

#[derive(Serialize, JsonSchema)]
struct Taxonomy {
    /// Number of drawers by wing and room.
    wings: BTreeMap<String, BTreeMap<String, u64>>,
}
