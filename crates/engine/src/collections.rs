use isolith_protocol::{
    CollectionCreated, CollectionDeleted, CollectionState, CountValues, CreateCollection,
    DeleteCollection, DeleteRecords, GetCollection, GetOverview, GetRecords, Key, Page, Patch,
    PutMode, PutRecords, ReadOperation, Records, RecordsDeleted, RecordsPut, RecordsUpdated,
    RenameCollection, SegmentsOf, Selection, Sort, StoredRecord, UpdateRecords, ValueCounts, Which,
    WriteOperation,
};
use isolith_types::{Collection, CollectionKind, CollectionSpec, Failure, Filter};

use crate::failure::{is_another_store, replaced};
use crate::open::Engine;
use crate::writes::Written;

impl Engine {
    /// Creates a collection. With `if_missing`, an existing one of the same name and kind is
    /// accepted.
    ///
    /// # Errors
    /// `already_exists`; any error of a write.
    pub async fn create_collection(
        &self,
        spec: CollectionSpec,
        if_missing: bool,
    ) -> Result<Written<CollectionCreated>, Failure> {
        self.write(CreateCollection { spec, if_missing }, None).await
    }

    /// Deletes a collection; its rows are removed in the background.
    ///
    /// # Errors
    /// `not_found`; any error of a write.
    pub async fn delete_collection(
        &self,
        name: &str,
    ) -> Result<Written<CollectionDeleted>, Failure> {
        let written = self.write(DeleteCollection { name: name.to_owned() }, None).await?;
        self.purge_soon();
        Ok(written)
    }

    /// Renames a collection.
    ///
    /// # Errors
    /// `not_found`, `already_exists`; any error of a write.
    pub async fn rename_collection(&self, from: &str, to: &str) -> Result<Written<()>, Failure> {
        let operation = RenameCollection { from: from.to_owned(), to: to.to_owned() };
        self.write(operation, None).await
    }

    /// Lists the collections of users in the default database, by name.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn collections(&self) -> Result<Vec<Collection>, Failure> {
        let states = self.states().await?;
        let of_users = states
            .iter()
            .filter(|state| state.kind == CollectionKind::Records && !state.name.starts_with('@'));
        Ok(of_users.map(CollectionState::summary).collect())
    }

    /// Lists all collections, including the code index, with their generations.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn states(&self) -> Result<Vec<CollectionState>, Failure> {
        Ok(self.ask(GetOverview).await?.collections)
    }

    /// Looks up a collection by name.
    ///
    /// # Errors
    /// `not_found`; any error of a read.
    pub async fn collection(&self, name: &str) -> Result<CollectionState, Failure> {
        self.ask(GetCollection { name: name.to_owned() }).await
    }

    /// Adds or replaces records. With a key, repeating the call changes nothing and returns
    /// the same result.
    ///
    /// # Errors
    /// `bad_input` for invalid records; any error of a write. On error, nothing is written.
    pub async fn put(
        &self,
        collection: &str,
        records: Records,
        mode: PutMode,
        key: Option<Key>,
    ) -> Result<Written<RecordsPut>, Failure> {
        let operation = PutRecords { collection: collection.to_owned(), records, mode, load: None };
        self.write(operation, key).await
    }

    /// Updates the given fields of records and merges metadata. Missing ids are counted.
    ///
    /// # Errors
    /// As [`Engine::put`].
    pub async fn update(
        &self,
        collection: &str,
        patches: Vec<Patch>,
        key: Option<Key>,
    ) -> Result<Written<RecordsUpdated>, Failure> {
        self.write(UpdateRecords { collection: collection.to_owned(), patches }, key).await
    }

    /// Deletes records. Missing ids are counted.
    ///
    /// # Errors
    /// `not_found` for the collection; any error of a write.
    pub async fn delete(
        &self,
        collection: &str,
        which: Which,
        key: Option<Key>,
    ) -> Result<Written<RecordsDeleted>, Failure> {
        let operation = DeleteRecords { collection: collection.to_owned(), which, limit: None };
        self.write(operation, key).await
    }

    /// Reads records: in the order of the given ids, otherwise in storage order.
    ///
    /// # Errors
    /// `not_found` for the collection; any error of a read.
    pub async fn get(
        &self,
        collection: &str,
        which: Selection,
        page: Page,
        vectors: bool,
    ) -> Result<Vec<StoredRecord>, Failure> {
        self.get_sorted(collection, which, None, page, vectors).await
    }

    /// Reads records, sorted by a metadata key if given.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub async fn get_sorted(
        &self,
        collection: &str,
        which: Selection,
        sort: Option<Sort>,
        page: Page,
        vectors: bool,
    ) -> Result<Vec<StoredRecord>, Failure> {
        let collection = collection.to_owned();
        self.ask(GetRecords { collection, which, sort, page, vectors }).await
    }

    /// Counts the distinct values of a metadata key, most frequent first.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub async fn count_values(
        &self,
        collection: &str,
        key: &str,
        filter: Option<Filter>,
        limit: u32,
    ) -> Result<ValueCounts, Failure> {
        let (collection, key) = (collection.to_owned(), key.to_owned());
        self.ask(CountValues { collection, key, filter, limit }).await
    }

    /// Sends an operation to the writer and schedules the folding that it makes due.
    pub(crate) async fn write<O: WriteOperation>(
        &self,
        operation: O,
        key: Option<Key>,
    ) -> Result<Written<O::Reply>, Failure> {
        let written = match self.inner.writes.send(operation, key).await {
            // This write was not applied; the next one goes to the new store.
            Err(failure) if is_another_store(&failure) && self.look_again()? => {
                return Err(replaced(self.folder()));
            }
            written => written?,
        };
        if let Some(state) = written.done.collection.as_ref().filter(|_| written.done.fold_due) {
            self.fold_later(&state.name);
        }
        if written.done.graph_due {
            self.build_later(SegmentsOf::Graph);
        }
        Ok(written)
    }

    /// Sends an operation to a reader.
    pub(crate) async fn ask<O: ReadOperation>(&self, operation: O) -> Result<O::Reply, Failure> {
        self.ask_for(operation).await.map(|answered| answered.reply)
    }
}
