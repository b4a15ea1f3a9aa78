//! Agent memory: drawers and diaries.

mod checkpoint;
mod import;
mod wake_up;

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use isolith_protocol::{
    AddDrawers, DeleteDrawers, Done, DrawerList, DrawerVectors, FindSimilarDrawers, GetDrawers,
    Key, ListDrawers, ListRooms, MEMORY_COLLECTION, SimilarFound, UpdateDrawer, WhichDrawers,
};
use isolith_types::{
    AddedDrawer, Code, Drawer, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, Failure, Moment,
    NewDrawer, SimilarDrawer, Wing,
};

use crate::open::Engine;
pub use checkpoint::{Checkpoint, SavedCheckpoint};
pub use import::{DurableListener, ImportOptions, ImportProgress, ImportReceipt, ImportWatcher};
pub use wake_up::{Recollection, project_names};

/// The room for diaries.
pub const DIARY_ROOM: &str = "diary";

/// The result of loading drawers, some of which may be rejected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedDrawers {
    /// The outcome for each drawer, or why it was rejected.
    pub drawers: Vec<Result<AddedDrawer, String>>,
    /// Whether the result comes from the receipt of an earlier call.
    pub repeated: bool,
}

/// A drawer after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedDrawer {
    /// Its new state.
    pub drawer: Drawer,
    /// Whether the update changed anything.
    pub changed: bool,
}

/// The result of deleting drawers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeletedDrawers {
    /// Number of deleted drawers.
    pub deleted: u64,
    /// Number of ids that were not found.
    pub missing: u64,
}

impl Engine {
    /// Stores texts, all or none of them. Existing ones are left unchanged.
    ///
    /// # Errors
    /// `bad_input` or `too_large` for a text or its metadata; any error of a write.
    pub async fn add_drawers(
        &self,
        drawers: Vec<NewDrawer>,
        key: Option<Key>,
    ) -> Result<Vec<AddedDrawer>, Failure> {
        let vectors = DrawerVectors::default();
        let add = AddDrawers { drawers, skip_bad: false, vectors };
        Ok(self.write(add, key).await?.done.reply.drawers)
    }

    /// Stores the valid texts and reports what is wrong with the others.
    ///
    /// # Errors
    /// Any error of a write that affects all of them.
    pub async fn load_drawers(
        &self,
        drawers: Vec<NewDrawer>,
        key: Option<Key>,
    ) -> Result<LoadedDrawers, Failure> {
        let count = drawers.len() as u64;
        let vectors = DrawerVectors::default();
        let add = AddDrawers { drawers, skip_bad: true, vectors };
        let Done { reply, repeated, .. } = self.write(add, key).await?.done;
        let mut rejected = reply.rejected.into_iter().peekable();
        let mut added = reply.drawers.into_iter();
        let drawers = (0..count).filter_map(|at| match rejected.next_if(|(row, _)| *row == at) {
            Some((_, reason)) => Some(Err(reason)),
            None => added.next().map(Ok),
        });
        Ok(LoadedDrawers { drawers: drawers.collect(), repeated })
    }

    /// Reads drawers in the order of the given ids; `None` for those that do not exist.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn drawers(&self, ids: Vec<String>) -> Result<Vec<Option<Drawer>>, Failure> {
        self.ask(GetDrawers { ids }).await
    }

    /// Lists a page of the drawers that match a filter, and their total number. A page of
    /// large drawers may be shorter than requested.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn list_drawers(
        &self,
        filter: &DrawerFilter,
        page: DrawerPage,
    ) -> Result<(Vec<Drawer>, u64), Failure> {
        let list = ListDrawers { filter: filter.clone(), page };
        let DrawerList { drawers, total } = self.ask(list).await?;
        Ok((drawers, total))
    }

    /// Changes a drawer.
    ///
    /// # Errors
    /// `not_found`, `already_exists` if another drawer has the new text, `bad_input`; any
    /// error of a write.
    pub async fn update_drawer(
        &self,
        id: &str,
        patch: DrawerPatch,
        key: Option<Key>,
    ) -> Result<UpdatedDrawer, Failure> {
        let (patch, vectors) = (Box::new(patch), DrawerVectors::default());
        let update = UpdateDrawer { id: id.to_owned(), patch, vectors };
        let changed = self.write(update, key).await?.done.reply.updated > 0;
        let drawer = self.drawers(vec![id.to_owned()]).await?.pop().flatten();
        let drawer = drawer.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("drawer {id:?} has just been deleted"))
        })?;
        Ok(UpdatedDrawer { drawer, changed })
    }

    /// Deletes drawers by id or filter, in several transactions if there are many.
    ///
    /// # Errors
    /// `bad_input` for a filter that matches everything; any error of a write.
    pub async fn delete_drawers(
        &self,
        which: WhichDrawers,
        key: Option<Key>,
    ) -> Result<DeletedDrawers, Failure> {
        let mut done = DeletedDrawers::default();
        let mut key = key;
        loop {
            let delete = DeleteDrawers { which: which.clone() };
            // Only the first transaction has the key: a repeated call continues with the rest.
            let slice = self.write(delete, key.take()).await?.done.reply;
            done.deleted += slice.deleted;
            done.missing += slice.missing;
            if !slice.more {
                return Ok(done);
            }
        }
    }

    /// Lists all wings and their rooms, by name.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn taxonomy(&self) -> Result<Vec<Wing>, Failure> {
        self.ask(ListRooms).await
    }

    /// Finds near-duplicates: drawers whose vectors have at least this cosine similarity.
    ///
    /// # Errors
    /// `bad_input` for a text without words; any error of a read.
    pub async fn similar_drawers(
        &self,
        text: &str,
        filter: &DrawerFilter,
        threshold: f32,
        limit: u32,
    ) -> Result<Vec<SimilarDrawer>, Failure> {
        self.load_quarantine().await;
        let (text, filter) = (text.to_owned(), filter.clone());
        let search = FindSimilarDrawers { text, filter, threshold, limit };
        let answered = self.ask_for(search).await?;
        let SimilarFound { drawers, searched } = answered.reply;
        if searched.quarantined {
            self.fold_later(MEMORY_COLLECTION);
        }
        self.quarantine_segments(MEMORY_COLLECTION, &searched, answered.blamed).await;
        Ok(drawers)
    }

    /// Adds an entry to an agent's diary, for the given day or today. Entries with equal text
    /// are stored separately.
    ///
    /// # Errors
    /// As [`Engine::add_drawers`].
    pub async fn write_diary(
        &self,
        entry: DiaryEntry,
        key: Option<Key>,
    ) -> Result<AddedDrawer, Failure> {
        let drawer = entry.into_drawer(key);
        let added = self.add_drawers(vec![drawer], key).await?;
        let nothing = || Failure::new(Code::Failed, "the writer skipped the entry");
        added.into_iter().next().ok_or_else(nothing)
    }

    /// Reads the latest entries of an agent's diary, of one day or all, in chronological order.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn read_diary(
        &self,
        agent: &str,
        day: Option<Moment>,
        last: u32,
    ) -> Result<Vec<Drawer>, Failure> {
        let filter = DrawerFilter {
            wing: Some(agent.to_owned()),
            room: Some(DIARY_ROOM.to_owned()),
            since: day,
            until: day,
            ..DrawerFilter::default()
        };
        let page = DrawerPage { order: DrawerOrder::Newest, limit: last, ..DrawerPage::default() };
        let (mut entries, _) = self.list_drawers(&filter, page).await?;
        entries.reverse();
        Ok(entries)
    }
}

/// A new diary entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiaryEntry {
    /// The agent who keeps the diary.
    pub agent: String,
    /// What happened.
    pub text: String,
    /// The day; by default today (UTC).
    pub day: Option<Moment>,
    /// The topic.
    pub topic: Option<String>,
}

impl DiaryEntry {
    /// The drawer in which the entry is stored.
    fn into_drawer(self, key: Option<Key>) -> NewDrawer {
        let Self { agent, text, day, topic } = self;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        // A repeat with the same key must send the same request.
        let source = match key {
            Some(key) => key.0.iter().fold("diary ".to_owned(), |mut source, byte| {
                // Writing to a string cannot fail.
                let _ = write!(source, "{byte:02x}");
                source
            }),
            None => format!("diary {}", Moment::instant(now)),
        };
        NewDrawer {
            text,
            wing: agent.clone(),
            room: DIARY_ROOM.to_owned(),
            source: Some(source),
            author: Some(agent),
            date: Some(day.unwrap_or_else(|| Moment::day_of(now))),
            tags: topic.into_iter().collect(),
            ..NewDrawer::default()
        }
    }
}
