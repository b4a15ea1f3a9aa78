//! What agents remember: drawers of verbatim text, in rooms of wings.

use serde::{Deserialize, Serialize};

use crate::{Metadata, Moment};

/// The longest text of a drawer, in bytes.
pub const LONGEST_DRAWER: usize = 1 << 20;

/// A text on its way into memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewDrawer {
    /// Verbatim.
    pub text: String,
    /// The person or project that it is about.
    pub wing: String,
    /// The topic.
    pub room: String,
    /// Where it comes from: a file, a conversation, a message.
    pub source: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, or what day it is about.
    pub date: Option<Moment>,
    /// The same in any words.
    pub date_text: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whatever else there is to say.
    pub metadata: Metadata,
}

/// A text in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawer {
    /// Made from wing, room, source and the first text; stays when the text changes.
    pub id: String,
    /// The person or project that it is about.
    pub wing: String,
    /// The topic.
    pub room: String,
    /// Its place in the order of arrival within wing and room, from 1; gaps are where
    /// others were deleted.
    pub position: u64,
    /// Verbatim and whole.
    pub text: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, or what day it is about.
    pub date: Option<Moment>,
    /// The same in any words.
    pub date_text: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whatever else there is to say.
    pub metadata: Metadata,
    /// When it was stored.
    pub created_at: Moment,
    /// When it was last changed.
    pub updated_at: Moment,
}

/// A change of a drawer. What is not given stays; an empty text takes a value away where
/// there may be none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrawerPatch {
    /// Another text.
    pub text: Option<String>,
    /// Into another wing.
    pub wing: Option<String>,
    /// Into another room.
    pub room: Option<String>,
    /// Another source, author, date in words.
    pub source: Option<String>,
    /// Another author.
    pub author: Option<String>,
    /// Another date, or none.
    pub date: Option<Option<Moment>>,
    /// Another date in words.
    pub date_text: Option<String>,
    /// Other tags, in the place of all there are.
    pub tags: Option<Vec<String>>,
    /// Merged into the present keys; a null removes a key.
    pub metadata: Option<Metadata>,
}

/// Which drawers are meant. What is not given allows all.
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
    /// Dated at this time or later; a drawer without a date goes by when it was stored.
    pub since: Option<Moment>,
    /// Dated at this time or earlier; a whole day is included.
    pub until: Option<Moment>,
}

impl DrawerFilter {
    /// Whether it allows all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which part of the drawers that a filter allows is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DrawerPage {
    /// In what order.
    pub order: DrawerOrder,
    /// Only those behind this place, whatever the order.
    pub after: Option<DrawerPlace>,
    /// How many of these to leave out.
    pub offset: u64,
    /// How many to get at most.
    pub limit: u32,
}

/// In what order drawers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum DrawerOrder {
    /// By date, the newest first; a drawer without a date goes by when it was stored.
    #[default]
    Newest,
    /// By wing, room and position.
    Position,
}

/// Where a drawer is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawerPlace {
    /// Its wing.
    pub wing: String,
    /// Its room.
    pub room: String,
    /// Its place in the order of arrival there.
    pub position: u64,
}

/// What became of a [`NewDrawer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedDrawer {
    /// The drawer that has the text now.
    pub id: String,
    /// Whether it is new.
    pub created: bool,
    /// The drawer that had exactly this text before, in the same wing and room and from
    /// the same source; the same as `id`.
    pub duplicate_of: Option<String>,
}

/// A drawer with nearly the same text as another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimilarDrawer {
    /// The drawer.
    pub drawer: Drawer,
    /// The cosine of the two texts' vectors, at most 1.
    pub similarity: f32,
}

/// A drawer that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawerHit {
    /// The drawer, whole.
    pub drawer: Drawer,
    /// The part of its text that fits best.
    pub passage: String,
    /// Larger is better.
    pub score: f32,
    /// What put it here.
    pub why: Vec<String>,
}

/// A wing, its rooms and how much is in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wing {
    /// Its name.
    pub name: String,
    /// How many drawers it has.
    pub drawers: u64,
    /// Its rooms, by name.
    pub rooms: Vec<Room>,
}

/// A room of a wing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Its name.
    pub name: String,
    /// How many drawers it has.
    pub drawers: u64,
}
