//! Memory: drawers, and the diaries that agents keep in them.

mod import;

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
pub use import::{ImportOptions, ImportProgress, ImportReceipt, ImportWatcher};

/// The room that diaries are in.
pub const DIARY_ROOM: &str = "diary";

/// What became of drawers of which some could not be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadedDrawers {
    /// For each drawer what became of it, or why it was left out.
    pub drawers: Vec<Result<AddedDrawer, String>>,
    /// Whether this was answered from the receipt of an earlier time.
    pub repeated: bool,
}

/// A drawer after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatedDrawer {
    /// As it is now.
    pub drawer: Drawer,
    /// Whether it was another before.
    pub changed: bool,
}

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeletedDrawers {
    /// How many drawers went.
    pub deleted: u64,
    /// How many ids were not there.
    pub missing: u64,
}

impl Engine {
    /// Remembers texts, all or none of them. One that is there already is left alone.
    ///
    /// # Errors
    /// `bad_input` or `too_large` for a text or what stands around it, or what keeps it
    /// from being written.
    pub async fn add_drawers(
        &self,
        drawers: Vec<NewDrawer>,
        key: Option<Key>,
    ) -> Result<Vec<AddedDrawer>, Failure> {
        let vectors = DrawerVectors::default();
        let add = AddDrawers { drawers, skip_bad: false, vectors };
        Ok(self.write(add, key).await?.done.reply.drawers)
    }

    /// Remembers those texts that can be stored, and says what is wrong with the others.
    ///
    /// # Errors
    /// What keeps all of them from being written.
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

    /// Drawers by their ids, in this order; none where one is not there.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn drawers(&self, ids: Vec<String>) -> Result<Vec<Option<Drawer>>, Failure> {
        self.ask(GetDrawers { ids }).await
    }

    /// Drawers that a filter allows, and how many it allows. There may be fewer than the
    /// page has room for, if they are large.
    ///
    /// # Errors
    /// What keeps the store from being read.
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
    /// `not_found`, `already_exists` if another drawer has the new text, `bad_input`, or
    /// what keeps it from being written.
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

    /// Deletes drawers; all that a filter allows in several steps, if they are many.
    ///
    /// # Errors
    /// `bad_input` for a filter that allows everything, or what keeps it from being
    /// written.
    pub async fn delete_drawers(
        &self,
        which: WhichDrawers,
        key: Option<Key>,
    ) -> Result<DeletedDrawers, Failure> {
        let mut done = DeletedDrawers::default();
        let mut key = key;
        loop {
            let delete = DeleteDrawers { which: which.clone() };
            // A repeat of the first step goes on with the others.
            let slice = self.write(delete, key.take()).await?.done.reply;
            done.deleted += slice.deleted;
            done.missing += slice.missing;
            if !slice.more {
                return Ok(done);
            }
        }
    }

    /// All wings with their rooms, by name.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn taxonomy(&self) -> Result<Vec<Wing>, Failure> {
        self.ask(ListRooms).await
    }

    /// Drawers with nearly the same text: those whose vectors have at least this cosine.
    ///
    /// # Errors
    /// `bad_input` for a text without words, or what keeps the store from being read.
    pub async fn similar_drawers(
        &self,
        text: &str,
        filter: &DrawerFilter,
        threshold: f32,
        limit: u32,
    ) -> Result<Vec<SimilarDrawer>, Failure> {
        self.know_poisons().await;
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

    /// Adds an entry to an agent's diary, under this day or today. Each entry is kept, even
    /// if it says the same as another.
    ///
    /// # Errors
    /// As [`Engine::add_drawers`].
    pub async fn write_diary(
        &self,
        entry: DiaryEntry,
        key: Option<Key>,
    ) -> Result<AddedDrawer, Failure> {
        let DiaryEntry { agent, text, day, topic } = entry;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        // A repeat under the same key has to ask for the same.
        let source = match key {
            Some(key) => key.0.iter().fold("diary ".to_owned(), |mut source, byte| {
                // Writing to a string cannot fail.
                let _ = write!(source, "{byte:02x}");
                source
            }),
            None => format!("diary {}", Moment::instant(now)),
        };
        let drawer = NewDrawer {
            text,
            wing: agent.clone(),
            room: DIARY_ROOM.to_owned(),
            source: Some(source),
            author: Some(agent),
            date: Some(day.unwrap_or_else(|| Moment::day_of(now))),
            tags: topic.into_iter().collect(),
            ..NewDrawer::default()
        };
        let added = self.add_drawers(vec![drawer], key).await?;
        let nothing = || Failure::new(Code::Failed, "the writer skipped the entry");
        added.into_iter().next().ok_or_else(nothing)
    }

    /// The last entries of an agent's diary, of one day or of all, in the order of time.
    ///
    /// # Errors
    /// What keeps the store from being read.
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

/// An entry on its way into a diary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiaryEntry {
    /// Whose diary it is.
    pub agent: String,
    /// What happened.
    pub text: String,
    /// When, if not today (UTC).
    pub day: Option<Moment>,
    /// What it is about.
    pub topic: Option<String>,
}
