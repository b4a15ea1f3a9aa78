use isolith_protocol::{
    CollectionState, Done, LoadStep, PutMode, PutRecords, Records, RecordsPut, StoreError,
};
use isolith_sql::{Statement, params};
use isolith_types::Metadata;

use super::change::Changes;
use super::fields::Fields;
use super::load;
use super::validate;
use super::{Perform, Work, shorten};
use crate::read::collections;
use crate::sqlite::During;

impl Perform for PutRecords {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        put(work, &self.collection, &self.records, self.mode, self.load.as_ref())
    }

    fn shorten(reply: &mut RecordsPut) -> bool {
        shorten(&mut reply.rejected)
    }
}

/// Maximum number of ids in an error.
const MAX_NAMED_IDS: usize = 5;

/// Adds or replaces records.
pub(super) fn put(
    work: Work<'_>,
    collection: &str,
    records: &Records,
    mode: PutMode,
    step: Option<&LoadStep>,
) -> Result<Done<RecordsPut>, StoreError> {
    let state = collections::require_records(work.db, collection)?;
    let progress = match step {
        Some(step) => match load::continue_at(work, &state, step)? {
            load::Continue::Done(progress) => {
                let unchanged = records.ids.len() as u64;
                let reply = RecordsPut { unchanged, load: Some(progress), ..RecordsPut::default() };
                return Changes::begin(work, &state)?.finish(reply);
            }
            load::Continue::From(progress) => Some(progress),
        },
        None => None,
    };
    validate::records(records, &state)?;
    if state.dimension.is_none() && !records.ids.is_empty() {
        fix_dimension(work, &state, records.dimension)?;
    }
    let changes = Changes::begin(work, &state)?;
    let mut batch = PutBatch::new(work, &state, changes)?;
    for at in 0..records.ids.len() {
        batch.put(&RequestRow::of(records, at), mode)?;
    }
    let mut reply = batch.reply;
    if let (PutMode::Add { skip_existing: false }, true) = (mode, reply.rejected_count > 0) {
        let ids = reply.rejected.iter().take(MAX_NAMED_IDS);
        let ids = ids.map(|(row, _)| records.ids[*row as usize].clone()).collect();
        return Err(StoreError::IdsExist { count: reply.rejected_count, ids });
    }
    if let (Some(step), Some(progress)) = (step, progress) {
        reply.load = Some(load::record(work, &state, step, progress, &reply)?);
    }
    batch.changes.finish(reply)
}

/// Sets the dimension of a collection to that of its first vector.
pub(super) fn fix_dimension(
    work: Work<'_>,
    state: &CollectionState,
    dimension: u32,
) -> Result<(), StoreError> {
    work.db
        .prepare_cached("UPDATE collection SET dimension = ?2 WHERE id = ?1")
        .and_then(|mut statement| statement.execute(params![state.id, dimension]))
        .during(work.db, "set the dimension")?;
    Ok(())
}

/// One record of a request.
struct RequestRow<'a> {
    at: usize,
    id: &'a str,
    document: Option<&'a str>,
    metadata: &'a Metadata,
    vector: &'a [u8],
}

impl<'a> RequestRow<'a> {
    fn of(records: &'a Records, at: usize) -> Self {
        static EMPTY: std::sync::LazyLock<Metadata> = std::sync::LazyLock::new(Metadata::default);
        let width = records.dimension as usize * 4;
        Self {
            at,
            id: &records.ids[at],
            document: records.documents.get(at).and_then(Option::as_deref),
            metadata: records.metadatas.get(at).unwrap_or(&EMPTY),
            vector: &records.vectors[at * width..(at + 1) * width],
        }
    }
}

/// Shared state of putting many records.
struct PutBatch<'a> {
    work: Work<'a>,
    collection: u64,
    changes: Changes<'a>,
    reply: RecordsPut,
    fields: Fields<'a>,
    insert: Statement<'a>,
    insert_vector: Statement<'a>,
}

impl<'a> PutBatch<'a> {
    fn new(
        work: Work<'a>,
        state: &CollectionState,
        changes: Changes<'a>,
    ) -> Result<Self, StoreError> {
        let prepare = |sql| work.db.prepare_cached(sql).during(work.db, "prepare to put records");
        Ok(Self {
            work,
            collection: state.id,
            changes,
            reply: RecordsPut::default(),
            fields: Fields::of(work, state.id)?,
            insert: prepare(
                "INSERT INTO record \
                 (row, collection, id, change, created_at, updated_at, metadata, document) \
                 VALUES (?1, ?2, ?3, ?1, ?4, ?4, ?5, ?6) ON CONFLICT (collection, id) DO NOTHING",
            )?,
            insert_vector: prepare("INSERT INTO vector (row, data) VALUES (?1, ?2)")?,
        })
    }

    fn put(&mut self, row: &RequestRow<'_>, mode: PutMode) -> Result<(), StoreError> {
        let number = self.changes.next();
        let without_nulls;
        let metadata = match mode {
            PutMode::Merge => {
                without_nulls = Metadata::default().merged_with(row.metadata);
                &without_nulls
            }
            PutMode::Add { .. } | PutMode::Upsert => row.metadata,
        };
        let inserted = self
            .insert
            .execute(params![
                number,
                self.collection,
                row.id,
                self.work.now,
                metadata.as_str(),
                row.document
            ])
            .during(self.work.db, "insert a record")?;
        if inserted == 0 {
            return self.meet(row, mode);
        }
        self.insert_vector
            .execute(params![number, row.vector])
            .during(self.work.db, "insert a vector")?;
        self.fields.add(number, metadata)?;
        self.changes.inserted();
        self.reply.inserted += 1;
        Ok(())
    }

    /// Handles a record whose id exists, according to the mode.
    fn meet(&mut self, new: &RequestRow<'_>, mode: PutMode) -> Result<(), StoreError> {
        let old = StoredVersion::find(self.work, self.collection, new.id)?.ok_or_else(|| {
            StoreError::Corrupt {
                path: self.work.db.path().unwrap_or_default().into(),
                reason: format!("{:?} is in the index of ids but not in the table", new.id),
            }
        })?;
        let same_vector = old.has_vector(self.work, new.vector)?;
        let same =
            same_vector && old.metadata == *new.metadata && old.document.as_deref() == new.document;
        match mode {
            _ if same => self.reply.unchanged += 1,
            PutMode::Add { .. } => {
                self.reply.rejected_count += 1;
                let reason = format!("id {:?} exists with different content", new.id);
                self.reply.rejected.push((new.at as u64, reason));
            }
            PutMode::Upsert => {
                let vector = (!same_vector).then_some(new.vector);
                let version = NewVersion { document: new.document, metadata: new.metadata, vector };
                self.replace(&old, version)?;
            }
            PutMode::Merge => {
                let vector = (!same_vector).then_some(new.vector);
                let document = new.document.or(old.document.as_deref());
                let metadata = old.metadata.merged_with(new.metadata);
                let kept = vector.is_none() && document == old.document.as_deref();
                if kept && metadata == old.metadata {
                    self.reply.unchanged += 1;
                } else {
                    self.replace(&old, NewVersion { document, metadata: &metadata, vector })?;
                }
            }
        }
        Ok(())
    }

    fn replace(&mut self, old: &StoredVersion, new: NewVersion<'_>) -> Result<(), StoreError> {
        old.replace(self.work, &mut self.changes, &mut self.fields, new)?;
        self.reply.updated += 1;
        Ok(())
    }
}

/// The stored version of a record, to be compared and perhaps replaced.
pub(super) struct StoredVersion {
    pub(super) row: u64,
    pub(super) change: u64,
    pub(super) metadata: Metadata,
    pub(super) document: Option<String>,
}

/// The new version of a record.
pub(super) struct NewVersion<'a> {
    pub(super) document: Option<&'a str>,
    pub(super) metadata: &'a Metadata,
    /// `None` leaves the vector unchanged.
    pub(super) vector: Option<&'a [u8]>,
}

impl StoredVersion {
    pub(super) fn find(
        work: Work<'_>,
        collection: u64,
        id: &str,
    ) -> Result<Option<Self>, StoreError> {
        use isolith_sql::OptionalExtension as _;
        work.db
            .prepare_cached(
                "SELECT row, change, metadata, document FROM record \
                 WHERE collection = ?1 AND id = ?2",
            )
            .and_then(|mut statement| {
                statement
                    .query_row(params![collection, id], |row| {
                        Ok(Self {
                            row: row.get(0)?,
                            change: row.get(1)?,
                            metadata: Metadata::from_canonical(row.get(2)?),
                            document: row.get(3)?,
                        })
                    })
                    .optional()
            })
            .during(work.db, "look for a record")
    }

    pub(super) fn has_vector(&self, work: Work<'_>, vector: &[u8]) -> Result<bool, StoreError> {
        use isolith_sql::OptionalExtension as _;
        work.db
            .prepare_cached("SELECT data FROM vector WHERE row = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([self.row], |row| Ok(row.get_ref(0)?.as_blob()? == vector))
                    .optional()
            })
            .during(work.db, "compare a vector")
            .map(Option::unwrap_or_default)
    }

    pub(super) fn replace(
        &self,
        work: Work<'_>,
        changes: &mut Changes<'_>,
        fields: &mut Fields<'_>,
        new: NewVersion<'_>,
    ) -> Result<(), StoreError> {
        let change = changes.replaced(self.row, self.change)?;
        let write = || {
            work.db
                .prepare_cached(
                    "UPDATE record SET change = ?2, updated_at = ?3, metadata = ?4, document = ?5 \
                     WHERE row = ?1",
                )?
                .execute(params![
                    self.row,
                    change,
                    work.now,
                    new.metadata.as_str(),
                    new.document
                ])?;
            if let Some(vector) = new.vector {
                work.db
                    .prepare_cached("INSERT OR REPLACE INTO vector (row, data) VALUES (?1, ?2)")?
                    .execute(params![self.row, vector])?;
            }
            Ok(())
        };
        write().during(work.db, "replace a record")?;
        if self.metadata != *new.metadata {
            fields.remove(self.row, &self.metadata)?;
            fields.add(self.row, new.metadata)?;
        }
        Ok(())
    }
}
