//! Collections and their records.

use isolate_types::Bulk;
use isolith_types::{CollectionSpec, Filter, Metadata, Record};
use serde::{Deserialize, Serialize};

use super::{About, Handled, Handling};
use crate::state::LoadProgress;

/// Creates a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateCollection {
    /// What it is to be.
    pub spec: CollectionSpec,
    /// Whether one that already exists is fine, if it is like that.
    pub if_missing: bool,
}

/// The reply to [`CreateCollection`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionCreated {
    /// Whether it did not exist before.
    pub created: bool,
}

/// Deletes a collection at once; its rows go with [`Purge`](super::Purge).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteCollection {
    /// Its name.
    pub name: String,
}

/// The reply to [`DeleteCollection`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectionDeleted {
    /// How many records it had.
    pub deleted: u64,
    /// Names in `segments/` that nothing refers to any more.
    pub obsolete_files: Vec<String>,
    /// Whether rows are left to purge.
    pub more: bool,
}

/// Renames a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RenameCollection {
    /// Its present name.
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
    /// What to do about ids that are taken.
    pub mode: PutMode,
    /// How far this brings an ingest.
    pub load: Option<LoadStep>,
}

/// What to do about ids that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutMode {
    /// A record with the same content is left alone. One with other content is rejected,
    /// alone if `skip_existing`, otherwise with the whole write.
    Add {
        /// Whether to go on without them.
        skip_existing: bool,
    },
    /// A record with other content is replaced as a whole.
    Upsert,
}

/// Records, column by column.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// One for each record.
    pub ids: Vec<String>,
    /// One for each record, or none at all.
    pub documents: Vec<Option<String>>,
    /// One for each record, or none at all.
    pub metadatas: Vec<Metadata>,
    /// The length of every vector.
    pub dimension: u32,
    /// All vectors one after the other: f32, little-endian.
    pub vectors: Bulk,
}

impl Records {
    /// The columns of `records`, whose vectors must be equally long.
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

/// How far a batch brings an ingest. A step that was done before changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStep {
    /// Names file, collection and mode.
    pub source: String,
    /// The first row of the source in this batch, from 0.
    pub first_row: u64,
    /// How many rows of the source this batch stands for.
    pub rows_covered: u64,
    /// How many of these were left out before they came here.
    pub rejected: u64,
    /// Whether this is the end of the source.
    pub finished: bool,
}

/// The reply to [`PutRecords`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordsPut {
    /// Records that are new.
    pub inserted: u64,
    /// Records that were replaced.
    pub updated: u64,
    /// Records that had this content already.
    pub unchanged: u64,
    /// Rows that were left out, with the reason. All of them in the first answer, the first
    /// ones in a repeated one.
    pub rejected: Vec<(u64, String)>,
    /// How many rows were left out.
    pub rejected_count: u64,
    /// The ingest so far, if this was a step of one.
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

/// A change of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// Which record.
    pub id: String,
    /// The new text, or that there is none; unchanged if not given.
    pub document: Option<Option<String>>,
    /// Merged into the present metadata; a null removes a key.
    pub metadata: Option<Metadata>,
    /// The new vector; unchanged if not given.
    pub vector: Option<Vec<f32>>,
}

/// The reply to [`UpdateRecords`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordsUpdated {
    /// Records that were changed.
    pub updated: u64,
    /// Records that had this content already.
    pub unchanged: u64,
    /// Ids that do not exist.
    pub missing: u64,
}

/// Deletes records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteRecords {
    /// The collection's name.
    pub collection: String,
    /// Which records.
    pub which: Which,
}

/// Which records to delete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Which {
    /// These. Ids that do not exist are counted as missing.
    Ids(Vec<String>),
    /// All that match.
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
