//! Entries in JSON with comments and trailing commas (JSONC).
//!
//! A member is inserted right after the opening brace of its object, so that the commas of other
//! members stay as they are and the change is a single insertion. To undo exactly this, an object
//! that setup created is recognized by the white space before the entry: in an object that
//! existed and was empty, there is none.

mod document;
mod layout;
mod list;

use jsonc_parser::ast::{ObjectProp, Value as JsonValue};

use crate::entry::{Field, FieldValue};
use crate::splice::{Edit, splice};
use crate::{ConfigChange, ENTRY_NAME, EditError, EntryAction};
use document::{Document, member, span};
use layout::Layout;
pub(crate) use list::{ListEntry, add_to_list, remove_from_list};

/// The text of a new file.
pub(crate) fn new_file(servers: &str, fields: &[Field]) -> String {
    let layout = Layout { newline: "\n", indent_unit: "  ", multiline: true };
    let members = [(servers, layout.servers(layout.indent_unit, fields))];
    layout.object("", &members) + "\n"
}

pub(crate) fn register(
    text: &str,
    servers: &str,
    fields: &[Field],
) -> Result<ConfigChange, EditError> {
    let Some(document) = Document::parse(text)? else {
        // A file without content counts as an empty object.
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return register(&format!("{text}{gap}{{}}"), servers, fields);
    };
    let layout = document.layout();
    let Some(object) = document.object(servers)? else {
        let text =
            document.insert(&document.root, servers, |indent| layout.servers(indent, fields));
        return Ok(ConfigChange::new(EntryAction::Added, text));
    };
    let Some(entry) = member(object, ENTRY_NAME)? else {
        let text = document.insert(object, ENTRY_NAME, |indent| layout.entry(indent, fields));
        return Ok(ConfigChange::new(EntryAction::Added, text));
    };
    let edits = match field_edits(entry, fields)? {
        Some(edits) => edits,
        None => {
            let indent = document.indentation(span(entry).start);
            vec![(span(&entry.value), layout.entry(indent, fields))]
        }
    };
    Ok(match edits.is_empty() {
        true => ConfigChange::unchanged(EntryAction::Unchanged),
        false => ConfigChange::new(EntryAction::Updated, splice(text, edits)),
    })
}

pub(crate) fn unregister(text: &str, servers: &str) -> Result<ConfigChange, EditError> {
    let none = ConfigChange::unchanged(EntryAction::None);
    let Some(document) = Document::parse(text)? else { return Ok(none) };
    let Some(object) = document.object(servers)? else { return Ok(none) };
    let Some(entry) = member(object, ENTRY_NAME)? else { return Ok(none) };
    if !document.was_created_for(object, entry) {
        return Ok(ConfigChange::new(EntryAction::Removed, document.remove(entry)));
    }
    let root = &document.root;
    let list = member(root, servers)?.expect("`object` is the value of this member");
    let can_delete_file = document.was_created_for(root, list) && !document.has_comments_outside();
    let change = ConfigChange::new(EntryAction::Removed, document.remove(list));
    Ok(ConfigChange { can_delete_file, ..change })
}

/// The edits that set the entry's fields; `None` if it lacks one of them.
fn field_edits(entry: &ObjectProp<'_>, fields: &[Field]) -> Result<Option<Vec<Edit>>, EditError> {
    let JsonValue::Object(object) = &entry.value else { return Ok(None) };
    let mut edits = Vec::new();
    for field in fields {
        let Some(member) = member(object, field.key)? else { return Ok(None) };
        if field_value(&member.value).as_ref() != Some(&field.value) {
            edits.push((span(&member.value), field.value.render()));
        }
    }
    Ok(Some(edits))
}

/// The value of a field; `None` if it has another type.
fn field_value(value: &JsonValue<'_>) -> Option<FieldValue> {
    let string = |value: &JsonValue<'_>| Some(value.as_string_lit()?.value.clone().into_owned());
    match value {
        JsonValue::Array(array) => {
            array.elements.iter().map(string).collect::<Option<_>>().map(FieldValue::List)
        }
        value => string(value).map(FieldValue::String),
    }
}
