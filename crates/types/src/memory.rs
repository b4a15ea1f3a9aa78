//! Agent memory: drawers of verbatim text, in rooms of wings.

use serde::{Deserialize, Serialize};

use crate::{Metadata, Moment};

/// The maximum length of a drawer's text, in bytes.
pub const LONGEST_DRAWER: usize = 1 << 20;

/// A drawer to be added.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewDrawer {
    /// The text, verbatim.
    pub text: String,
    /// The person or project that it is about.
    pub wing: String,
    /// The topic.
    pub room: String,
    /// Its origin: a file, a conversation, a message.
    pub source: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, or the day it is about.
    pub date: Option<Moment>,
    /// The date in free text.
    pub date_text: Option<String>,
    /// Tags to filter by.
    pub tags: Vec<String>,
    /// Any other properties.
    pub metadata: Metadata,
}

/// A stored drawer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawer {
    /// Derived from wing, room, source and original text; it stays when the text changes.
    pub id: String,
    /// The person or project that it is about.
    pub wing: String,
    /// The topic.
    pub room: String,
    /// Its position within wing and room in order of arrival, from 1; deletions leave gaps.
    pub position: u64,
    /// The whole text, verbatim.
    pub text: String,
    /// Its origin.
    pub source: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, or the day it is about.
    pub date: Option<Moment>,
    /// The date in free text.
    pub date_text: Option<String>,
    /// Tags to filter by.
    pub tags: Vec<String>,
    /// Any other properties.
    pub metadata: Metadata,
    /// When it was stored.
    pub created_at: Moment,
    /// When it was last changed.
    pub updated_at: Moment,
}

/// A partial update of a drawer. `None` leaves a field unchanged; an empty string removes an
/// optional value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrawerPatch {
    /// The new text.
    pub text: Option<String>,
    /// The wing to move it to.
    pub wing: Option<String>,
    /// The room to move it to.
    pub room: Option<String>,
    /// The new source.
    pub source: Option<String>,
    /// The new author.
    pub author: Option<String>,
    /// The new date; `Some(None)` removes it.
    pub date: Option<Option<Moment>>,
    /// The new date in free text.
    pub date_text: Option<String>,
    /// The new tags, which replace all existing ones.
    pub tags: Option<Vec<String>>,
    /// Merged into the existing metadata; a null removes a key.
    pub metadata: Option<Metadata>,
}

/// Selects drawers. Fields that are not set allow all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrawerFilter {
    /// In this wing.
    pub wing: Option<String>,
    /// In this room.
    pub room: Option<String>,
    /// From this source.
    pub source: Option<String>,
    /// By this author.
    pub author: Option<String>,
    /// With all of these tags.
    pub tags: Vec<String>,
    /// Dated at this time or later. For a drawer without a date, the time it was stored counts.
    pub since: Option<Moment>,
    /// Dated at this time or earlier, including the whole day.
    pub until: Option<Moment>,
}

impl DrawerFilter {
    /// Whether it allows all drawers.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of the drawers that match a filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrawerPage {
    /// The order.
    pub order: DrawerOrder,
    /// Only drawers after this place in the order of wing, room and position, whatever `order` is.
    pub after: Option<DrawerPlace>,
    /// The number of these drawers to skip.
    pub offset: u64,
    /// The maximum number of drawers.
    pub limit: u32,
}

/// The order in which drawers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DrawerOrder {
    /// By date, newest first. For a drawer without a date, the time it was stored counts.
    #[default]
    Newest,
    /// By wing, room and position.
    Position,
}

/// The location of a drawer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawerPlace {
    /// Its wing.
    pub wing: String,
    /// Its room.
    pub room: String,
    /// Its position in the room.
    pub position: u64,
}

/// The result of adding a [`NewDrawer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDrawer {
    /// The id of the new or existing drawer.
    pub id: String,
    /// Whether it is new.
    pub created: bool,
    /// The existing drawer with the same text, wing, room and source, if there was one; the
    /// same as `id`.
    pub duplicate_of: Option<String>,
}

/// A drawer with nearly the same text as another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimilarDrawer {
    /// The drawer.
    pub drawer: Drawer,
    /// The cosine similarity of the texts' vectors, at most 1.
    pub similarity: f32,
}

/// A drawer that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawerHit {
    /// The whole drawer.
    pub drawer: Drawer,
    /// The passage that matches best.
    pub passage: String,
    /// Higher is better.
    pub score: f32,
    /// What contributed to the score.
    pub why: Vec<String>,
}

/// A wing with its rooms and counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wing {
    /// Its name.
    pub name: String,
    /// The number of drawers in it.
    pub drawers: u64,
    /// Its rooms, by name.
    pub rooms: Vec<Room>,
}

/// A room of a wing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Its name.
    pub name: String,
    /// The number of drawers in it.
    pub drawers: u64,
}
