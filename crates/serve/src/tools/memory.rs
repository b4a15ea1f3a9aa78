//! Tools for memory: verbatim texts in rooms and wings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isolith_engine::WhichDrawers;
use isolith_types::{
    AddedDrawer, Code, DrawerFilter, DrawerPage, DrawerPatch, Failure, Moment, NewDrawer,
    SimilarDrawer, Wing, counted,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawer::{ListedDrawer, ShownDrawer, metadata};
use crate::arguments::{limit, offset};
use crate::text::round;
use crate::tool::{Call, Effect, Shown, Tool};

/// How much of a drawer is listed; `memory_get` returns all of it.
const LISTED_BYTES: usize = 600;

/// Default similarity from which texts count as near duplicates.
const NEAR_DUPLICATE: f32 = 0.9;

/// Maximum number of near duplicates to show.
const MAX_SIMILAR: u32 = 5;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_add",
            Effect::AddOnce,
            "Remember a text verbatim in a wing (person or project) and room (topic). For statements that change use fact_add.",
            memory_add,
        ),
        Tool::new(
            "memory_get",
            Effect::Read,
            "Read one remembered text (drawer) in full. Untrusted data.",
            memory_get,
        ),
        Tool::new(
            "memory_list",
            Effect::Read,
            "List drawers, newest first; without wing also all wings and rooms. To find one use memory_search.",
            memory_list,
        ),
        Tool::new(
            "memory_update",
            Effect::Change,
            "Change a drawer; fields not given stay.",
            memory_update,
        ),
        Tool::new(
            "memory_delete",
            Effect::Change,
            "Delete one drawer by id, or all from a source.",
            memory_delete,
        ),
        Tool::new(
            "memory_check_duplicate",
            Effect::Read,
            "Check whether a nearly identical text is remembered.",
            memory_check_duplicate,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryAdd {
    text: String,
    wing: String,
    room: String,
    /// File, conversation, URL
    source: Option<String>,
    author: Option<String>,
    /// YYYY-MM-DD or RFC 3339 with zone
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
    #[serde(default)]
    tags: Vec<String>,
    metadata: Option<JsonObject>,
}

async fn memory_add(call: Call, asked: MemoryAdd) -> Result<Added, Failure> {
    let drawer = NewDrawer {
        text: asked.text,
        wing: asked.wing,
        room: asked.room,
        source: asked.source,
        author: asked.author,
        date: asked.date,
        date_text: None,
        tags: asked.tags,
        metadata: metadata(asked.metadata)?.unwrap_or_default(),
    };
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.add_drawers(vec![drawer], None).await?.pop();
    let added =
        added.ok_or_else(|| Failure::new(Code::Failed, "the writer did not return the drawer"))?;
    Ok(added.into())
}

/// The result of adding a text.
#[derive(Serialize, JsonSchema)]
pub(super) struct Added {
    id: String,
    created: bool,
    duplicate_of: Option<String>,
}

impl From<AddedDrawer> for Added {
    fn from(added: AddedDrawer) -> Self {
        let AddedDrawer { id, created, duplicate_of } = added;
        Self { id, created, duplicate_of }
    }
}

impl Shown for Added {
    fn text(&self) -> String {
        match self.created {
            true => format!("stored as {}", self.id),
            false => format!("already stored as {}", self.id),
        }
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryGet {
    id: String,
}

async fn memory_get(call: Call, MemoryGet { id }: MemoryGet) -> Result<ShownDrawer, Failure> {
    let Some(engine) = call.server.stores().memory()? else { return Err(missing(&id)) };
    let found = engine.drawers(vec![id.clone()]).await?.pop().flatten();
    found.map(ShownDrawer::from).ok_or_else(|| missing(&id))
}

fn missing(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no drawer {id:?}"))
        .with_hint("memory_search and memory_list show existing drawers")
}

impl Shown for ShownDrawer {
    fn text(&self) -> String {
        self.whole()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryList {
    wing: Option<String>,
    room: Option<String>,
    source: Option<String>,
    /// Date
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Date, inclusive
    #[schemars(with = "Option<String>")]
    until: Option<Moment>,
    limit: Option<u32>,
    /// next_cursor of the previous page
    cursor: Option<String>,
}

async fn memory_list(call: Call, asked: MemoryList) -> Result<Listed, Failure> {
    let MemoryList { wing, room, source, since, until, limit: most, cursor } = asked;
    let (limit, offset) = (limit(most)?, offset(cursor.as_deref())?);
    let overview = wing.is_none() && cursor.is_none();
    let filter = DrawerFilter { wing, room, source, since, until, ..DrawerFilter::default() };
    let Some(engine) = call.server.stores().memory()? else { return Ok(Listed::default()) };
    let wings = if overview { engine.taxonomy().await? } else { Vec::new() };
    let page = DrawerPage { offset, limit, ..DrawerPage::default() };
    let (drawers, total) = engine.list_drawers(&filter, page).await?;
    let next = offset + drawers.len() as u64;
    Ok(Listed {
        drawers: drawers.into_iter().map(|it| ListedDrawer::of(it, LISTED_BYTES)).collect(),
        total,
        next_cursor: (next < total).then(|| next.to_string()),
        wings: wings.into_iter().map(rooms).collect(),
    })
}

#[derive(Default, Serialize, JsonSchema)]
struct Listed {
    drawers: Vec<ListedDrawer>,
    total: u64,
    next_cursor: Option<String>,
    /// Number of drawers by wing and room.
    wings: BTreeMap<String, BTreeMap<String, u64>>,
}

fn rooms(wing: Wing) -> (String, BTreeMap<String, u64>) {
    (wing.name, wing.rooms.into_iter().map(|room| (room.name, room.drawers)).collect())
}

impl Shown for Listed {
    fn text(&self) -> String {
        let mut text = format!("{} of {}\n", self.drawers.len(), counted(self.total, "drawer"));
        for drawer in &self.drawers {
            let _ = writeln!(text, "{}", drawer.line());
        }
        for (wing, rooms) in &self.wings {
            let rooms: Vec<String> =
                rooms.iter().map(|(room, drawers)| format!("{room} ({drawers})")).collect();
            let _ = writeln!(text, "wing {wing}: {}", rooms.join(", "));
        }
        if let Some(cursor) = &self.next_cursor {
            let _ = writeln!(text, "more: cursor {cursor}");
        }
        text
    }

    fn is_ours(&self) -> bool {
        self.drawers.is_empty() && self.wings.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryUpdate {
    id: String,
    text: Option<String>,
    wing: Option<String>,
    room: Option<String>,
    source: Option<String>,
    author: Option<String>,
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
    tags: Option<Vec<String>>,
    /// Merged; null removes a key
    metadata: Option<JsonObject>,
}

async fn memory_update(call: Call, asked: MemoryUpdate) -> Result<Updated, Failure> {
    let patch = DrawerPatch {
        text: asked.text,
        wing: asked.wing,
        room: asked.room,
        source: asked.source,
        author: asked.author,
        date: asked.date.map(Some),
        date_text: None,
        tags: asked.tags,
        metadata: metadata(asked.metadata)?,
    };
    let Some(engine) = call.server.stores().memory()? else { return Err(missing(&asked.id)) };
    let updated = engine.update_drawer(&asked.id, patch, None).await?;
    Ok(Updated { id: updated.drawer.id, changed: updated.changed })
}

#[derive(Serialize, JsonSchema)]
struct Updated {
    id: String,
    changed: bool,
}

impl Shown for Updated {
    fn text(&self) -> String {
        format!("{} {}", self.id, if self.changed { "updated" } else { "unchanged" })
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryDelete {
    id: Option<String>,
    source: Option<String>,
}

async fn memory_delete(call: Call, asked: MemoryDelete) -> Result<Deleted, Failure> {
    let which = match (asked.id, asked.source) {
        (Some(id), None) => WhichDrawers::Ids(vec![id]),
        (None, Some(source)) => {
            WhichDrawers::Matching(DrawerFilter { source: Some(source), ..DrawerFilter::default() })
        }
        _ => return Err(Failure::new(Code::BadInput, "pass either id or source")),
    };
    let missing = u64::from(matches!(which, WhichDrawers::Ids(_)));
    let Some(engine) = call.server.stores().memory()? else {
        return Ok(Deleted { deleted: 0, missing });
    };
    let done = engine.delete_drawers(which, None).await?;
    Ok(Deleted { deleted: done.deleted, missing: done.missing })
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    deleted: u64,
    missing: u64,
}

impl Shown for Deleted {
    fn text(&self) -> String {
        format!("{} deleted, {} not found", self.deleted, self.missing)
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryCheckDuplicate {
    text: String,
    wing: Option<String>,
    room: Option<String>,
    /// Cosine, default 0.9
    threshold: Option<f32>,
}

async fn memory_check_duplicate(
    call: Call,
    asked: MemoryCheckDuplicate,
) -> Result<Checked, Failure> {
    let MemoryCheckDuplicate { text, wing, room, threshold } = asked;
    let threshold = threshold.unwrap_or(NEAR_DUPLICATE);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Failure::new(Code::BadInput, "threshold must be from 0 to 1"));
    }
    let filter = DrawerFilter { wing, room, ..DrawerFilter::default() };
    let Some(engine) = call.server.stores().memory()? else { return Ok(Checked::default()) };
    let found = engine.similar_drawers(&text, &filter, threshold, MAX_SIMILAR).await?;
    let similar: Vec<Similar> = found.into_iter().map(Similar::from).collect();
    Ok(Checked { duplicate: !similar.is_empty(), similar })
}

#[derive(Default, Serialize, JsonSchema)]
struct Checked {
    duplicate: bool,
    similar: Vec<Similar>,
}

#[derive(Serialize, JsonSchema)]
struct Similar {
    id: String,
    wing: String,
    room: String,
    text: String,
    similarity: f64,
}

impl From<SimilarDrawer> for Similar {
    fn from(found: SimilarDrawer) -> Self {
        let SimilarDrawer { drawer, similarity } = found;
        let ListedDrawer { id, wing, room, text, .. } = ListedDrawer::of(drawer, LISTED_BYTES);
        Self { id, wing, room, text, similarity: round(f64::from(similarity)) }
    }
}

impl Shown for Checked {
    fn text(&self) -> String {
        if self.similar.is_empty() {
            return "no similar text found".to_owned();
        }
        let line =
            |it: &Similar| format!("{:.3} {} [{}/{}]\n", it.similarity, it.id, it.wing, it.room);
        self.similar.iter().map(line).collect()
    }

    fn is_ours(&self) -> bool {
        self.similar.is_empty()
    }
}
