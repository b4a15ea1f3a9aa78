//! Tenants, databases, and the collections in them.

use std::sync::atomic::Ordering;

use isolate::Bulk;
use isolith_embed::DIMENSION;
use isolith_protocol::{
    AddCollection, ChangeCollection, CollectionAdded, CollectionDeleted, CollectionState,
    CountCollections, CreateDatabase, CreateTenant, DeleteDatabase, DeleteRecords, FindCollection,
    GetDatabase, GetTenant, ListCollections, ListDatabases, NearRecord, QueryRecords,
    RecordsDeleted, RecordsQueried, ResetDatabases, UpdateTenant, Which, WhichCollection,
};
use isolith_types::{
    Code, Collection, CollectionInfo, CollectionSpec, Database, DatabaseName, Failure, Filter,
    Hint, Tenant, by_uuid,
};

use crate::open::Engine;
use crate::search::{Answered, is_built_in};
use crate::writes::Written;

/// The settings of a collection that Chroma's clients did not create.
pub const NO_SETTINGS: &str = "{}";

impl Engine {
    /// Creates a tenant, without databases.
    ///
    /// # Errors
    /// `already_exists`, `bad_input` for the name; any error of a write.
    pub async fn create_tenant(&self, name: &str) -> Result<(), Failure> {
        self.write(CreateTenant { name: name.to_owned() }, None).await.map(drop)
    }

    /// Changes the resource name of a tenant.
    ///
    /// # Errors
    /// `not_found`; any error of a write.
    pub async fn update_tenant(&self, name: &str, resource_name: &str) -> Result<(), Failure> {
        let (name, resource_name) = (name.to_owned(), resource_name.to_owned());
        self.write(UpdateTenant { name, resource_name }, None).await.map(drop)
    }

    /// Looks up a tenant.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn tenant(&self, name: &str) -> Result<Option<Tenant>, Failure> {
        self.ask(GetTenant { name: name.to_owned() }).await
    }

    /// Creates a database.
    ///
    /// # Errors
    /// `not_found` for the tenant, `already_exists`; any error of a write.
    pub async fn create_database(&self, database: DatabaseName) -> Result<(), Failure> {
        self.write(CreateDatabase { database }, None).await.map(drop)
    }

    /// Looks up a database.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn database(&self, database: DatabaseName) -> Result<Option<Database>, Failure> {
        self.ask(GetDatabase { database }).await
    }

    /// Lists the databases of a tenant, by name.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn databases(
        &self,
        tenant: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Database>, Failure> {
        self.ask(ListDatabases { tenant: tenant.to_owned(), offset, limit }).await
    }

    /// Deletes a database with its collections, whose rows are removed in the background.
    ///
    /// # Errors
    /// `not_found`; any error of a write.
    pub async fn delete_database(
        &self,
        database: DatabaseName,
    ) -> Result<Written<CollectionDeleted>, Failure> {
        let written = self.write(DeleteDatabase { database }, None).await?;
        self.purge_soon();
        Ok(written)
    }

    /// Deletes all collections of users, and all tenants and databases but the default ones. The
    /// code index, memory, facts and the graph stay.
    ///
    /// # Errors
    /// Any error of a write.
    pub async fn reset_databases(&self) -> Result<Written<CollectionDeleted>, Failure> {
        let written = self.write(ResetDatabases, None).await?;
        self.purge_soon();
        Ok(written)
    }

    /// Creates a collection in a database, or finds an existing one if that was asked for.
    ///
    /// # Errors
    /// `not_found` for the database, `already_exists`, `bad_input`; any error of a write.
    pub async fn add_collection(
        &self,
        collection: AddCollection,
    ) -> Result<CollectionAdded, Failure> {
        Ok(self.write(collection, None).await?.done.reply)
    }

    /// Changes the name of a collection and what is stored with it.
    ///
    /// # Errors
    /// `not_found`, `already_exists`, `bad_input`; any error of a write.
    pub async fn change_collection(&self, change: ChangeCollection) -> Result<(), Failure> {
        self.write(change, None).await.map(drop)
    }

    /// Looks up a collection of users.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn find_collection(
        &self,
        which: WhichCollection,
    ) -> Result<Option<CollectionInfo>, Failure> {
        self.ask(FindCollection { which }).await
    }

    /// Looks up a collection by its name in a database. Operations find it under the name in the
    /// state, which is another one outside the default database.
    ///
    /// # Errors
    /// `not_found` for the collection or the database; any error of a read.
    pub async fn collection_in(
        &self,
        database: &DatabaseName,
        name: &str,
    ) -> Result<CollectionState, Failure> {
        if database.is_default() {
            return self.collection(name).await;
        }
        let which = WhichCollection::Named(database.clone(), name.to_owned());
        match self.find_collection(which).await? {
            Some(found) => self.collection(&by_uuid(&found.uuid)).await,
            None => {
                self.require_database(database).await?;
                let message = format!("there is no collection {name:?} in the database {database}");
                Err(Failure::new(Code::NotFound, message).with_hint(Hint::ListCollections))
            }
        }
    }

    /// The collections of a database, by name, under their names in it.
    ///
    /// # Errors
    /// `not_found` for the database; any error of a read.
    pub async fn collections_of(
        &self,
        database: &DatabaseName,
    ) -> Result<Vec<Collection>, Failure> {
        if database.is_default() {
            return self.collections().await;
        }
        self.require_database(database).await?;
        let found = self.collections_in(database.clone(), 0, u64::MAX).await?;
        let mut collections = Vec::with_capacity(found.len());
        for CollectionInfo { uuid, name, .. } in found {
            match self.collection(&by_uuid(&uuid)).await {
                Ok(state) => collections.push(Collection { name, ..state.summary() }),
                // It was deleted meanwhile.
                Err(failure) if failure.code == Code::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        collections.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(collections)
    }

    async fn require_database(&self, database: &DatabaseName) -> Result<(), Failure> {
        match self.database(database.clone()).await? {
            Some(_) => Ok(()),
            None => Err(no_database(database)),
        }
    }

    /// Creates a collection, and tells whether it is new. With `get_or_create`, an existing one is
    /// accepted if its metric, dimension and model agree; what is stored with it stays.
    ///
    /// # Errors
    /// `not_found` for the database, `already_exists`, `model_mismatch`; any error of a write.
    pub async fn ensure_collection(&self, new: AddCollection) -> Result<bool, Failure> {
        let AddCollection { database, spec, get_or_create, .. } = &new;
        check_dimension(spec)?;
        if database.is_default() && new.metadata.is_none() && new.settings == NO_SETTINGS {
            let written = self.create_collection(spec.clone(), *get_or_create).await?;
            return Ok(written.done.reply.created);
        }
        let (database, spec) = (database.clone(), spec.clone());
        let CollectionAdded { created, collection } =
            self.add_collection(new).await.map_err(|failure| match failure.code {
                Code::NotFound => no_database(&database),
                _ => failure,
            })?;
        if !created {
            check_same(&spec, &collection)?;
        }
        Ok(created)
    }

    /// Renames a collection within its database.
    ///
    /// # Errors
    /// `not_found`, `already_exists`; any error of a write.
    pub async fn rename_in(
        &self,
        database: &DatabaseName,
        name: &str,
        new_name: &str,
    ) -> Result<(), Failure> {
        if database.is_default() {
            return self.rename_collection(name, new_name).await.map(drop);
        }
        let collection = self.collection_in(database, name).await?.name;
        let name = Some(new_name.to_owned());
        let change = ChangeCollection { collection, name, metadata: None, settings: None };
        self.change_collection(change).await
    }

    /// Lists the collections of a database in the order of their creation.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn collections_in(
        &self,
        database: DatabaseName,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<CollectionInfo>, Failure> {
        self.ask(ListCollections { database, offset, limit }).await
    }

    /// Counts the collections of a database.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn count_collections(&self, database: DatabaseName) -> Result<u64, Failure> {
        self.ask(CountCollections { database }).await
    }

    /// Finds the records nearest to each of several vectors, which are concatenated. Records with
    /// the required ids must exist.
    ///
    /// # Errors
    /// `not_found` for the collection or a record, `bad_input` for a vector or the filter; any
    /// error of a read.
    pub async fn query(
        &self,
        collection: &str,
        (dimension, vectors): (u32, &[f32]),
        limit: u32,
        (filter, required): (Option<Filter>, Vec<String>),
        with_vectors: bool,
    ) -> Result<Vec<Vec<NearRecord>>, Failure> {
        self.load_quarantine().await;
        let bytes: Vec<u8> = vectors.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (collection, vectors) = (collection.to_owned(), Bulk::from(bytes));
        let named = collection.clone();
        let query =
            QueryRecords { collection, dimension, vectors, limit, filter, required, with_vectors };
        let Answered { reply, blamed } = self.ask_for(query).await?;
        let RecordsQueried { found, searched } = reply;
        if searched.quarantined || blamed || !searched.damaged.is_empty() {
            // Segments and folds are kept under the stored name.
            let state = self.collection(&named).await?;
            if searched.quarantined {
                self.fold_later(&state.name);
            }
            self.quarantine_segments(&state.name, &searched, blamed).await;
        }
        Ok(found)
    }

    /// Deletes at most `limit` records.
    ///
    /// # Errors
    /// `not_found` for the collection; any error of a write.
    pub async fn delete_some(
        &self,
        collection: &str,
        which: Which,
        limit: Option<u64>,
    ) -> Result<Written<RecordsDeleted>, Failure> {
        self.write(DeleteRecords { collection: collection.to_owned(), which, limit }, None).await
    }

    pub(crate) fn purge_soon(&self) {
        self.inner.purge_due.store(true, Ordering::Relaxed);
        self.inner.due_changed.notify_one();
    }
}

fn no_database(database: &DatabaseName) -> Failure {
    Failure::new(Code::NotFound, format!("there is no database {database}"))
        .with_hint("Chroma's clients create databases: AdminClient.create_database")
}

/// Checks that vectors of the built-in model fit.
fn check_dimension(spec: &CollectionSpec) -> Result<(), Failure> {
    match spec.dimension {
        Some(dimension)
            if dimension as usize != DIMENSION && is_built_in(spec.model.as_deref()) =>
        {
            let message =
                format!("the built-in model has the dimension {DIMENSION}, not {dimension}");
            Err(Failure::new(Code::BadInput, message).with_hint("leave out the dimension"))
        }
        _ => Ok(()),
    }
}

/// Checks an existing collection as [`Engine::create_collection`] does.
fn check_same(spec: &CollectionSpec, found: &CollectionInfo) -> Result<(), Failure> {
    let name = &spec.name;
    let differs = |difference: String| {
        let message = format!("collection {name:?} exists with {difference}");
        Err(Failure::new(Code::AlreadyExists, message))
    };
    if found.metric != spec.metric {
        return differs(format!("metric {}, not {}", found.metric, spec.metric));
    }
    match (found.dimension, spec.dimension) {
        (Some(there), Some(asked)) if there != asked => {
            return differs(format!("dimension {there}, not {asked}"));
        }
        _ => {}
    }
    match (&found.model, &spec.model) {
        (Some(there), Some(asked)) if there != asked => {
            let message = format!("collection {name:?} has vectors of {there}, not of {asked}");
            Err(Failure::new(Code::ModelMismatch, message))
        }
        _ => Ok(()),
    }
}
