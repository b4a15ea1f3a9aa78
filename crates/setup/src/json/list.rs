//! Entries in lists of an object below the root: `{KEY: {NAME: [entry, …]}}`.
//!
//! As for members, an entry comes first, and a list that setup created is recognized by the white
//! space after its bracket.

use jsonc_parser::ast::{Array, Value as JsonValue};
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::document::{Document, member, span};
use crate::splice::splice;
use crate::{ConfigChange, EditError, EntryAction};

/// An entry, and a text in one of its strings that shows that it is ours.
pub(crate) struct ListEntry<'e> {
    pub(crate) value: &'e Value,
    pub(crate) marker: &'e str,
}

/// Adds an entry to the list `name` of the object `key`, or updates the one that is there.
pub(crate) fn add_to_list(
    text: &str,
    key: &str,
    name: &str,
    entry: &ListEntry<'_>,
) -> Result<ConfigChange, EditError> {
    let Some(document) = Document::parse(text)? else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return add_to_list(&format!("{text}{gap}{{}}"), key, name, entry);
    };
    let layout = document.layout();
    let added = |text: String| Ok(ConfigChange::new(EntryAction::Added, text));
    let list = |indent: &str| layout.list(indent, entry.value);
    let Some(object) = document.object(key)? else {
        return added(document.insert(&document.root, key, |indent| {
            let inner = format!("{indent}{}", layout.indent_unit);
            match layout.multiline {
                true => layout.object(indent, &[(name, list(&inner))]),
                false => format!("{{ \"{name}\": {} }}", list(&inner)),
            }
        }));
    };
    let Some(found) = member(object, name)? else {
        return added(document.insert(object, name, list));
    };
    let array = array_of(&found.value, name)?;
    let own = array.elements.iter().find(|element| has_text(element, entry.marker));
    match own {
        Some(own) if plain(own) == *entry.value => {
            Ok(ConfigChange::unchanged(EntryAction::Unchanged))
        }
        Some(own) => {
            let indent = document.indentation(own.start());
            let new = layout.value(indent, entry.value);
            let text = splice(text, vec![(span(own), new)]);
            Ok(ConfigChange::new(EntryAction::Updated, text))
        }
        None => added(document.insert_element(array, |indent| layout.value(indent, entry.value))),
    }
}

/// Removes the entry with this marker, and what was created for it.
pub(crate) fn remove_from_list(
    text: &str,
    key: &str,
    name: &str,
    marker: &str,
) -> Result<ConfigChange, EditError> {
    let none = ConfigChange::unchanged(EntryAction::Unchanged);
    let Some(document) = Document::parse(text)? else { return Ok(none) };
    let Some(object) = document.object(key)? else { return Ok(none) };
    let Some(found) = member(object, name)? else { return Ok(none) };
    let array = array_of(&found.value, name)?;
    let own = array.elements.iter().find(|element| has_text(element, marker));
    let Some(own) = own else { return Ok(none) };
    let removed = |text: String| Ok(ConfigChange::new(EntryAction::Removed, text));
    if !document.surrounds_only(array, own) {
        return removed(document.remove_part(own));
    }
    if !document.was_created_for(object, found) {
        return removed(document.remove(found));
    }
    let all = member(&document.root, key)?.expect("`object` is the value of this member");
    removed(document.remove(all))
}

fn array_of<'o, 'a>(value: &'o JsonValue<'a>, name: &str) -> Result<&'o Array<'a>, EditError> {
    match value {
        JsonValue::Array(array) => Ok(array),
        _ => Err(EditError::WrongType {
            location: format!("{name:?}"),
            expected: "a list",
            found: "something else",
        }),
    }
}

/// Whether any string in a value contains a text.
fn has_text(value: &JsonValue<'_>, text: &str) -> bool {
    match value {
        JsonValue::StringLit(string) => string.value.contains(text),
        JsonValue::Array(array) => array.elements.iter().any(|it| has_text(it, text)),
        JsonValue::Object(object) => object.properties.iter().any(|it| has_text(&it.value, text)),
        JsonValue::NumberLit(_) | JsonValue::BooleanLit(_) | JsonValue::NullKeyword(_) => false,
    }
}

/// A value without its formatting.
fn plain(value: &JsonValue<'_>) -> Value {
    match value {
        JsonValue::StringLit(string) => Value::from(string.value.as_ref()),
        JsonValue::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        JsonValue::BooleanLit(boolean) => Value::from(boolean.value),
        JsonValue::NullKeyword(_) => Value::Null,
        JsonValue::Array(array) => array.elements.iter().map(plain).collect(),
        JsonValue::Object(object) => {
            let member = |it: &jsonc_parser::ast::ObjectProp<'_>| {
                (it.name.as_str().to_owned(), plain(&it.value))
            };
            Value::Object(object.properties.iter().map(member).collect::<Map<_, _>>())
        }
    }
}
