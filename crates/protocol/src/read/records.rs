//! Reading collections.

use isolate_types::Bulk;
use isolith_types::{Filter, Hit, Scalar};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};

/// Gets the state of a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetCollection {
    /// Its name.
    pub name: String,
}

/// Gets stored records, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetRecords {
    /// The collection's name.
    pub collection: String,
    /// Which records.
    pub which: Selection,
    /// The order; by default that of [`Page`].
    pub sort: Option<Sort>,
    /// Which part of the selection.
    pub page: Page,
    /// Whether to include vectors.
    pub vectors: bool,
}

/// Which records to get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Selection {
    /// The whole collection.
    All,
    /// The records with these ids, in this order; unknown ids are skipped.
    Ids(Vec<String>),
    /// All records that match.
    Matching(Filter),
}

/// Sorts records by a metadata key: numbers, then strings by code point, then false and true.
/// `descending` reverses that. Equal values are in the order of arrival, and so are, at the end
/// either way, records whose value is missing, null or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sort {
    /// The key.
    pub key: String,
    /// Whether the highest value comes first.
    pub descending: bool,
}

/// Which part of a selection to get. Except for [`Selection::Ids`] and with a [`Sort`], the order
/// is that of row numbers, which is the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Only rows after this one: the last row of the previous page, or 0.
    pub after_row: u64,
    /// The number of these rows to skip.
    pub offset: u64,
    /// The maximum number of records.
    pub limit: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self { after_row: 0, offset: 0, limit: u64::MAX }
    }
}

/// Finds the records nearest to a vector.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindNearest {
    /// The collection's name.
    pub collection: String,
    /// The vector: f32, little-endian.
    pub vector: Bulk,
    /// The maximum number of hits.
    pub limit: u32,
    /// Only records that match.
    pub filter: Option<Filter>,
}

/// Finds the records whose documents match the keywords best.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindKeywords {
    /// The collection's name.
    pub collection: String,
    /// The keywords.
    pub text: String,
    /// The maximum number of hits.
    pub limit: u32,
    /// Only records that match.
    pub filter: Option<Filter>,
}

/// Finds the records that are near a vector and match keywords: both rankings fused.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindHybrid {
    /// The collection's name.
    pub collection: String,
    /// The vector: f32, little-endian.
    pub vector: Bulk,
    /// The keywords.
    pub text: String,
    /// The maximum number of hits.
    pub limit: u32,
    /// Only records that match.
    pub filter: Option<Filter>,
}

/// Counts the distinct values of a metadata key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountValues {
    /// The collection's name.
    pub collection: String,
    /// The key.
    pub key: String,
    /// Only values of records that match.
    pub filter: Option<Filter>,
    /// The maximum number of values.
    pub limit: u32,
}

/// The reply to [`CountValues`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueCounts {
    /// The values with the numbers of records that have them, most frequent first. Each element of
    /// a list counts.
    pub values: Vec<(Scalar, u64)>,
    /// The number of distinct values.
    pub total: u64,
}

/// The reply to [`FindNearest`], [`FindKeywords`] and [`FindHybrid`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordsFound {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// Which segments the search used.
    pub searched: Searched,
}

impl SearchReply for RecordsFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}

/// Gets the progress of an ingest; `None` if it is unknown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetLoadProgress {
    /// See [`LoadStep::source`](crate::LoadStep::source).
    pub source: String,
}
