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

/// Gets records as they are stored, in pages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetRecords {
    /// The collection's name.
    pub collection: String,
    /// Which of them.
    pub which: Selection,
    /// Where and how many.
    pub page: Page,
    /// Whether their vectors come along.
    pub vectors: bool,
}

/// Which records to get.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Selection {
    /// All of the collection.
    All,
    /// These, in this order; ids that are not there are left out.
    Ids(Vec<String>),
    /// All that match.
    Matching(Filter),
}

/// Which part of a selection to get. All but [`Selection::Ids`] come in the order of
/// their rows, which is the order of their arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Only rows above this one: the last row of the page before, or 0.
    pub after_row: u64,
    /// How many of these to leave out.
    pub offset: u64,
    /// How many to get at most.
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

/// Finds the records whose documents match some words best.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindKeywords {
    /// The collection's name.
    pub collection: String,
    /// The words.
    pub text: String,
    /// The maximum number of hits.
    pub limit: u32,
    /// Only records that match.
    pub filter: Option<Filter>,
}

/// Hits, and what they were found with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordsFound {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
    /// What the search went through.
    pub searched: Searched,
}

impl SearchReply for RecordsFound {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}

/// Gets how far an ingest has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetLoadProgress {
    /// Its source.
    pub source: String,
}
