use std::sync::atomic::Ordering;

use isolate::Bulk;
use isolith_roles::{ReadJob, ReadReply, SegmentsOf};
use isolith_store::{
    Action, CollectionState, Key, Page, Patch, PutMode, Records, Selection, StoredRecord, Which,
};
use isolith_types::{Code, Collection, CollectionKind, CollectionSpec, Failure, Metadata, Record};

use crate::failure::{is_another_store, replaced};
use crate::open::Engine;
use crate::writes::Written;

/// Records on their way into a collection, by column.
#[derive(Debug, Clone, Default)]
pub struct PutRecords {
    /// Their ids.
    pub ids: Vec<String>,
    /// Their texts, as many as ids.
    pub documents: Vec<Option<String>>,
    /// Their metadata, as many as ids.
    pub metadatas: Vec<Metadata>,
    /// The length of their vectors.
    pub dimension: u32,
    /// Their vectors, one after the other: f32, little-endian.
    pub vectors: Bulk,
}

impl PutRecords {
    /// The columns of `records`, whose vectors must be equally long.
    pub fn from_records(records: Vec<Record>) -> Self {
        let mut columns = Self::default();
        let mut vectors = Vec::new();
        for record in records {
            columns.ids.push(record.id);
            columns.documents.push(record.document);
            columns.metadatas.push(record.metadata);
            columns.dimension = u32::try_from(record.vector.len()).unwrap_or(u32::MAX);
            vectors.extend(record.vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        columns.vectors = vectors.into();
        columns
    }
}

impl Engine {
    /// Makes a collection. With `if_missing`, one of the same name and kind will do.
    ///
    /// # Errors
    /// `already_exists`, or what keeps it from being written.
    pub async fn create_collection(
        &self,
        spec: CollectionSpec,
        if_missing: bool,
    ) -> Result<Written, Failure> {
        self.write(Action::CreateCollection { spec, if_missing }, None).await
    }

    /// Deletes a collection; its rows go by and by.
    ///
    /// # Errors
    /// `not_found`, or what keeps it from being written.
    pub async fn delete_collection(&self, name: &str) -> Result<Written, Failure> {
        let written = self.write(Action::DeleteCollection { name: name.to_owned() }, None).await?;
        self.inner.purge_due.store(true, Ordering::Relaxed);
        self.inner.due_changed.notify_one();
        Ok(written)
    }

    /// Gives a collection another name.
    ///
    /// # Errors
    /// `not_found`, `already_exists`, or what keeps it from being written.
    pub async fn rename_collection(&self, from: &str, to: &str) -> Result<Written, Failure> {
        let action = Action::RenameCollection { from: from.to_owned(), to: to.to_owned() };
        self.write(action, None).await
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
        match self.ask(ReadJob::Overview).await? {
            ReadReply::Overview { collections, .. } => Ok(collections),
            other => Err(misfit(&other)),
        }
    }

    /// One collection.
    ///
    /// # Errors
    /// `not_found`, or what keeps the store from being read.
    pub async fn collection(&self, name: &str) -> Result<CollectionState, Failure> {
        match self.ask(ReadJob::Collection { name: name.to_owned() }).await? {
            ReadReply::Collection(state) => Ok(state),
            other => Err(misfit(&other)),
        }
    }

    /// Adds or replaces records. With a key, a repeat of the same call changes nothing
    /// and answers the same.
    ///
    /// # Errors
    /// What is wrong with the records, or keeps them from being written; then none is.
    pub async fn put(
        &self,
        collection: &str,
        records: PutRecords,
        mode: PutMode,
        key: Option<Key>,
    ) -> Result<Written, Failure> {
        let action = Action::Put {
            collection: collection.to_owned(),
            records: columns(records),
            mode,
            load: None,
        };
        self.write(action, key).await
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
    ) -> Result<Written, Failure> {
        self.write(Action::Update { collection: collection.to_owned(), patches }, key).await
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
    ) -> Result<Written, Failure> {
        self.write(Action::Delete { collection: collection.to_owned(), which }, key).await
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
        let job = ReadJob::Get { collection: collection.to_owned(), which, page, vectors };
        match self.ask(job).await? {
            ReadReply::Records(records) => Ok(records),
            other => Err(misfit(&other)),
        }
    }

    pub(crate) async fn write(&self, action: Action, key: Option<Key>) -> Result<Written, Failure> {
        let collection = action.collection().map(str::to_owned);
        let written = match self.inner.writes.send(action, key).await {
            // The next write goes to the store that is there now; this one was not written.
            Err(failure) if is_another_store(&failure) && self.look_again()? => {
                return Err(replaced(self.folder()));
            }
            written => written?,
        };
        if let Some(collection) = collection.filter(|_| written.outcome.fold_due) {
            self.fold_later(&collection);
        }
        if written.outcome.graph_due {
            self.build_later(SegmentsOf::Graph);
        }
        Ok(written)
    }

    pub(crate) async fn ask(&self, job: ReadJob) -> Result<ReadReply, Failure> {
        self.ask_for(&job).await.map(|answer| answer.reply)
    }
}

pub(crate) fn columns(records: PutRecords) -> Records {
    let PutRecords { ids, documents, metadatas, dimension, vectors } = records;
    Records { ids, documents, metadatas, dimension, vectors }
}

pub(crate) fn misfit(reply: &ReadReply) -> Failure {
    Failure::new(Code::Failed, format!("the reader answered another question: {reply:?}"))
}
