//! Records: those that can be read with their vectors, and what indexes and the metadata fields
//! still know of the others.

use std::collections::{BTreeMap, HashMap, HashSet};

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::Metadata;
use serde_json::{Value as Json, json};

use super::Embedder;
use super::indexes::{Index, KnownColumns, evidence};
use super::rebuild::Rescue;
use super::record::{OldRecord, RECORDS, RecordSaver, Restored};
use super::report::{Extent, MAX_NAMED_IDS};
use crate::sqlite::During;
use crate::write::IN_A_LIST;

const INDEXES: [Index; 2] = [
    Index {
        from: "record INDEXED BY sqlite_autoindex_record_1",
        row: "row",
        columns: &["collection", "id"],
        unique: true,
        has_all: true,
    },
    Index {
        from: "record INDEXED BY sqlite_autoindex_record_2",
        row: "row",
        columns: &["collection", "change"],
        unique: true,
        has_all: true,
    },
];

/// The table `field`, read by itself; a row occurs once for each of its values.
const FIELD: Index =
    Index { from: "field", row: "row", columns: &["key", "value"], unique: false, has_all: false };

/// Keys of fields, in table order and in index order.
const FIELD_KEYS: [Index; 2] = [
    Index {
        from: "field_key NOT INDEXED",
        row: "id",
        columns: &["id", "name", "type"],
        unique: true,
        has_all: true,
    },
    Index {
        from: "field_key INDEXED BY sqlite_autoindex_field_key_1",
        row: "id",
        columns: &["collection", "name", "type"],
        unique: true,
        has_all: true,
    },
];

impl Rescue<'_> {
    /// Saves records with their vectors or not at all: nothing is invented. Vectors of passages
    /// are recomputed from their texts.
    pub(super) fn records(&mut self, embedder: &Embedder<'_>) -> Result<(), StoreError> {
        let mut saver = RecordSaver::new(self.old, self.work, embedder)?;
        let highest = self.highest("record", &INDEXES)?;
        let gaps = self.walk(RECORDS, 0..=highest, &mut |row| {
            saver.take(row);
            Ok(())
        })?;
        let known_lost = saver.lost_rows();
        let found = evidence(
            (self.old, self.work.db),
            self.work.deadline,
            ("record", "row"),
            &INDEXES,
            &known_lost,
        )?;
        let metadata = self.metadata_of(found.missing.keys().copied().collect())?;
        let mut fates: BTreeMap<(Extent, &str), Vec<String>> = BTreeMap::new();
        for (row, missing) in &found.missing {
            let metadata = metadata.get(row);
            let (fate, id) = restore(&mut saver, *row, &missing.known, metadata)?;
            match fate {
                // The row exists under another number: the index is damaged.
                RecordFate::Taken if !gaps.contains(*row) => {}
                RecordFate::Taken => fates.entry((Extent::Lost, UNREADABLE)).or_default().push(id),
                RecordFate::Is(extent, reason) => {
                    fates.entry((extent, reason)).or_default().push(id)
                }
            }
        }
        let lost = saver.finish()?;
        for ((extent, reason), ids) in fates {
            if extent == Extent::Lost {
                self.note_lost(ids.len() as u64, &ids);
            }
            self.lose_named("record", extent, ids, reason.to_owned());
        }
        for (table, extent, tally) in lost.tallies() {
            if extent == Extent::Lost {
                self.note_lost(tally.count, &tally.ids);
            }
            self.push_tally(table, extent, tally);
        }
        let different = self.ids_of(&found.different)?;
        let reason = "the table and an index disagree; the table was kept".to_owned();
        self.lose_named("record", Extent::Doubtful, different, reason);
        self.lose_unknown("record", found.unknown(&gaps), &gaps.reason, false);
        Ok(())
    }

    fn note_lost(&mut self, count: u64, ids: &[String]) {
        self.report.lost_records += count;
        let room = MAX_NAMED_IDS.saturating_sub(self.report.lost_ids.len());
        self.report.lost_ids.extend(ids.iter().take(room).cloned());
    }

    fn ids_of(&self, rows: &HashSet<i64>) -> Result<Vec<String>, StoreError> {
        let db = self.work.db;
        let id = |row: &i64| {
            db.prepare_cached("SELECT id FROM record WHERE row = ?1")?
                .query_row([row], |found| found.get(0))
        };
        rows.iter().map(id).collect::<Result<_, _>>().during(db, "read ids")
    }

    /// Restores the metadata of these rows from the filter fields. The order of lists is not
    /// known there.
    fn metadata_of(&self, rows: HashSet<i64>) -> Result<HashMap<i64, Metadata>, StoreError> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let mut keys = HashMap::new();
        for index in &FIELD_KEYS {
            index.read(self.old, self.work.deadline, &mut |key, values| {
                if let [_, Value::Text(name), Value::Integer(of_type)] = values.as_slice() {
                    keys.entry(key).or_insert_with(|| (name.clone(), *of_type));
                }
                Ok(())
            })?;
        }
        let mut found: HashMap<i64, serde_json::Map<String, Json>> = HashMap::new();
        FIELD.read(self.old, self.work.deadline, &mut |row, mut values| {
            let (Some(value), Some(Value::Integer(key))) = (values.pop(), values.pop()) else {
                return Ok(());
            };
            let Some((name, of_type)) = keys.get(&key).filter(|_| rows.contains(&row)) else {
                return Ok(());
            };
            let in_a_list = i64::from(IN_A_LIST);
            let Some(value) = json_of(value, of_type % in_a_list) else { return Ok(()) };
            let place = found.entry(row).or_default().entry(name.clone());
            if *of_type < in_a_list {
                place.or_insert(value);
            } else if let Json::Array(list) = place.or_insert(Json::Array(Vec::new()))
                && !list.contains(&value)
            {
                list.push(value);
            }
            Ok(())
        })?;
        let parsed = found.into_iter().filter_map(|(row, fields)| {
            Some((row, Metadata::from_json(Json::Object(fields)).ok()?))
        });
        Ok(parsed.collect())
    }
}

/// Converts a field's value to JSON.
fn json_of(value: Value, of_type: i64) -> Option<Json> {
    match (value, of_type) {
        (Value::Integer(number), 0) => Some(json!(number)),
        (Value::Real(number), 0) => Some(json!(number)),
        (Value::Text(text), 1) => Some(json!(text)),
        (Value::Integer(flag), 2) => Some(json!(flag != 0)),
        _ => None,
    }
}

enum RecordFate {
    Is(Extent, &'static str),
    /// Its id or change number belongs to another record.
    Taken,
}

const UNREADABLE: &str = "they could not be read, but an index still lists them";

/// Saves what is known of a record, and returns its fate.
fn restore(
    saver: &mut RecordSaver<'_>,
    row: i64,
    known: &KnownColumns,
    metadata: Option<&Metadata>,
) -> Result<(RecordFate, String), StoreError> {
    let integer = |name: &str| match known.get(name) {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    };
    let Some(Value::Text(id)) = known.get("id") else {
        return Ok((RecordFate::Is(Extent::Lost, UNREADABLE), format!("row {row}")));
    };
    let record = integer("collection").map(|collection| OldRecord {
        row,
        collection,
        id: id.clone(),
        change: integer("change").unwrap_or(0),
        created_at: 0,
        updated_at: 0,
        metadata: metadata.cloned().unwrap_or_default(),
        document: None,
    });
    let fate = match record.map(|record| saver.restore(record)).transpose()? {
        Some(Restored::Saved) => RecordFate::Is(
            Extent::Partial,
            "their documents and times are lost; ids, vectors and metadata were saved",
        ),
        Some(Restored::OfCode) => RecordFate::Is(Extent::Derived, "chunks of code"),
        Some(Restored::Taken) => RecordFate::Taken,
        Some(Restored::NotEnough) | None => RecordFate::Is(Extent::Lost, UNREADABLE),
    };
    Ok((fate, id.clone()))
}

/// The kind of a collection in the new truth.
pub(super) fn kind_of(db: &dyn Connection, collection: i64) -> Result<Option<String>, StoreError> {
    db.prepare_cached("SELECT kind FROM collection WHERE id = ?1")
        .and_then(|mut statement| {
            statement.query_row(params![collection], |row| row.get(0)).optional()
        })
        .during(db, "read collections")
}
