//! Validates drawers. Texts are stored unchanged; other fields are trimmed, and empty ones count
//! as not given.

use isolith_protocol::StoreError;
use isolith_types::{Drawer, DrawerPatch, LONGEST_DRAWER, Metadata, Moment, NewDrawer};

use crate::memory::{ContentHash, content_hash};

/// Maximum length of wings, rooms, authors, tags and textual dates, in bytes.
const MAX_NAME_LEN: usize = 500;

/// Maximum length of a source, in bytes.
const MAX_SOURCE_LEN: usize = 4_000;

/// Maximum number of tags per drawer.
const MAX_TAGS: usize = 100;

/// Maximum length of metadata, in bytes.
const MAX_METADATA_LEN: usize = 64 << 10;

/// The user-provided content of a drawer, in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub(super) text: &'a str,
    pub(super) wing: &'a str,
    pub(super) room: &'a str,
    pub(super) source: Option<&'a str>,
    pub(super) author: Option<&'a str>,
    pub(super) date: Option<Moment>,
    pub(super) date_text: Option<&'a str>,
    pub(super) tags: Vec<&'a str>,
    pub(super) metadata: Metadata,
}

impl<'a> Content<'a> {
    /// The content of a new drawer.
    pub(super) fn of_new(new: &'a NewDrawer) -> Result<Self, StoreError> {
        Self {
            text: &new.text,
            wing: &new.wing,
            room: &new.room,
            source: new.source.as_deref(),
            author: new.author.as_deref(),
            date: new.date,
            date_text: new.date_text.as_deref(),
            tags: new.tags.iter().map(String::as_str).collect(),
            metadata: new.metadata.clone(),
        }
        .checked()
    }

    /// The content of a stored drawer.
    pub(super) fn of_stored(drawer: &'a Drawer) -> Self {
        Self {
            text: &drawer.text,
            wing: &drawer.wing,
            room: &drawer.room,
            source: drawer.source.as_deref(),
            author: drawer.author.as_deref(),
            date: drawer.date,
            date_text: drawer.date_text.as_deref(),
            tags: drawer.tags.iter().map(String::as_str).collect(),
            metadata: drawer.metadata.clone(),
        }
    }

    /// This content with a patch applied.
    pub(super) fn with(&self, patch: &'a DrawerPatch) -> Result<Self, StoreError> {
        let or = |new: &'a Option<String>, old: Option<&'a str>| new.as_deref().or(old);
        Self {
            text: patch.text.as_deref().unwrap_or(self.text),
            wing: patch.wing.as_deref().unwrap_or(self.wing),
            room: patch.room.as_deref().unwrap_or(self.room),
            source: or(&patch.source, self.source),
            author: or(&patch.author, self.author),
            date: patch.date.unwrap_or(self.date),
            date_text: or(&patch.date_text, self.date_text),
            tags: match &patch.tags {
                Some(tags) => tags.iter().map(String::as_str).collect(),
                None => self.tags.clone(),
            },
            metadata: match &patch.metadata {
                Some(over) => self.metadata.merged_with(over),
                None => self.metadata.clone(),
            },
        }
        .checked()
    }

    pub(super) fn hash(&self) -> ContentHash {
        content_hash(self.wing, self.room, self.source, self.text)
    }

    /// Stored form of the tags.
    pub(super) fn tags_json(&self) -> String {
        serde_json::to_string(&self.tags).expect("strings can always be encoded as JSON")
    }

    fn checked(mut self) -> Result<Self, StoreError> {
        limit("the text", self.text, LONGEST_DRAWER)?;
        if self.text.trim().is_empty() {
            return Err(StoreError::Invalid("the text is blank".to_owned()));
        }
        self.wing = required("wing", self.wing)?;
        self.room = required("room", self.room)?;
        self.source = optional("source", self.source, MAX_SOURCE_LEN)?;
        self.author = optional("author", self.author, MAX_NAME_LEN)?;
        self.date_text = optional("date in words", self.date_text, MAX_NAME_LEN)?;
        self.tags = tags(&self.tags)?;
        limit("the metadata", self.metadata.as_str(), MAX_METADATA_LEN)?;
        Ok(self)
    }
}

fn required<'a>(what: &str, name: &'a str) -> Result<&'a str, StoreError> {
    let name = optional(what, Some(name), MAX_NAME_LEN)?;
    name.ok_or_else(|| StoreError::Invalid(format!("the {what} has no name")))
}

fn optional<'a>(
    what: &str,
    value: Option<&'a str>,
    longest: usize,
) -> Result<Option<&'a str>, StoreError> {
    let Some(value) = value.map(str::trim).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    limit(&format!("the {what}"), value, longest)?;
    if value.chars().any(char::is_control) {
        return Err(StoreError::Invalid(format!("the {what} contains control characters")));
    }
    Ok(Some(value))
}

/// Removes duplicate tags, keeping the order.
fn tags<'a>(given: &[&'a str]) -> Result<Vec<&'a str>, StoreError> {
    let mut tags = Vec::with_capacity(given.len());
    for tag in given {
        if let Some(tag) = optional("tag", Some(tag), MAX_NAME_LEN)?
            && !tags.contains(&tag)
        {
            tags.push(tag);
        }
    }
    if tags.len() > MAX_TAGS {
        let reason = format!("{} tags, at most {MAX_TAGS} are allowed", tags.len());
        return Err(StoreError::Invalid(reason));
    }
    Ok(tags)
}

fn limit(what: &str, text: &str, longest: usize) -> Result<(), StoreError> {
    if text.len() <= longest {
        return Ok(());
    }
    Err(StoreError::TooLong { what: what.to_owned(), bytes: text.len(), limit: longest })
}
