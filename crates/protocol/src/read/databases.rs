//! Reading tenants, databases, and collections in them.

use isolate_types::Bulk;
use isolith_types::{DatabaseName, Filter, Record};
use serde::{Deserialize, Serialize};

use super::{SearchReply, Searched};

/// Gets a tenant; `None` if there is none with this name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetTenant {
    /// Its name.
    pub name: String,
}

/// Gets a database; `None` if there is none with this name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetDatabase {
    /// Its tenant and its name.
    pub database: DatabaseName,
}

/// Lists the databases of a tenant, by name; none if there is no such tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListDatabases {
    /// The tenant's name.
    pub tenant: String,
    /// The number of databases to skip.
    pub offset: u64,
    /// The maximum number of databases.
    pub limit: u64,
}

/// Lists the collections of a database in the order of their creation; none if there is no such
/// database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListCollections {
    /// The database.
    pub database: DatabaseName,
    /// The number of collections to skip.
    pub offset: u64,
    /// The maximum number of collections.
    pub limit: u64,
}

/// Counts the collections of a database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountCollections {
    /// The database.
    pub database: DatabaseName,
}

/// Looks up a collection of users; `None` if it does not exist.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindCollection {
    /// Which collection.
    pub which: WhichCollection,
}

/// Names a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum WhichCollection {
    /// By database and name.
    Named(DatabaseName, String),
    /// By its uuid.
    Uuid(String),
}

/// Finds the records nearest to each of several vectors, in one snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueryRecords {
    /// The collection's name, or [`by_uuid`](isolith_types::by_uuid).
    pub collection: String,
    /// The length of each vector.
    pub dimension: u32,
    /// The vectors, concatenated: f32, little-endian.
    pub vectors: Bulk,
    /// The maximum number of records for each vector.
    pub limit: u32,
    /// Only records that match.
    pub filter: Option<Filter>,
    /// Records with these ids must exist.
    pub required: Vec<String>,
    /// Whether to include the records' vectors.
    pub with_vectors: bool,
}

/// The reply to [`QueryRecords`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordsQueried {
    /// For each vector, the nearest records, best first.
    pub found: Vec<Vec<NearRecord>>,
    /// Which segments the searches used.
    pub searched: Searched,
}

/// A record and its distance from a vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NearRecord {
    /// The record.
    pub record: Record,
    /// Its distance.
    pub distance: f32,
}

impl SearchReply for RecordsQueried {
    fn searched(&self) -> &Searched {
        &self.searched
    }
}
