//! Ready drawers: one JSON object per line.

use std::collections::HashSet;

use isolith_types::{Metadata, Moment, NewDrawer};
use serde_json::{Map, Value};

use crate::transcript::json::Json;
use crate::transcript::turn::{ItemOutcome, text_problem};
use crate::transcript::{MAX_METADATA_BYTES, TranscriptOptions};

/// Parses the drawer on a line.
pub(crate) fn parse_line(line: Json<'_>, options: &TranscriptOptions) -> ItemOutcome {
    match drawer(line, options) {
        Ok(drawer) => ItemOutcome::Drawer(Box::new(drawer)),
        Err(reason) => ItemOutcome::Problem(reason),
    }
}

fn drawer(line: Json<'_>, options: &TranscriptOptions) -> Result<NewDrawer, String> {
    if !line.is_object() {
        return Err(format!("a drawer must be an object, found {}", line.kind()));
    }
    let mut text = None;
    let mut drawer = NewDrawer::default();
    let mut other = Map::new();
    let mut metadata_left = MAX_METADATA_BYTES;
    let mut seen = HashSet::new();
    for member in line.members() {
        let (key, value) = member?;
        if key.is_empty() {
            return Err("a key is empty or too long".to_owned());
        }
        if seen.contains(&key) {
            return Err(format!("duplicate key {key:?}"));
        }
        let wrong = |reason: String| format!("{key} {reason}");
        match key.as_str() {
            "text" => text = Some(value.text().map_err(wrong)?.into_owned()),
            "wing" => drawer.wing = optional(value).map_err(wrong)?.unwrap_or_default(),
            "room" => drawer.room = optional(value).map_err(wrong)?.unwrap_or_default(),
            "source" => drawer.source = optional(value).map_err(wrong)?,
            "author" => drawer.author = optional(value).map_err(wrong)?,
            "date" => drawer.date = date(value).map_err(wrong)?,
            "date_text" => drawer.date_text = optional(value).map_err(wrong)?,
            "tags" => drawer.tags = tags(value).map_err(wrong)?,
            _ => {
                let bytes = key.len() + value.bytes.len();
                metadata_left = metadata_left.checked_sub(bytes).ok_or_else(too_much_metadata)?;
                add_metadata(&mut other, &key, value)?;
            }
        }
        seen.insert(key);
    }
    drawer.text = text.ok_or("text is missing")?;
    if drawer.text.trim().is_empty() {
        return Err("text is empty".to_owned());
    }
    if let Some(reason) = text_problem(&drawer.text) {
        return Err(reason);
    }
    drawer.metadata = Metadata::from_json(Value::Object(other)).map_err(|it| it.to_string())?;
    apply_options(&mut drawer, options);
    Ok(drawer)
}

/// Fills in missing fields from the options.
fn apply_options(drawer: &mut NewDrawer, options: &TranscriptOptions) {
    let general = || "general".to_owned();
    if drawer.wing.is_empty() {
        drawer.wing = options.wing.clone().unwrap_or_else(general);
    }
    if drawer.room.is_empty() {
        drawer.room = options.room.clone().unwrap_or_else(general);
    }
    drawer.author = drawer.author.take().map(|author| options.author(&author));
}

/// A text; `None` if it is null or blank.
fn optional(value: Json<'_>) -> Result<Option<String>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let text = value.text()?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

fn date(value: Json<'_>) -> Result<Option<Moment>, String> {
    let Some(text) = optional(value)? else { return Ok(None) };
    match text.parse() {
        Ok(moment) => Ok(Some(moment)),
        Err(error) => Err(format!("is invalid: {error} (use date_text for free text)")),
    }
}

fn tags(value: Json<'_>) -> Result<Vec<String>, String> {
    const MAX_TAGS: usize = 1_000;
    if value.is_null() {
        return Ok(Vec::new());
    }
    if !value.is_list() {
        return Err(format!("must be a list of texts, found {}", value.kind()));
    }
    let mut tags = Vec::new();
    for item in value.items() {
        let item = item.map_err(|reason| format!("cannot be read: {reason}"))?;
        let tag =
            item.text().map_err(|reason| format!("must be a list of texts: an item {reason}"))?;
        if tags.len() == MAX_TAGS {
            return Err(format!("has more than {MAX_TAGS} items"));
        }
        tags.push(tag.trim().to_owned());
    }
    tags.retain(|tag| !tag.is_empty());
    Ok(tags)
}

/// Adds the value of an unknown key to the metadata; the members of an object `metadata` are added
/// one by one.
fn add_metadata(other: &mut Map<String, Value>, key: &str, value: Json<'_>) -> Result<(), String> {
    let value: Value = serde_json::from_slice(value.bytes)
        .map_err(|error| format!("{key} cannot be read: {error}"))?;
    match value {
        Value::Null => {}
        Value::Object(object) if key == "metadata" => other.extend(object),
        value => {
            other.insert(key.to_owned(), value);
        }
    }
    Ok(())
}

fn too_much_metadata() -> String {
    format!(
        "the metadata (all keys that are not fields of a drawer) exceeds {MAX_METADATA_BYTES} bytes"
    )
}
