//! Reading collections.

use isolate_types::Bulk;
use isolith_types::{Filter, Hit};
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

/// Which part of a selection to get. Except for [`Selection::Ids`], the order is that of row
/// numbers, which is the order of arrival.
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

/// The reply to [`FindNearest`] and [`FindKeywords`].
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
