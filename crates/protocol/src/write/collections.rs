//! Collections and their records.

use isolate_types::Bulk;
use isolith_types::{CollectionSpec, Filter, Metadata, Record};
use serde::{Deserialize, Serialize};

use super::{About, Handled, Handling};
use crate::state::LoadProgress;

/// Creates a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateCollection {
    /// Its name, dimension, metric and model.
    pub spec: CollectionSpec,
    /// Whether an existing collection with the same spec is accepted.
    pub if_missing: bool,
}

/// The reply to [`CreateCollection`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionCreated {
    /// Whether it is new.
    pub created: bool,
}

/// Deletes a collection immediately; [`Purge`](super::Purge) removes its rows later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteCollection {
    /// Its name.
    pub name: String,
}

/// The reply to [`DeleteCollection`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionDeleted {
    /// The number of records that it had.
    pub deleted: u64,
    /// Files in `segments/` that are no longer used.
    pub obsolete_files: Vec<String>,
    /// Whether rows remain to be purged.
    pub more: bool,
}

/// Renames a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenameCollection {
    /// Its current name.
    pub from: String,
    /// Its new name.
    pub to: String,
}

/// Stores records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutRecords {
    /// The collection's name.
    pub collection: String,
    /// The records.
    pub records: Records,
    /// What to do with ids that already exist.
    pub mode: PutMode,
    /// The ingest that this batch belongs to, if any.
    pub load: Option<LoadStep>,
}

/// What to do with ids that already exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutMode {
    /// An existing record with the same content stays as it is. With different content, the
    /// new record is rejected if `skip_existing`; otherwise the whole write fails.
    Add {
        /// Whether to reject only the conflicting records.
        skip_existing: bool,
    },
    /// An existing record with different content is replaced.
    Upsert,
    /// An existing record gets the new vector, keeps its document if there is no new one, and
    /// keeps metadata keys that the new metadata does not have; a null removes a key.
    Merge,
}

/// Records, column by column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// One for each record.
    pub ids: Vec<String>,
    /// One for each record, or empty.
    pub documents: Vec<Option<String>>,
    /// One for each record, or empty.
    pub metadatas: Vec<Metadata>,
    /// The length of every vector.
    pub dimension: u32,
    /// All vectors, concatenated: f32, little-endian.
    pub vectors: Bulk,
}

impl Records {
    /// Converts records to columns. Their vectors must have the same length.
    pub fn from_records(records: Vec<Record>) -> Self {
        let mut columns = Self::default();
        let mut vectors = Vec::new();
        for record in records {
            columns.ids.push(record.id);
            columns.documents.push(record.document);
            columns.metadatas.push(record.metadata);
            columns.dimension = u32::try_from(record.vector.len()).unwrap_or(u32::MAX);
            vectors.extend(record.vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        columns.vectors = vectors.into();
        columns
    }
}

/// One batch of an ingest. Repeating a step changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStep {
    /// Identifies the ingest by file, collection and mode.
    pub source: String,
    /// The source row at which the batch starts, from 0.
    pub first_row: u64,
    /// The number of source rows in this batch, including rejected ones.
    pub rows_covered: u64,
    /// The number of these that the reader rejected.
    pub rejected: u64,
    /// Whether this is the end of the source.
    pub finished: bool,
}

/// The reply to [`PutRecords`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordsPut {
    /// New records.
    pub inserted: u64,
    /// Replaced records.
    pub updated: u64,
    /// Records that already had this content.
    pub unchanged: u64,
    /// Rejected rows, with the reason: all of them, or only the first in a repeated answer.
    pub rejected: Vec<(u64, String)>,
    /// The number of rejected rows.
    pub rejected_count: u64,
    /// The progress of the ingest, if this was a step of one.
    pub load: Option<LoadProgress>,
}

/// Changes parts of records. Ids that do not exist are counted, not created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRecords {
    /// The collection's name.
    pub collection: String,
    /// The changes.
    pub patches: Vec<Patch>,
}

/// A partial update of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// The record's id.
    pub id: String,
    /// The new text; `Some(None)` removes it, `None` leaves it unchanged.
    pub document: Option<Option<String>>,
    /// Merged into the existing metadata; a null removes a key.
    pub metadata: Option<Metadata>,
    /// The new vector; `None` leaves it unchanged.
    pub vector: Option<Vec<f32>>,
}

/// The reply to [`UpdateRecords`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordsUpdated {
    /// Changed records.
    pub updated: u64,
    /// Records that already had this content.
    pub unchanged: u64,
    /// Ids that do not exist.
    pub missing: u64,
}

/// Deletes records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteRecords {
    /// The collection's name.
    pub collection: String,
    /// The records to delete.
    pub which: Which,
    /// At most this many, in storage order.
    pub limit: Option<u64>,
}

/// Which records to delete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Which {
    /// The records with these ids. Unknown ids are counted as missing.
    Ids(Vec<String>),
    /// All records that match.
    Matching(Filter),
}

/// The reply to [`DeleteRecords`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordsDeleted {
    /// Records that were deleted.
    pub deleted: u64,
    /// Ids that do not exist.
    pub missing: u64,
}

impl Handled for CreateCollection {
    fn handling(&self) -> Handling<'_> {
        Handling::of(About::Collection(&self.spec.name))
    }
}

impl Handled for DeleteCollection {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for RenameCollection {
    fn handling(&self) -> Handling<'_> {
        Handling::of(About::Collection(&self.to))
    }
}

impl Handled for PutRecords {
    fn handling(&self) -> Handling<'_> {
        let Records { ids, documents, vectors, .. } = &self.records;
        let texts = documents.iter().flatten().map(String::len).sum::<usize>();
        Handling::of(About::Collection(&self.collection))
            .sized(ids.len(), vectors.len() + texts)
            .alone_if(self.load.is_some())
    }
}

impl Handled for UpdateRecords {
    fn handling(&self) -> Handling<'_> {
        let size = |patch: &Patch| {
            let text = patch.document.iter().flatten().map(String::len).sum::<usize>();
            text + patch.vector.as_ref().map_or(0, |vector| vector.len() * 4)
        };
        let bytes = self.patches.iter().map(size).sum();
        Handling::of(About::Collection(&self.collection)).sized(self.patches.len(), bytes)
    }
}

impl Handled for DeleteRecords {
    fn handling(&self) -> Handling<'_> {
        let small = Handling::of(About::Collection(&self.collection));
        match &self.which {
            Which::Ids(ids) => small.sized(ids.len(), ids.iter().map(String::len).sum()),
            Which::Matching(_) => small.alone(),
        }
    }
}
