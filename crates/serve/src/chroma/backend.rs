//! The store behind the API. If there is none yet, it looks like an empty one.

use isolith_engine::{Engine, WhichCollection};
use isolith_types::{Code, CollectionInfo, Database, DatabaseName, Failure, Tenant, by_uuid};

use super::error::{ChromaError, Reply};
use crate::stores::Stores;

/// The uuid of the default database.
const DEFAULT_UUID: &str = "00000000-0000-0000-0000-000000000000";

pub(super) struct Backend(Option<Engine>);

impl Backend {
    pub(super) fn reading(stores: &Stores) -> Reply<Self> {
        Ok(Self(stores.collections()?))
    }

    pub(super) fn writing(stores: &Stores) -> Reply<Self> {
        Ok(Self(Some(stores.collections_to_write()?)))
    }

    /// The engine, if there is a store.
    pub(super) fn engine(&self) -> Option<&Engine> {
        self.0.as_ref()
    }

    pub(super) async fn tenant(&self, name: &str) -> Result<Option<Tenant>, Failure> {
        let default = DatabaseName::default().tenant;
        match &self.0 {
            Some(engine) => engine.tenant(name).await,
            None if name == default => Ok(Some(Tenant { name: default, resource_name: None })),
            None => Ok(None),
        }
    }

    pub(super) async fn database(&self, name: DatabaseName) -> Result<Option<Database>, Failure> {
        match &self.0 {
            Some(engine) => engine.database(name).await,
            None if name == DatabaseName::default() => Ok(Some(default_database())),
            None => Ok(None),
        }
    }

    pub(super) async fn databases(
        &self,
        tenant: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Database>, Failure> {
        match &self.0 {
            Some(engine) => engine.databases(tenant, offset, limit).await,
            None => {
                let default = Some(default_database()).filter(|it| it.name.tenant == tenant);
                Ok(default.filter(|_| offset == 0 && limit > 0).into_iter().collect())
            }
        }
    }

    pub(super) async fn find(
        &self,
        which: WhichCollection,
    ) -> Result<Option<CollectionInfo>, Failure> {
        match &self.0 {
            Some(engine) => engine.find_collection(which).await,
            None => Ok(None),
        }
    }

    pub(super) async fn collections(
        &self,
        database: DatabaseName,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<CollectionInfo>, Failure> {
        match &self.0 {
            Some(engine) => engine.collections_in(database, offset, limit).await,
            None => Ok(Vec::new()),
        }
    }

    pub(super) async fn count_collections(&self, database: DatabaseName) -> Result<u64, Failure> {
        match &self.0 {
            Some(engine) => engine.count_collections(database).await,
            None => Ok(0),
        }
    }
}

fn default_database() -> Database {
    Database { uuid: DEFAULT_UUID.to_owned(), name: DatabaseName::default() }
}

/// A collection of which a request knows the uuid.
pub(super) struct Addressed<'a> {
    pub(super) engine: &'a Engine,
    pub(super) uuid: &'a str,
    /// The name for operations.
    pub(super) name: String,
}

impl<'a> Addressed<'a> {
    pub(super) fn new(backend: &'a Backend, uuid: &'a str) -> Reply<Self> {
        let engine = backend.engine().ok_or_else(|| no_collection(uuid))?;
        Ok(Self { engine, uuid, name: by_uuid(uuid) })
    }

    /// Explains why an operation with vectors of this length failed.
    pub(super) async fn explain(&self, failure: Failure, dimension: Option<u32>) -> ChromaError {
        match failure.code {
            Code::NotFound | Code::NoStore => no_collection(self.uuid),
            Code::BadInput => match dimension {
                Some(found) => self.dimension_problem(found).await.unwrap_or(failure.into()),
                None => explain_pattern(failure),
            },
            _ => failure.into(),
        }
    }

    async fn dimension_problem(&self, found: u32) -> Option<ChromaError> {
        let which = WhichCollection::Uuid(self.uuid.to_owned());
        let collection = self.engine.find_collection(which).await.ok()??;
        let expected = collection.dimension.filter(|expected| *expected != found)?;
        Some(ChromaError::invalid(format!(
            "Collection expecting embedding with dimension of {expected}, got {found}"
        )))
    }
}

/// Words the error of a regular expression as Chroma does, with its spelling.
fn explain_pattern(failure: Failure) -> ChromaError {
    match failure.message.find("regex parse error") {
        Some(at) => {
            ChromaError::invalid(format!("Regex syntax errror: {}", &failure.message[at..]))
        }
        None => failure.into(),
    }
}

pub(super) fn no_collection(uuid: &str) -> ChromaError {
    ChromaError::not_found(format!("Collection [{uuid}] does not exist."))
}
