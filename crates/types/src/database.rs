use serde::{Deserialize, Serialize};

use crate::{Metadata, Metric};

/// The tenant that every store has.
pub const DEFAULT_TENANT: &str = "default_tenant";

/// The database of the default tenant that collections belong to unless another one is named.
pub const DEFAULT_DATABASE: &str = "default_database";

/// Who databases belong to. Names of databases are unique within a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Unique in the store.
    pub name: String,
    /// A name of a resource elsewhere, which is only stored.
    pub resource_name: Option<String>,
}

/// Names a database. Names of collections are unique within one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatabaseName {
    /// The tenant that it belongs to.
    pub tenant: String,
    /// Its name.
    pub database: String,
}

impl Default for DatabaseName {
    fn default() -> Self {
        Self { tenant: DEFAULT_TENANT.to_owned(), database: DEFAULT_DATABASE.to_owned() }
    }
}

/// A database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    /// Assigned when it was created.
    pub uuid: String,
    /// Its tenant and its name.
    pub name: DatabaseName,
}

/// A collection with everything that a client can attach to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectionInfo {
    /// Assigned when it was created; never changes.
    pub uuid: String,
    /// Its name within its database.
    pub name: String,
    /// Where it is.
    pub database: DatabaseName,
    /// The length of its vectors; `None` until the first vector if it was not given.
    pub dimension: Option<u32>,
    /// The distance function.
    pub metric: Metric,
    /// The id of the embedding model, if known.
    pub model: Option<String>,
    /// The number of records.
    pub records: u64,
    /// What a client stored with it.
    pub metadata: Option<Metadata>,
    /// A JSON object that clients read and that is only stored.
    pub settings: String,
    /// The metadata keys that records have or had, and a type for each; at most 1,000.
    pub keys: Vec<(String, KeyType)>,
}

/// The type of values of a metadata key, or of the elements of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    /// True or false.
    Bool,
    /// Whole numbers.
    Integer,
    /// Other numbers.
    Float,
    /// Strings.
    Text,
}

/// The name under which operations find a collection by its uuid, whatever it is called and
/// whichever database it is in. No collection has such a name.
pub fn by_uuid(uuid: &str) -> String {
    format!("@{uuid}")
}
