//! Entries in JSON, with the comments and trailing commas of JSONC.
//!
//! A member is inserted right behind the brace of its object, so that no other member gets or
//! loses a comma and the change is one insertion. What is to be undone must be told apart from
//! what was there before. The white space before the entry does that: an object that setup
//! made has some there, an object that was there and empty has none.

mod document;
mod layout;

use jsonc_parser::ast::{ObjectProp, Value as Found};

use crate::entry::{Field, Value};
use crate::text::{Edit, splice};
use crate::{Action, Change, EditError, NAME};
use document::{Document, member, span};
use layout::Layout;

/// The text of a new file.
pub(crate) fn fresh(servers: &str, fields: &[Field]) -> String {
    let layout = Layout { newline: "\n", unit: "  ", spread: true };
    let members = [(servers, layout.servers(layout.unit, fields))];
    layout.object("", &members) + "\n"
}

pub(crate) fn register(text: &str, servers: &str, fields: &[Field]) -> Result<Change, EditError> {
    let Some(document) = Document::parse(text)? else {
        // A file with nothing in it counts as an empty object.
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return register(&format!("{text}{gap}{{}}"), servers, fields);
    };
    let layout = document.layout();
    let Some(object) = document.object(servers)? else {
        let text = document.insert(&document.root, servers, |base| layout.servers(base, fields));
        return Ok(Change::to(Action::Added, text));
    };
    let Some(entry) = member(object, NAME)? else {
        let text = document.insert(object, NAME, |base| layout.entry(base, fields));
        return Ok(Change::to(Action::Added, text));
    };
    let edits = match exchange(entry, fields)? {
        Some(edits) => edits,
        None => {
            let base = document.indentation(span(entry).start);
            vec![(span(&entry.value), layout.entry(base, fields))]
        }
    };
    Ok(match edits.is_empty() {
        true => Change::none(Action::Unchanged),
        false => Change::to(Action::Updated, splice(text, edits)),
    })
}

pub(crate) fn unregister(text: &str, servers: &str) -> Result<Change, EditError> {
    let nothing = Change::none(Action::None);
    let Some(document) = Document::parse(text)? else { return Ok(nothing) };
    let Some(object) = document.object(servers)? else { return Ok(nothing) };
    let Some(entry) = member(object, NAME)? else { return Ok(nothing) };
    if !document.is_made_for(object, entry) {
        return Ok(Change::to(Action::Removed, document.remove(entry)));
    }
    let root = &document.root;
    let holder = member(root, servers)?.expect("the object has just been found there");
    let leaves_nothing = document.is_made_for(root, holder) && !document.has_comments_outside();
    Ok(Change { leaves_nothing, ..Change::to(Action::Removed, document.remove(holder)) })
}

/// What makes an entry say what it should; `None` if it has not all the fields.
fn exchange(entry: &ObjectProp<'_>, fields: &[Field]) -> Result<Option<Vec<Edit>>, EditError> {
    let Found::Object(object) = &entry.value else { return Ok(None) };
    let mut edits = Vec::new();
    for field in fields {
        let Some(member) = member(object, field.key)? else { return Ok(None) };
        if read(&member.value).as_ref() != Some(&field.value) {
            edits.push((span(&member.value), field.value.render()));
        }
    }
    Ok(Some(edits))
}

/// A value of a kind that fields have.
fn read(found: &Found<'_>) -> Option<Value> {
    let text = |found: &Found<'_>| Some(found.as_string_lit()?.value.clone().into_owned());
    match found {
        Found::Array(array) => {
            array.elements.iter().map(text).collect::<Option<_>>().map(Value::List)
        }
        found => text(found).map(Value::Text),
    }
}
