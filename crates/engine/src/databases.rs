//! Tenants, databases, and the collections in them.

use std::sync::atomic::Ordering;

use isolate::Bulk;
use isolith_protocol::{
    AddCollection, ChangeCollection, CollectionAdded, CollectionDeleted, CountCollections,
    CreateDatabase, CreateTenant, DeleteDatabase, DeleteRecords, FindCollection, GetDatabase,
    GetTenant, ListCollections, ListDatabases, NearRecord, QueryRecords, RecordsDeleted,
    RecordsQueried, ResetDatabases, UpdateTenant, Which, WhichCollection,
};
use isolith_types::{CollectionInfo, Database, DatabaseName, Failure, Filter, Tenant};

use crate::open::Engine;
use crate::search::Answered;
use crate::writes::Written;

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
