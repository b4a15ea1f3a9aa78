//! Tenants, databases, and collections in them.

use isolith_types::{CollectionInfo, CollectionSpec, DatabaseName, Metadata};
use serde::{Deserialize, Serialize};

use super::{About, Handled, Handling};

/// Creates a tenant, without databases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateTenant {
    /// Its name.
    pub name: String,
}

/// Changes a tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateTenant {
    /// Its name.
    pub name: String,
    /// Its new resource name.
    pub resource_name: String,
}

/// Creates a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateDatabase {
    /// Its tenant, which must exist, and its name.
    pub database: DatabaseName,
}

/// Deletes a database with its collections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteDatabase {
    /// Its tenant and its name.
    pub database: DatabaseName,
}

/// Creates a collection in a database, or finds the one that has its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddCollection {
    /// The database, which must exist.
    pub database: DatabaseName,
    /// Its name in the database, dimension, metric and model.
    pub spec: CollectionSpec,
    /// What to store with it.
    pub metadata: Option<Metadata>,
    /// A JSON object to store with it.
    pub settings: String,
    /// Whether an existing collection is returned, whatever its spec.
    pub get_or_create: bool,
}

/// The reply to [`AddCollection`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectionAdded {
    /// Whether it is new.
    pub created: bool,
    /// The collection.
    pub collection: CollectionInfo,
}

/// Changes what is stored with a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeCollection {
    /// Its name, or [`by_uuid`](isolith_types::by_uuid).
    pub collection: String,
    /// Its new name in its database.
    pub name: Option<String>,
    /// Replaces all of its metadata.
    pub metadata: Option<Metadata>,
    /// Replaces its settings, a JSON object.
    pub settings: Option<String>,
}

/// Deletes all collections of users, and all tenants and databases except the default ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResetDatabases;

impl Handled for CreateTenant {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for UpdateTenant {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for CreateDatabase {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for DeleteDatabase {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}

impl Handled for AddCollection {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing()
    }
}

impl Handled for ChangeCollection {
    fn handling(&self) -> Handling<'_> {
        Handling::of(About::Collection(&self.collection))
    }
}

impl Handled for ResetDatabases {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().alone()
    }
}
