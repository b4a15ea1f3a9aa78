//! Copying one record from the damaged truth to the new one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, Row, Statement, params};
use isolith_types::Metadata;

use super::Embedder;
use super::records::kind_of;
use super::report::{Extent, MAX_NAMED_IDS};
use crate::check::is_finite;
use crate::schema::NEW_UUID;
use crate::sqlite::During;
use crate::write::{Fields, Work};

/// The first column is the row number.
pub(super) const RECORDS: &str = "SELECT row, collection, id, change, created_at, updated_at, \
    metadata, document FROM record WHERE row BETWEEN ?1 AND ?2 ORDER BY row";

/// Saves records with their vectors one by one, and collects those that it cannot save.
pub(super) struct RecordSaver<'a> {
    work: Work<'a>,
    vector: Statement<'a>,
    dimensions: HashMap<i64, Option<i64>>,
    fields: HashMap<i64, Fields<'a>>,
    /// The collection whose vectors can be recomputed, and how.
    memory: Option<i64>,
    embedder: &'a Embedder<'a>,
    lost: LostRecords,
    /// The error that keeps the new truth from being written.
    failed: Option<StoreError>,
}

/// Records that were partly readable but could not be saved.
#[derive(Default)]
pub(super) struct LostRecords {
    without_vector: Tally,
    broken: Tally,
    /// Chunks of code: their files are reindexed.
    of_code: Tally,
    rows: HashSet<i64>,
}

impl LostRecords {
    /// The tallies that are not empty, each with the table that was damaged.
    pub(super) fn tallies(self) -> impl Iterator<Item = (&'static str, Extent, Tally)> {
        let all = [
            ("vector", Extent::Lost, self.without_vector),
            ("record", Extent::Lost, self.broken),
            ("record", Extent::Derived, self.of_code),
        ];
        all.into_iter().filter(|(_, _, tally)| tally.count > 0)
    }
}

/// The result of restoring a partly known record.
pub(super) enum Restored {
    Saved,
    /// A chunk of code, which reindexing recreates.
    OfCode,
    /// Its id or change number belongs to another record.
    Taken,
    /// Its vector is lost, or it is useless without its text.
    NotEnough,
}

impl<'a> RecordSaver<'a> {
    pub(super) fn new(
        old: &'a dyn Connection,
        work: Work<'a>,
        embedder: &'a Embedder<'a>,
    ) -> Result<Self, StoreError> {
        let dimensions = || {
            work.db
                .prepare("SELECT id, dimension FROM collection")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<HashMap<_, _>, _>>()
        };
        let memory = || {
            work.db
                .prepare("SELECT id FROM collection WHERE kind = 'memory' AND model = ?1")?
                .query_row([embedder.model], |row| row.get(0))
                .optional()
        };
        Ok(Self {
            work,
            memory: memory().during(work.db, "read collections")?,
            embedder,
            vector: old
                .prepare("SELECT data FROM vector WHERE row = ?1")
                .during(old, "read vectors")?,
            dimensions: dimensions().during(work.db, "read collections")?,
            fields: HashMap::new(),
            lost: LostRecords::default(),
            failed: None,
        })
    }

    pub(super) fn take(&mut self, row: &Row<'_>) {
        if self.failed.is_some() {
            return;
        }
        let old = match OldRecord::of(row) {
            Ok(old) => old,
            Err(error) => {
                self.lost.rows.extend(row.get::<_, i64>(0).ok());
                self.lost.broken.add(row.get(2).ok(), error.to_string());
                return;
            }
        };
        let vector = self.vector.query_row([old.row], |row| row.get::<_, Vec<u8>>(0)).optional();
        let vector = match vector {
            Ok(Some(vector)) if is_finite(&vector) => Ok(Some(vector)),
            vector => self.recomputed_vector(&old).map_or(vector, |made| Ok(Some(made))),
        };
        let reason = match vector {
            Ok(Some(vector)) => {
                match self.save(&old, &vector) {
                    Ok(true) => {}
                    Ok(false) => {
                        let reason = "they violate the schema".to_owned();
                        self.lose(old, reason, false);
                    }
                    Err(error) => self.failed = Some(error),
                }
                return;
            }
            Ok(None) => "no vector was found; the damaged copy still has the text".to_owned(),
            Err(error) => format!("{error}; the damaged copy still has the text"),
        };
        self.lose(old, reason, true);
    }

    fn lose(&mut self, old: OldRecord, reason: String, without_vector: bool) {
        self.lost.rows.insert(old.row);
        let tally = match kind_of(self.work.db, old.collection) {
            Ok(Some(kind)) if kind == "code" => &mut self.lost.of_code,
            Ok(_) if without_vector => &mut self.lost.without_vector,
            Ok(_) => &mut self.lost.broken,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        tally.add(Some(old.id), reason);
    }

    /// Rows that could be read but were not saved.
    pub(super) fn lost_rows(&self) -> HashSet<i64> {
        self.lost.rows.clone()
    }

    /// Saves a record without its text, if its vector is readable.
    pub(super) fn restore(&mut self, mut old: OldRecord) -> Result<Restored, StoreError> {
        match kind_of(self.work.db, old.collection)?.as_deref() {
            Some("code") => return Ok(Restored::OfCode),
            Some("records") => {}
            _ => return Ok(Restored::NotEnough),
        }
        let vector = self.vector.query_row([old.row], |row| row.get::<_, Vec<u8>>(0));
        let Ok(vector) = vector else { return Ok(Restored::NotEnough) };
        let db = self.work.db;
        if old.change == 0 {
            let next = "SELECT max(last_change, (SELECT coalesce(max(change), 0) FROM record), ?1) \
                        + 1 FROM store";
            old.change = db
                .query_row(next, [old.row], |row| row.get(0))
                .during(db, "find a free change number")?;
        }
        (old.created_at, old.updated_at) = (self.work.now, self.work.now);
        if !is_finite(&vector) {
            return Ok(Restored::NotEnough);
        }
        Ok(if self.save(&old, &vector)? { Restored::Saved } else { Restored::Taken })
    }

    /// Recomputes the vector of a passage from its text.
    fn recomputed_vector(&self, old: &OldRecord) -> Option<Vec<u8>> {
        let text = old.document.as_deref().filter(|_| self.memory == Some(old.collection))?;
        (self.embedder.embed)(text)
    }

    pub(super) fn finish(self) -> Result<LostRecords, StoreError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.lost),
        }
    }

    fn save(&mut self, old: &OldRecord, vector: &[u8]) -> Result<bool, StoreError> {
        let fits = is_finite(vector)
            && ensure_collection(self.work, &mut self.dimensions, old.collection, vector.len())?;
        if fits { old.save(self.work, vector, &mut self.fields) } else { Ok(false) }
    }
}

/// A record that could be read.
pub(super) struct OldRecord {
    pub(super) row: i64,
    pub(super) collection: i64,
    pub(super) id: String,
    pub(super) change: i64,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) metadata: Metadata,
    pub(super) document: Option<String>,
}

impl OldRecord {
    fn of(row: &Row<'_>) -> isolith_sql::Result<Self> {
        let metadata = row.get_ref(6)?.as_str()?;
        let metadata = Metadata::parse(metadata)
            .map_err(|error| isolith_sql::Error::Value(format!("metadata: {error}")))?;
        Ok(Self {
            row: row.get(0)?,
            collection: row.get(1)?,
            id: row.get(2)?,
            change: row.get(3)?,
            created_at: row.get(4)?,
            updated_at: row.get(5)?,
            metadata,
            document: row.get(7)?,
        })
    }

    /// Returns false if it violates a constraint, such as a duplicate id.
    fn save<'a>(
        &self,
        work: Work<'a>,
        vector: &[u8],
        fields: &mut HashMap<i64, Fields<'a>>,
    ) -> Result<bool, StoreError> {
        if self.row < 1 || self.change < self.row || self.id.is_empty() {
            return Ok(false);
        }
        let saved = work
            .db
            .prepare_cached(
                "INSERT OR IGNORE INTO record \
                 (row, collection, id, change, created_at, updated_at, metadata, document) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    self.row,
                    self.collection,
                    self.id,
                    self.change,
                    self.created_at,
                    self.updated_at,
                    self.metadata.as_str(),
                    self.document
                ])
            })
            .during(work.db, "save a record")?;
        if saved == 0 {
            return Ok(false);
        }
        work.db
            .prepare_cached("INSERT INTO vector (row, data) VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute(params![self.row, vector]))
            .during(work.db, "save a vector")?;
        let fields = match fields.entry(self.collection) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Fields::of(work, self.collection as u64)?),
        };
        fields.add(self.row as u64, &self.metadata)?;
        Ok(true)
    }
}

/// Ensures that the record's collection exists, with a placeholder name if its own is lost.
/// Returns whether a vector of this size fits.
fn ensure_collection(
    work: Work<'_>,
    dimensions: &mut HashMap<i64, Option<i64>>,
    collection: i64,
    bytes: usize,
) -> Result<bool, StoreError> {
    let dimension = i64::try_from(bytes / 4).unwrap_or(i64::MAX);
    if collection < 1 || bytes == 0 || !bytes.is_multiple_of(4) {
        return Ok(false);
    }
    if let Some(Some(expected)) = dimensions.get(&collection) {
        return Ok(*expected == dimension);
    }
    // A lost name is replaced; the dimension is that of the first vector.
    work.db
        .prepare_cached(&format!(
            "INSERT INTO collection (id, name, dimension, metric, created_at, updated_at, uuid) \
             VALUES (?1, 'recovered-' || ?1, ?2, 'cosine', ?3, ?3, {NEW_UUID}) \
             ON CONFLICT (id) DO UPDATE SET dimension = ?2"
        ))
        .and_then(|mut statement| statement.execute(params![collection, dimension, work.now]))
        .during(work.db, "save a collection")?;
    dimensions.insert(collection, Some(dimension));
    Ok(true)
}

/// Records that could not be saved for the same reason.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) ids: Vec<String>,
    pub(super) reason: String,
}

impl Tally {
    fn add(&mut self, id: Option<String>, reason: String) {
        if self.count == 0 {
            self.reason = reason;
        }
        self.count += 1;
        if self.ids.len() < MAX_NAMED_IDS {
            self.ids.extend(id);
        }
    }
}
