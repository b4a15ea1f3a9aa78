use std::collections::HashMap;

use isolith_protocol::{
    CODE_COLLECTION, CollectionState, Generation, IndexKind, Level, MEMORY_COLLECTION,
    SegmentEntry, StoreError,
};
use isolith_sql::{Connection, OptionalExtension, Row, ToSql};
use isolith_types::{CollectionKind, Metric};

use super::unreadable;
use crate::names::is_plain;
use crate::sqlite::During;

/// Maximum number of similar names in an error.
const MAX_SIMILAR: usize = 3;

const STATE: &str = "SELECT c.id, c.name, c.dimension, c.metric, c.model, c.records, \
    c.last_change, c.unfolded, g.number, g.base_to, g.complete_to, c.kind \
    FROM collection c LEFT JOIN generation g ON g.collection = c.id ";

/// The last change number of the whole store.
pub(crate) fn last_change(db: &dyn Connection) -> Result<u64, StoreError> {
    db.prepare_cached("SELECT last_change FROM store")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .during(db, "read the last change number")
}

/// The collection with this name or uuid (see [`isolith_types::by_uuid`]), if it exists.
pub(crate) fn by_name(
    db: &dyn Connection,
    name: &str,
) -> Result<Option<CollectionState>, StoreError> {
    if let Some(uuid) = name.strip_prefix('@').filter(|uuid| is_uuid(uuid)) {
        return one(db, "WHERE c.uuid = ?1 AND c.name IS NOT NULL", uuid);
    }
    one(db, "WHERE c.name = ?1", name)
}

/// Whether the text has the form of a uuid.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let mut groups = text.split('-');
    lengths.iter().all(|length| {
        groups.next().is_some_and(|group| {
            group.len() == *length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }) && groups.next().is_none()
}

/// The collection with this id, unless it was deleted.
pub(crate) fn by_id(db: &dyn Connection, id: u64) -> Result<Option<CollectionState>, StoreError> {
    one(db, "WHERE c.id = ?1 AND c.name IS NOT NULL", id)
}

/// The collection with this name, or an error with similar names.
pub(crate) fn require(db: &dyn Connection, name: &str) -> Result<CollectionState, StoreError> {
    match by_name(db, name)? {
        Some(state) => Ok(state),
        None => Err(StoreError::NotFound { name: name.to_owned(), similar: similar(db, name)? }),
    }
}

/// A collection whose records users may change.
pub(crate) fn require_records(
    db: &dyn Connection,
    name: &str,
) -> Result<CollectionState, StoreError> {
    let state = require(db, name)?;
    match state.kind {
        CollectionKind::Records => Ok(state),
        CollectionKind::Code => {
            let reason = format!("{name} is the code index; use `isolith index` to change it");
            Err(StoreError::Invalid(reason))
        }
        CollectionKind::Memory => {
            let reason = format!("{name} is the memory; use `isolith memory` to change it");
            Err(StoreError::Invalid(reason))
        }
    }
}

/// The code index, if it exists.
pub(crate) fn code(db: &dyn Connection) -> Result<Option<CollectionState>, StoreError> {
    let state = by_name(db, CODE_COLLECTION)?;
    Ok(state.filter(|state| state.kind == CollectionKind::Code))
}

/// Memory, if anything was ever stored in it.
pub(crate) fn memory(db: &dyn Connection) -> Result<Option<CollectionState>, StoreError> {
    let state = by_name(db, MEMORY_COLLECTION)?;
    Ok(state.filter(|state| state.kind == CollectionKind::Memory))
}

/// All collections, by name.
pub(crate) fn all(db: &dyn Connection) -> Result<Vec<CollectionState>, StoreError> {
    let read = || {
        let mut states: Vec<CollectionState> = db
            .prepare_cached(&format!("{STATE} WHERE c.name IS NOT NULL ORDER BY c.name"))?
            .query_map([], state_of)?
            .collect::<Result<_, _>>()?;
        let mut segments: HashMap<u64, Vec<SegmentEntry>> = HashMap::new();
        let mut statement = db.prepare_cached(&format!("{SEGMENT} ORDER BY level, kind"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            segments.entry(row.get(7)?).or_default().push(segment_of(&row)?);
        }
        for state in &mut states {
            if let Some(generation) = &mut state.generation {
                generation.segments = segments.remove(&state.id).unwrap_or_default();
            }
        }
        Ok(states)
    };
    read().during(db, "list collections")
}

const SEGMENT: &str =
    "SELECT level, kind, file, rows, bytes, checksum, quarantined, collection FROM segment";

fn one(
    db: &dyn Connection,
    which: &str,
    key: impl ToSql,
) -> Result<Option<CollectionState>, StoreError> {
    let read = || {
        let mut found = db
            .prepare_cached(&format!("{STATE} {which}"))?
            .query_row([key], state_of)
            .optional()?;
        if let Some(state) = &mut found
            && let Some(generation) = &mut state.generation
        {
            generation.segments = db
                .prepare_cached(&format!("{SEGMENT} WHERE collection = ?1 ORDER BY level, kind"))?
                .query_map([state.id], segment_of)?
                .collect::<Result<_, _>>()?;
        }
        Ok(found)
    };
    read().during(db, "read a collection")
}

fn state_of(row: &Row<'_>) -> isolith_sql::Result<CollectionState> {
    let number: Option<u64> = row.get(8)?;
    let generation = match number {
        Some(number) => Some(Generation {
            number,
            base_to: row.get(9)?,
            complete_to: row.get(10)?,
            segments: Vec::new(),
        }),
        None => None,
    };
    Ok(CollectionState {
        id: row.get(0)?,
        name: row.get(1)?,
        dimension: row.get(2)?,
        metric: named(row, 3, |name| name.parse::<Metric>().ok())?,
        model: row.get(4)?,
        records: row.get(5)?,
        last_change: row.get(6)?,
        unfolded: row.get(7)?,
        kind: named(row, 11, |name| name.parse::<CollectionKind>().ok())?,
        generation,
    })
}

fn segment_of(row: &Row<'_>) -> isolith_sql::Result<SegmentEntry> {
    Ok(SegmentEntry {
        level: named(row, 0, Level::from_name)?,
        kind: named(row, 1, IndexKind::from_name)?,
        file: segment_file(row, 2)?,
        rows: row.get(3)?,
        bytes: row.get(4)?,
        checksum: row.get(5)?,
        quarantined: row.get(6)?,
    })
}

/// The name of a segment's file. A path out of the folder can only come from damage.
pub(crate) fn segment_file(row: &Row<'_>, at: usize) -> isolith_sql::Result<String> {
    named(row, at, |name| is_plain(name).then(|| name.to_owned()))
}

pub(super) fn named<T>(
    row: &Row<'_>,
    column: usize,
    read: impl Fn(&str) -> Option<T>,
) -> isolith_sql::Result<T> {
    let name = row.get_ref(column)?.as_str()?;
    read(name).ok_or_else(|| unreadable(column, format!("unknown value {name:?}")))
}

/// Similar names of collections, best match first.
fn similar(db: &dyn Connection, name: &str) -> Result<Vec<String>, StoreError> {
    let read = || {
        db.prepare_cached("SELECT name FROM collection WHERE name NOT LIKE '@%' LIMIT 1000")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<Vec<String>, _>>()
    };
    let names = read().during(db, "list collections")?;
    let wanted = name.to_lowercase();
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .map(|other| (edit_distance(&wanted, &other.to_lowercase()), other))
        .filter(|(edit_distance, other)| {
            *edit_distance <= 1.max(wanted.chars().count() / 3)
                || (wanted.len() > 2 && other.to_lowercase().contains(&wanted))
        })
        .collect();
    near.sort();
    Ok(near.into_iter().take(MAX_SIMILAR).map(|(_, name)| name).collect())
}

/// The edit distance of two names, in characters.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, there) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *there);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::edit_distance;

    #[test]
    fn edit_distance_counts_changed_characters() {
        for (one, other, count) in
            [("", "", 0), ("a", "", 1), ("docs", "dosc", 2), ("docs", "docs2", 1), ("ü", "u", 1)]
        {
            assert_eq!(edit_distance(one, other), count, "{one} {other}");
        }
    }
}
