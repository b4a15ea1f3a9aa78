//! Tools for memory: verbatim texts (drawers) in wings and rooms.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isolith_engine::WhichDrawers;
use isolith_types::{
    AddedDrawer, Code, Drawer, DrawerFilter, DrawerPage, DrawerPatch, Failure, Hint, Moment,
    NewDrawer, SimilarDrawer, Wing, counted,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drawer::{FullDrawer, ListedDrawer, metadata};
use crate::arguments::offset;
use crate::text::round;
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};

/// Maximum size of a drawer's text in a list; `memory_get` returns all of it.
const LISTED_BYTES: usize = 600;

/// Default minimum similarity of near duplicates.
const NEAR_DUPLICATE: f32 = 0.9;

/// Maximum number of near duplicates in an answer.
const MAX_SIMILAR: u32 = 5;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_add",
            Effect::AddOnce,
            "Remember a text, word for word. Use it when the user says to remember or note something. For what can change (who, where, which version) use fact_add. Example: {\"text\":\"Ann prefers tabs.\",\"wing\":\"ann\",\"room\":\"style\"}",
            memory_add,
        ),
        Tool::new(
            "memory_get",
            Effect::Read,
            "Read one drawer (stored text) in full by its id. Use it when a hit of memory_search is cut. To find a drawer use memory_search. Example: {\"id\":\"572770faa99aecd2e02182df\"}",
            memory_get,
        ),
        Tool::new(
            "memory_list",
            Effect::Read,
            "List stored texts, newest first; without wing also all wings and rooms. Use it to see what is remembered, or from a date or source. To find a text by its content use memory_search. Example: {\"wing\":\"shop\",\"since\":\"2026-05-01\"}",
            memory_list,
        ),
        Tool::new(
            "memory_update",
            Effect::Change,
            "Correct or move a stored text; omitted fields are kept. Use it when a text is wrong or in the wrong room. For a new text use memory_add. Example: {\"id\":\"572770faa99aecd2e02182df\",\"room\":\"decisions\"}",
            memory_update,
        ),
        Tool::new(
            "memory_delete",
            Effect::Change,
            "Forget one stored text by id, or all from a source. Use it when the user asks to forget. To correct a text use memory_update. Example: {\"id\":\"572770faa99aecd2e02182df\"}",
            memory_delete,
        ),
        Tool::new(
            "memory_check_duplicate",
            Effect::Read,
            "Check whether a text, or nearly the same sentence, is already stored. Use it before adding many texts. For related texts use memory_search. Example: {\"text\":\"Ann prefers tabs.\"}",
            memory_check_duplicate,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryAdd {
    /// Verbatim
    text: String,
    /// Person or project
    wing: String,
    /// Topic
    room: String,
    /// File, URL
    source: Option<String>,
    /// Writer
    author: Option<String>,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
    /// To filter by
    #[serde(default)]
    tags: Vec<String>,
    /// More
    metadata: Option<JsonObject>,
}

pub(crate) async fn memory_add(call: Call, arguments: MemoryAdd) -> Result<DrawerAdded, Failure> {
    let drawer = NewDrawer {
        text: arguments.text,
        wing: arguments.wing,
        room: arguments.room,
        source: arguments.source,
        author: arguments.author,
        date: arguments.date,
        date_text: None,
        tags: arguments.tags,
        metadata: metadata(arguments.metadata)?.unwrap_or_default(),
    };
    let engine = call.server.stores().memory_to_write()?;
    let added = engine.add_drawers(vec![drawer], call.key).await?.pop();
    let added =
        added.ok_or_else(|| Failure::new(Code::Failed, "the writer did not return the drawer"))?;
    Ok(added.into())
}

/// The answer of `memory_add` and `diary_write`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DrawerAdded {
    id: String,
    created: bool,
    duplicate_of: Option<String>,
}

impl From<AddedDrawer> for DrawerAdded {
    fn from(added: AddedDrawer) -> Self {
        let AddedDrawer { id, created, duplicate_of } = added;
        Self { id, created, duplicate_of }
    }
}

impl ToolAnswer for DrawerAdded {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        match self.created {
            true => format!("stored as {}", self.id),
            false => format!("already stored as {}", self.id),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryGet {
    /// Id of the drawer
    id: String,
}

pub(crate) async fn memory_get(
    call: Call,
    MemoryGet { id }: MemoryGet,
) -> Result<FullDrawer, Failure> {
    let Some(engine) = call.server.stores().memory()? else { return Err(not_found(&id)) };
    let found = engine.drawers(vec![id.clone()]).await?.pop().flatten();
    found.map(FullDrawer::from).ok_or_else(|| not_found(&id))
}

fn not_found(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no drawer {id:?}")).with_hint(Hint::ListDrawers)
}

impl ToolAnswer for FullDrawer {
    fn text(&self) -> String {
        self.full_text()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryList {
    /// Person or project
    wing: Option<String>,
    /// Topic
    room: Option<String>,
    /// Exact source
    source: Option<String>,
    /// YYYY-MM-DD
    #[schemars(with = "Option<String>")]
    since: Option<Moment>,
    /// Date, inclusive
    #[schemars(with = "Option<String>")]
    until: Option<Moment>,
    /// 1-100, default 10
    limit: Option<u32>,
    /// A next_cursor
    cursor: Option<String>,
}

async fn memory_list(call: Call, arguments: MemoryList) -> Result<DrawerList, Failure> {
    let overview = arguments.wing.is_none() && arguments.cursor.is_none();
    let ListedDrawers { drawers, total, next_cursor } = list_drawers(&call, arguments).await?;
    let wings = match call.server.stores().memory()? {
        Some(engine) if overview => engine.taxonomy().await?,
        _ => Vec::new(),
    };
    Ok(DrawerList {
        drawers: drawers.into_iter().map(|it| ListedDrawer::of(it, LISTED_BYTES)).collect(),
        total,
        next_cursor,
        wings: wings.into_iter().map(rooms).collect(),
    })
}

/// A page of drawers.
#[derive(Default)]
pub(crate) struct ListedDrawers {
    pub(crate) drawers: Vec<Drawer>,
    pub(crate) total: u64,
    pub(crate) next_cursor: Option<String>,
}

/// Lists drawers, newest first; none if there is no store.
pub(crate) async fn list_drawers(
    call: &Call,
    arguments: MemoryList,
) -> Result<ListedDrawers, Failure> {
    let MemoryList { wing, room, source, since, until, limit, cursor } = arguments;
    let limit = call.limit(limit, Limits::RESULTS)?;
    let offset = offset(cursor.as_deref())?;
    let filter = DrawerFilter { wing, room, source, since, until, ..DrawerFilter::default() };
    let Some(engine) = call.server.stores().memory()? else { return Ok(ListedDrawers::default()) };
    let page = DrawerPage { offset, limit, ..DrawerPage::default() };
    let (drawers, total) = engine.list_drawers(&filter, page).await?;
    let next = offset.saturating_add(drawers.len() as u64);
    let next_cursor = (next < total && !drawers.is_empty()).then(|| next.to_string());
    Ok(ListedDrawers { drawers, total, next_cursor })
}

#[derive(Default, Serialize, JsonSchema)]
struct DrawerList {
    drawers: Vec<ListedDrawer>,
    total: u64,
    next_cursor: Option<String>,
    /// Number of drawers by wing and room.
    wings: BTreeMap<String, BTreeMap<String, u64>>,
}

fn rooms(wing: Wing) -> (String, BTreeMap<String, u64>) {
    (wing.name, wing.rooms.into_iter().map(|room| (room.name, room.drawers)).collect())
}

impl ToolAnswer for DrawerList {
    fn text(&self) -> String {
        let mut text = format!("{} of {}\n", self.drawers.len(), counted(self.total, "drawer"));
        for drawer in &self.drawers {
            let _ = writeln!(text, "{}", drawer.one_line());
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

    fn is_trusted(&self) -> bool {
        self.drawers.is_empty() && self.wings.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryUpdate {
    /// Id of the drawer
    id: String,
    /// New text
    text: Option<String>,
    /// New wing
    wing: Option<String>,
    /// New room
    room: Option<String>,
    /// New source
    source: Option<String>,
    /// New author
    author: Option<String>,
    /// New date
    #[schemars(with = "Option<String>")]
    date: Option<Moment>,
    /// Replace all tags
    tags: Option<Vec<String>>,
    /// Merged; null removes a key
    metadata: Option<JsonObject>,
}

pub(crate) async fn memory_update(
    call: Call,
    arguments: MemoryUpdate,
) -> Result<DrawerUpdated, Failure> {
    let patch = DrawerPatch {
        text: arguments.text,
        wing: arguments.wing,
        room: arguments.room,
        source: arguments.source,
        author: arguments.author,
        date: arguments.date.map(Some),
        date_text: None,
        tags: arguments.tags,
        metadata: metadata(arguments.metadata)?,
    };
    let Some(engine) = call.server.stores().memory()? else { return Err(not_found(&arguments.id)) };
    let updated = engine.update_drawer(&arguments.id, patch, call.key).await?;
    Ok(DrawerUpdated { id: updated.drawer.id, changed: updated.changed })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DrawerUpdated {
    id: String,
    changed: bool,
}

impl ToolAnswer for DrawerUpdated {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!("{} {}", self.id, if self.changed { "updated" } else { "unchanged" })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryDelete {
    /// Id of the drawer
    pub(crate) id: Option<String>,
    /// All drawers from this source
    pub(crate) source: Option<String>,
}

pub(crate) async fn memory_delete(
    call: Call,
    arguments: MemoryDelete,
) -> Result<DrawersDeleted, Failure> {
    let which = match (arguments.id, arguments.source) {
        (Some(id), None) => WhichDrawers::Ids(vec![id]),
        (None, Some(source)) => {
            WhichDrawers::Matching(DrawerFilter { source: Some(source), ..DrawerFilter::default() })
        }
        _ => return Err(Failure::new(Code::BadInput, "pass either id or source")),
    };
    let missing = u64::from(matches!(which, WhichDrawers::Ids(_)));
    let Some(engine) = call.server.stores().memory()? else {
        return Ok(DrawersDeleted { deleted: 0, missing });
    };
    let done = engine.delete_drawers(which, call.key).await?;
    Ok(DrawersDeleted { deleted: done.deleted, missing: done.missing })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DrawersDeleted {
    deleted: u64,
    missing: u64,
}

impl ToolAnswer for DrawersDeleted {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!("{} deleted, {} not found", self.deleted, self.missing)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryCheckDuplicate {
    /// The text to look for
    text: String,
    /// Only in this wing
    wing: Option<String>,
    /// Only in this room
    room: Option<String>,
    /// Default 0.9: 1 is the same words
    threshold: Option<f32>,
}

pub(crate) async fn memory_check_duplicate(
    call: Call,
    arguments: MemoryCheckDuplicate,
) -> Result<DuplicateCheck, Failure> {
    let MemoryCheckDuplicate { text, wing, room, threshold } = arguments;
    let threshold = threshold.unwrap_or(NEAR_DUPLICATE);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Failure::new(Code::BadInput, "threshold must be from 0 to 1"));
    }
    let filter = DrawerFilter { wing, room, ..DrawerFilter::default() };
    let Some(engine) = call.server.stores().memory()? else { return Ok(DuplicateCheck::default()) };
    let found = engine.similar_drawers(&text, &filter, threshold, MAX_SIMILAR).await?;
    let similar: Vec<SimilarText> = found.into_iter().map(SimilarText::from).collect();
    Ok(DuplicateCheck { duplicate: !similar.is_empty(), similar })
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct DuplicateCheck {
    duplicate: bool,
    similar: Vec<SimilarText>,
}

#[derive(Serialize, JsonSchema)]
struct SimilarText {
    id: String,
    wing: String,
    room: String,
    text: String,
    similarity: f64,
}

impl From<SimilarDrawer> for SimilarText {
    fn from(found: SimilarDrawer) -> Self {
        let SimilarDrawer { drawer, similarity } = found;
        let ListedDrawer { id, wing, room, text, .. } = ListedDrawer::of(drawer, LISTED_BYTES);
        Self { id, wing, room, text, similarity: round(f64::from(similarity)) }
    }
}

impl ToolAnswer for DuplicateCheck {
    fn text(&self) -> String {
        if self.similar.is_empty() {
            return "no similar text found".to_owned();
        }
        let line = |it: &SimilarText| {
            format!("{:.3} {} [{}/{}]\n", it.similarity, it.id, it.wing, it.room)
        };
        self.similar.iter().map(line).collect()
    }

    fn is_trusted(&self) -> bool {
        self.similar.is_empty()
    }
}
