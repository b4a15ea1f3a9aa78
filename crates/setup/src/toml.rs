//! Entries in TOML: a table of their own, at the end of the file.
//!
//! The parser says where things are; the text is cut and joined here, because documents that
//! are printed anew lose their line ends.

use std::cmp::Reverse;
use std::ops::Range;

use toml_edit::{Document, Item, Key, Table};

use crate::entry::{Field, Value};
use crate::text::{Edit, newline_of, splice};
use crate::{Action, Change, EditError, NAME};

/// The text of a new file.
pub(crate) fn fresh(servers: &str, fields: &[Field]) -> String {
    table(servers, fields, "\n") + "\n"
}

pub(crate) fn register(text: &str, servers: &str, fields: &[Field]) -> Result<Change, EditError> {
    let document = parse(text)?;
    let Some((_, entry)) = entry(&document, servers)? else {
        return Ok(Change::to(Action::Added, append(text, servers, fields)));
    };
    Ok(match exchange(entry, fields) {
        Some(edits) if edits.is_empty() => Change::none(Action::Unchanged),
        Some(edits) => Change::to(Action::Updated, splice(text, edits)),
        None => {
            let without = unregister(text, servers)?.text.unwrap_or_default();
            Change::to(Action::Updated, append(&without, servers, fields))
        }
    })
}

pub(crate) fn unregister(text: &str, servers: &str) -> Result<Change, EditError> {
    let document = parse(text)?;
    let Some((key, item)) = entry(&document, servers)? else {
        return Ok(Change::none(Action::None));
    };
    let mut pieces = Vec::new();
    collect(key, item, &mut pieces);
    pieces.sort_by_key(|piece| Reverse(piece.start));
    let mut left = text.to_owned();
    for piece in pieces {
        left.replace_range(with_lines(&left, piece), "");
    }
    // A file that was there and empty got no line end after the entry.
    let leaves_nothing = left.is_empty() && text.ends_with('\n');
    Ok(Change { leaves_nothing, ..Change::to(Action::Removed, left) })
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let reason = format!("{} on line {line}", error.message().replace('\n', ", "));
        EditError::Syntax { language: "TOML", reason }
    })
}

/// The entry and its key.
fn entry<'d>(
    document: &'d Document<&str>,
    servers: &str,
) -> Result<Option<(&'d Key, &'d Item)>, EditError> {
    let found = match document.get(servers) {
        None => return Ok(None),
        Some(Item::Table(table)) => return Ok(table.get_key_value(NAME)),
        Some(Item::ArrayOfTables(_)) => "a list of tables",
        Some(item) if item.is_inline_table() => "an inline table",
        Some(item) => item.type_name(),
    };
    Err(EditError::WrongKind { place: format!("{servers:?}"), expected: "a table", found })
}

fn append(text: &str, servers: &str, fields: &[Field]) -> String {
    let newline = newline_of(text);
    let table = table(servers, fields, newline);
    if text.is_empty() {
        table
    } else if text.ends_with('\n') {
        format!("{text}{newline}{table}{newline}")
    } else {
        format!("{text}{newline}{newline}{table}")
    }
}

fn table(servers: &str, fields: &[Field], newline: &str) -> String {
    let header = format!("[{servers}.{NAME}]");
    let lines = fields.iter().map(|field| format!("{} = {}", field.key, field.value.render()));
    [header].into_iter().chain(lines).collect::<Vec<_>>().join(newline)
}

/// What makes an entry say what it should; `None` if it has not all the fields.
fn exchange(entry: &Item, fields: &[Field]) -> Option<Vec<Edit>> {
    let entry = entry.as_table_like()?;
    let mut edits = Vec::new();
    for field in fields {
        let item = entry.get(field.key)?;
        if read(item).as_ref() != Some(&field.value) {
            edits.push((item.as_value()?.span()?, field.value.render()));
        }
    }
    Some(edits)
}

/// A value of a kind that fields have.
fn read(item: &Item) -> Option<Value> {
    let text = |value: &toml_edit::Value| Some(value.as_str()?.to_owned());
    match item.as_value()? {
        toml_edit::Value::Array(array) => {
            array.iter().map(text).collect::<Option<_>>().map(Value::List)
        }
        value => text(value).map(Value::Text),
    }
}

/// The pieces of text that an item is made of: a table's header with all that follows up to
/// its last value is one, and so is a value that stands under another header.
fn collect(key: &Key, item: &Item, pieces: &mut Vec<Range<usize>>) {
    match item {
        Item::None => {}
        Item::Value(value) => {
            let span = |span: Option<Range<usize>>| span.expect("what was parsed has a place");
            pieces.push(span(key.span()).start..span(value.span()).end);
        }
        Item::Table(table) => collect_table(table, pieces),
        Item::ArrayOfTables(tables) => {
            tables.iter().for_each(|table| collect_table(table, pieces));
        }
    }
}

fn collect_table(table: &Table, pieces: &mut Vec<Range<usize>>) {
    let mut own = Vec::new();
    for (key, item) in table.iter().filter_map(|(name, _)| table.get_key_value(name)) {
        let is_own = item.is_value() || item.as_table().is_some_and(Table::is_dotted);
        collect(key, item, if is_own { &mut own } else { pieces });
    }
    let header = if table.is_dotted() || table.is_implicit() { None } else { table.span() };
    match header {
        None => pieces.extend(own),
        Some(header) => {
            let end = own.iter().map(|piece| piece.end).max().unwrap_or(header.end);
            pieces.push(header.start..end);
        }
    }
}

/// The lines of a piece, and the blank line before a table.
fn with_lines(text: &str, piece: Range<usize>) -> Range<usize> {
    let mut before = &text[..text[..piece.start].rfind('\n').map_or(0, |newline| newline + 1)];
    let end = text[piece.end..].find('\n').map_or(text.len(), |newline| piece.end + newline + 1);
    let shorter = without_newline(before);
    if text[piece].starts_with('[') && (shorter.is_empty() || shorter.ends_with('\n')) {
        before = shorter;
    }
    // The last line of the file had no end, and so it shall be.
    if !text[..end].ends_with('\n') {
        before = without_newline(before);
    }
    before.len()..end
}

fn without_newline(text: &str) -> &str {
    let Some(text) = text.strip_suffix('\n') else { return text };
    text.strip_suffix('\r').unwrap_or(text)
}
