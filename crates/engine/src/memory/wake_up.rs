//! Gathers what is worth knowing when a session begins.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use isolith_folder::git::{Worktree, repository_top};
use isolith_types::{
    Drawer, DrawerFilter, DrawerPage, EntityQuery, Fact, FactQuery, Failure, Moment, Wing,
};

use super::DIARY_ROOM;
use crate::open::Engine;

/// Rooms whose drawers say what a project is.
const ABOUT_ROOMS: [&str; 4] = ["about", "overview", "project", "readme"];

/// Tag of drawers that say so in another room.
const ABOUT_TAG: &str = "about";

/// How many drawers are read of each wing, of diaries, and of what a project is.
const RECENT: u32 = 60;
const DIARY_ENTRIES: u32 = 20;
const ABOUT: u32 = 3;

/// How many entities are looked for in recent drawers, how many of those found count, and how many
/// facts of each.
const ENTITIES: u32 = 1_000;
const MENTIONED: usize = 8;
const FACTS_EACH: u32 = 6;

/// What memory has about a project.
#[derive(Debug, Clone, Default)]
pub struct Recollection {
    /// Its wings with their sizes.
    pub wings: Vec<Wing>,
    /// Drawers that say what it is.
    pub about: Vec<Drawer>,
    /// Diary entries about it, or the last one of all if there are none; newest first.
    pub diary: Vec<Drawer>,
    /// Its last drawers, newest first, without those above.
    pub recent: Vec<Drawer>,
    /// Current facts about it, and about entities that recent drawers mention.
    pub facts: Vec<Fact>,
}

impl Recollection {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        let Self { wings: _, about, diary, recent, facts } = self;
        about.is_empty() && diary.is_empty() && recent.is_empty() && facts.is_empty()
    }
}

/// The names under which a folder's project may be remembered: of the folder, of its repository,
/// and of the main checkout if it is a linked worktree.
pub fn project_names(folder: &Path) -> Vec<String> {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let top = repository_top(&folder);
    let worktree = top.and_then(Worktree::of);
    let main = worktree.as_ref().and_then(|worktree| worktree.main_checkout());
    let mut names: Vec<String> = Vec::new();
    for folder in [Some(folder.as_path()), top, main].into_iter().flatten() {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    names
}

impl Engine {
    /// Gathers what memory has about the project with one of these names.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn recollect(&self, names: &[String]) -> Result<Recollection, Failure> {
        let mut wings = self.taxonomy().await?;
        wings.retain(|wing| names.contains(&wing.name));
        let mut found = Recollection { wings, ..Recollection::default() };
        for wing in &found.wings {
            let of_wing = |room: Option<&str>, tags: Vec<String>| DrawerFilter {
                wing: Some(wing.name.clone()),
                room: room.map(str::to_owned),
                tags,
                ..DrawerFilter::default()
            };
            found.recent.extend(self.newest(of_wing(None, Vec::new()), RECENT).await?);
            let about =
                ABOUT_ROOMS.iter().filter(|room| wing.rooms.iter().any(|it| it.name == **room));
            for room in about {
                found.about.extend(self.newest(of_wing(Some(room), Vec::new()), ABOUT).await?);
            }
        }
        found.recent.sort_by_key(|drawer| std::cmp::Reverse(time_of(drawer)));
        found.take_tagged();
        found.diary = self.diaries_about(names).await?;
        found.facts = self.facts_around(names, &found).await?;
        let named: BTreeSet<&str> =
            found.about.iter().chain(&found.diary).map(|drawer| drawer.id.as_str()).collect();
        found.recent.retain(|drawer| !named.contains(drawer.id.as_str()));
        Ok(found)
    }

    async fn newest(&self, filter: DrawerFilter, limit: u32) -> Result<Vec<Drawer>, Failure> {
        let page = DrawerPage { limit, ..DrawerPage::default() };
        Ok(self.list_drawers(&filter, page).await?.0)
    }

    /// The last diary entries that concern a project, by topic or by name; else the last one.
    async fn diaries_about(&self, names: &[String]) -> Result<Vec<Drawer>, Failure> {
        let room = Some(DIARY_ROOM.to_owned());
        let filter = DrawerFilter { room, ..DrawerFilter::default() };
        let mut entries = self.newest(filter, DIARY_ENTRIES).await?;
        let concerns = |entry: &Drawer| {
            entry.tags.iter().any(|tag| names.contains(tag))
                || names.iter().any(|name| mentions(&entry.text, name))
        };
        match entries.iter().any(concerns) {
            true => entries.retain(concerns),
            false => entries.truncate(1),
        }
        Ok(entries)
    }

    /// Current facts about the project, and about entities that were mentioned recently.
    async fn facts_around(
        &self,
        names: &[String],
        found: &Recollection,
    ) -> Result<Vec<Fact>, Failure> {
        let query = EntityQuery { limit: ENTITIES, ..EntityQuery::default() };
        let known = self.entities(&query).await?;
        let texts = || found.about.iter().chain(&found.recent).chain(&found.diary);
        let is_named = |name: &String| names.iter().any(|it| it.eq_ignore_ascii_case(name));
        let (own, others): (Vec<_>, Vec<_>) = known.into_iter().partition(|it| is_named(&it.name));
        let mentioned =
            others.into_iter().filter(|it| texts().any(|text| mentions(&text.text, &it.name)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Moment::instant(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let mut facts: Vec<Fact> = Vec::new();
        for entity in own.into_iter().chain(mentioned).take(MENTIONED) {
            let query = FactQuery {
                entity: Some(entity.name),
                as_of: Some(now),
                limit: FACTS_EACH,
                ..FactQuery::default()
            };
            for fact in self.query_facts(&query).await? {
                if !facts.iter().any(|it| it.id == fact.id) {
                    facts.push(fact);
                }
            }
        }
        Ok(facts)
    }
}

impl Recollection {
    /// Moves drawers that a tag marks to those that say what the project is.
    fn take_tagged(&mut self) {
        let is_tagged =
            |drawer: &Drawer| drawer.tags.iter().any(|tag| tag.eq_ignore_ascii_case(ABOUT_TAG));
        let tagged = self.recent.iter().filter(|drawer| is_tagged(drawer));
        for drawer in tagged {
            if !self.about.iter().any(|it| it.id == drawer.id) {
                self.about.push(drawer.clone());
            }
        }
        self.about.truncate(ABOUT as usize);
    }
}

/// When a drawer was written, or stored if it has no date.
fn time_of(drawer: &Drawer) -> i64 {
    drawer.date.unwrap_or(drawer.created_at).start()
}

/// Whether a text has a name as a word of its own, in any case.
fn mentions(text: &str, name: &str) -> bool {
    let name = name.trim();
    if name.len() < 2 {
        return false;
    }
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    text.match_indices(&name).any(|(at, _)| {
        !is_word(text[..at].chars().next_back()) && !is_word(text[at + name.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mentioned_as_words() {
        for (text, name, expected) in [
            ("Ask Ada about it.", "ada", true),
            ("adapt it", "Ada", false),
            ("isolith's store", "isolith", true),
            ("straße, Größe", "größe", true),
            ("a b", "a", false),
            ("", "Ada", false),
        ] {
            assert_eq!(mentions(text, name), expected, "{text:?} {name:?}");
        }
    }

    #[test]
    fn a_worktree_is_remembered_as_its_repository_too() {
        let scratch = tempfile::tempdir().unwrap();
        let deep = scratch.path().join("project/src");
        std::fs::create_dir_all(scratch.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(project_names(&deep), ["src", "project"]);
        assert_eq!(project_names(Path::new("/nowhere/at/all")), ["all"]);
    }
}
