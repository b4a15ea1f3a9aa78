use std::sync::atomic::Ordering;

use isolith_protocol::{
    CollectionCreated, CollectionDeleted, CollectionState, CreateCollection, DeleteCollection,
    DeleteRecords, GetCollection, GetOverview, GetRecords, Key, Page, Patch, PutMode, PutRecords,
    ReadOperation, Records, RecordsDeleted, RecordsPut, RecordsUpdated, RenameCollection,
    SegmentsOf, Selection, StoredRecord, UpdateRecords, Which, WriteOperation,
};
use isolith_types::{Collection, CollectionKind, CollectionSpec, Failure};

use crate::failure::{is_another_store, replaced};
use crate::open::Engine;
use crate::writes::Written;

impl Engine {
    /// Makes a collection. With `if_missing`, one of the same name and kind will do.
    ///
    /// # Errors
    /// `already_exists`, or what keeps it from being written.
    pub async fn create_collection(
        &self,
        spec: CollectionSpec,
        if_missing: bool,
    ) -> Result<Written<CollectionCreated>, Failure> {
        self.write(CreateCollection { spec, if_missing }, None).await
    }

    /// Deletes a collection; its rows go by and by.
    ///
    /// # Errors
    /// `not_found`, or what keeps it from being written.
    pub async fn delete_collection(
        &self,
        name: &str,
    ) -> Result<Written<CollectionDeleted>, Failure> {
        let written = self.write(DeleteCollection { name: name.to_owned() }, None).await?;
        self.inner.purge_due.store(true, Ordering::Relaxed);
        self.inner.due_changed.notify_one();
        Ok(written)
    }

    /// Gives a collection another name.
    ///
    /// # Errors
    /// `not_found`, `already_exists`, or what keeps it from being written.
    pub async fn rename_collection(&self, from: &str, to: &str) -> Result<Written<()>, Failure> {
        let operation = RenameCollection { from: from.to_owned(), to: to.to_owned() };
        self.write(operation, None).await
    }

    /// The collections that users have made, by name.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn collections(&self) -> Result<Vec<Collection>, Failure> {
        let states = self.states().await?;
        let of_users = states.iter().filter(|state| state.kind == CollectionKind::Records);
        Ok(of_users.map(CollectionState::summary).collect())
    }

    /// All collections, the code index among them, with their generations.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn states(&self) -> Result<Vec<CollectionState>, Failure> {
        Ok(self.ask(GetOverview).await?.collections)
    }

    /// One collection.
    ///
    /// # Errors
    /// `not_found`, or what keeps the store from being read.
    pub async fn collection(&self, name: &str) -> Result<CollectionState, Failure> {
        self.ask(GetCollection { name: name.to_owned() }).await
    }

    /// Adds or replaces records. With a key, a repeat of the same call changes nothing
    /// and answers the same.
    ///
    /// # Errors
    /// What is wrong with the records, or keeps them from being written; then none is.
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

    /// Changes parts of records; metadata is merged. Missing ids are counted.
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
    /// `not_found` for the collection, or what keeps it from being written.
    pub async fn delete(
        &self,
        collection: &str,
        which: Which,
        key: Option<Key>,
    ) -> Result<Written<RecordsDeleted>, Failure> {
        self.write(DeleteRecords { collection: collection.to_owned(), which }, key).await
    }

    /// Records as they are stored: by ids in the order asked for, else by row.
    ///
    /// # Errors
    /// `not_found` for the collection, or what keeps the store from being read.
    pub async fn get(
        &self,
        collection: &str,
        which: Selection,
        page: Page,
        vectors: bool,
    ) -> Result<Vec<StoredRecord>, Failure> {
        self.ask(GetRecords { collection: collection.to_owned(), which, page, vectors }).await
    }

    /// Has an operation carried out by the writer, and notes what is due after it.
    pub(crate) async fn write<O: WriteOperation>(
        &self,
        operation: O,
        key: Option<Key>,
    ) -> Result<Written<O::Reply>, Failure> {
        let written = match self.inner.writes.send(operation, key).await {
            // The next write goes to the store that is there now; this one was not written.
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

    /// Has an operation answered by a reader.
    pub(crate) async fn ask<O: ReadOperation>(&self, operation: O) -> Result<O::Reply, Failure> {
        self.ask_for(operation).await.map(|answered| answered.reply)
    }
}
