use std::fmt;

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

impl DatabaseName {
    /// Reads `[TENANT/]NAME`; `None` if a part is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let (tenant, database) = text.split_once('/').unwrap_or((DEFAULT_TENANT, text));
        let is_complete = !tenant.is_empty() && !database.is_empty();
        is_complete.then(|| Self { tenant: tenant.to_owned(), database: database.to_owned() })
    }

    /// Whether it is the database of collections for which none was named.
    pub fn is_default(&self) -> bool {
        self.tenant == DEFAULT_TENANT && self.database == DEFAULT_DATABASE
    }
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tenant == DEFAULT_TENANT {
            true => f.write_str(&self.database),
            false => write!(f, "{}/{}", self.tenant, self.database),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_databases_are_read_as_they_are_shown() {
        for text in ["default_database", "other", "team/other", "team/a/b"] {
            assert_eq!(DatabaseName::parse(text).unwrap().to_string(), text);
        }
        assert!(DatabaseName::parse("default_tenant/default_database").unwrap().is_default());
        for text in ["", "/", "team/", "/other"] {
            assert_eq!(DatabaseName::parse(text), None, "{text:?}");
        }
    }
}
