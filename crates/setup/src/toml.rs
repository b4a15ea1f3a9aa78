//! Entries in TOML: a table at the end of the file.
//!
//! The parser only locates things. The text is edited here, because a document that `toml_edit`
//! prints loses its line endings.

use std::cmp::Reverse;
use std::ops::Range;

use toml_edit::{Document, Item, Key, Table};

use crate::entry::{Field, FieldValue};
use crate::splice::{Edit, newline_of, splice};
use crate::{ConfigChange, ENTRY_NAME, EditError, EntryAction};

/// The text of a new file.
pub(crate) fn new_file(servers: &str, fields: &[Field]) -> String {
    table(servers, fields, "\n") + "\n"
}

pub(crate) fn register(
    text: &str,
    servers: &str,
    fields: &[Field],
) -> Result<ConfigChange, EditError> {
    let document = parse(text)?;
    let Some((_, entry)) = entry(&document, servers)? else {
        return Ok(ConfigChange::new(EntryAction::Added, append(text, servers, fields)));
    };
    Ok(match field_edits(entry, fields) {
        Some(edits) if edits.is_empty() => ConfigChange::unchanged(EntryAction::Unchanged),
        Some(edits) => ConfigChange::new(EntryAction::Updated, splice(text, edits)),
        None => {
            let without = unregister(text, servers)?.text.unwrap_or_default();
            ConfigChange::new(EntryAction::Updated, append(&without, servers, fields))
        }
    })
}

pub(crate) fn unregister(text: &str, servers: &str) -> Result<ConfigChange, EditError> {
    let document = parse(text)?;
    let Some((key, item)) = entry(&document, servers)? else {
        return Ok(ConfigChange::unchanged(EntryAction::None));
    };
    let mut ranges = Vec::new();
    collect_ranges(key, item, &mut ranges);
    ranges.sort_by_key(|range| Reverse(range.start));
    let mut rest = text.to_owned();
    for range in ranges {
        rest.replace_range(whole_lines(&rest, range), "");
    }
    // In a file that existed and was empty, the entry does not end with a newline.
    let can_delete_file = rest.is_empty() && text.ends_with('\n');
    Ok(ConfigChange { can_delete_file, ..ConfigChange::new(EntryAction::Removed, rest) })
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let reason = format!("{} on line {line}", error.message().replace('\n', ", "));
        EditError::Syntax { language: "TOML", reason }
    })
}

/// The server's entry with its key, if there is one.
fn entry<'d>(
    document: &'d Document<&str>,
    servers: &str,
) -> Result<Option<(&'d Key, &'d Item)>, EditError> {
    let found = match document.get(servers) {
        None => return Ok(None),
        Some(Item::Table(table)) => return Ok(table.get_key_value(ENTRY_NAME)),
        Some(Item::ArrayOfTables(_)) => "an array of tables",
        Some(item) if item.is_inline_table() => "an inline table",
        Some(item) => item.type_name(),
    };
    Err(EditError::WrongType { location: format!("{servers:?}"), expected: "a table", found })
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
    let header = format!("[{servers}.{ENTRY_NAME}]");
    let lines = fields.iter().map(|field| format!("{} = {}", field.key, field.value.render()));
    [header].into_iter().chain(lines).collect::<Vec<_>>().join(newline)
}

/// The edits that set the entry's fields; `None` if it lacks one of them.
fn field_edits(entry: &Item, fields: &[Field]) -> Option<Vec<Edit>> {
    let entry = entry.as_table_like()?;
    let mut edits = Vec::new();
    for field in fields {
        let item = entry.get(field.key)?;
        if field_value(item).as_ref() != Some(&field.value) {
            edits.push((item.as_value()?.span()?, field.value.render()));
        }
    }
    Some(edits)
}

/// The value of a field; `None` if it has another type.
fn field_value(item: &Item) -> Option<FieldValue> {
    let string = |value: &toml_edit::Value| Some(value.as_str()?.to_owned());
    match item.as_value()? {
        toml_edit::Value::Array(array) => {
            array.iter().map(string).collect::<Option<_>>().map(FieldValue::List)
        }
        value => string(value).map(FieldValue::String),
    }
}

/// Collects the ranges of text that make up an item: each table from its header to its last
/// value, and each value that is written under another table's header.
fn collect_ranges(key: &Key, item: &Item, ranges: &mut Vec<Range<usize>>) {
    match item {
        Item::None => {}
        Item::Value(value) => {
            let span = |span: Option<Range<usize>>| span.expect("parsed items have a span");
            ranges.push(span(key.span()).start..span(value.span()).end);
        }
        Item::Table(table) => collect_table(table, ranges),
        Item::ArrayOfTables(tables) => {
            tables.iter().for_each(|table| collect_table(table, ranges));
        }
    }
}

fn collect_table(table: &Table, ranges: &mut Vec<Range<usize>>) {
    let mut own = Vec::new();
    for (key, item) in table.iter().filter_map(|(name, _)| table.get_key_value(name)) {
        let is_own = item.is_value() || item.as_table().is_some_and(Table::is_dotted);
        collect_ranges(key, item, if is_own { &mut own } else { ranges });
    }
    let header = if table.is_dotted() || table.is_implicit() { None } else { table.span() };
    match header {
        None => ranges.extend(own),
        Some(header) => {
            let end = own.iter().map(|range| range.end).max().unwrap_or(header.end);
            ranges.push(header.start..end);
        }
    }
}

/// Extends a range to whole lines, and for a table to the blank line before it.
fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let mut before = &text[..text[..range.start].rfind('\n').map_or(0, |newline| newline + 1)];
    let end = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline + 1);
    let shorter = without_newline(before);
    if text[range].starts_with('[') && (shorter.is_empty() || shorter.ends_with('\n')) {
        before = shorter;
    }
    // If the file did not end with a newline, the rest must not either.
    if !text[..end].ends_with('\n') {
        before = without_newline(before);
    }
    before.len()..end
}

fn without_newline(text: &str) -> &str {
    let Some(text) = text.strip_suffix('\n') else { return text };
    text.strip_suffix('\r').unwrap_or(text)
}
