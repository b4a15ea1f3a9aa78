use isolith_protocol::{Page, Selection, Sort, StoreError, StoredRecord};
use isolith_sql::{Connection, OptionalExtension, Statement, params};
use isolith_types::{Metadata, Record};

use super::{Snapshot, filter};
use crate::sqlite::During;

impl Snapshot<'_> {
    /// A page of the records of a collection.
    ///
    /// # Errors
    /// If the filter is invalid, the deadline passes or the truth cannot be read.
    pub fn get(
        &self,
        collection: u64,
        which: &Selection,
        page: Page,
        with_vectors: bool,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        self.get_sorted(collection, which, None, page, with_vectors)
    }

    /// A page of the records of a collection, sorted by a key if given.
    ///
    /// # Errors
    /// If the filter is invalid, the deadline passes or the truth cannot be read.
    pub fn get_sorted(
        &self,
        collection: u64,
        which: &Selection,
        sort: Option<&Sort>,
        page: Page,
        with_vectors: bool,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let selected = match which {
            Selection::All => None,
            Selection::Ids(ids) => Some(self.rows_of_ids(collection, ids)?),
            Selection::Matching(filter) => Some(self.rows_matching(collection, filter)?),
        };
        let rows = match (sort, selected) {
            (Some(sort), selected) => self.sorted_page(collection, sort, selected, page)?,
            (None, Some(rows)) => on_page(rows, page),
            (None, None) => self.page_of_all(collection, page)?,
        };
        Ok(self.records(&rows, with_vectors)?.into_iter().flatten().collect())
    }

    /// The number of records in a selection.
    ///
    /// # Errors
    /// If the filter is invalid, the deadline passes or the truth cannot be read.
    pub fn count(&self, collection: u64, which: &Selection) -> Result<u64, StoreError> {
        let count = match which {
            Selection::All => {
                return Ok(self.collection_by_id(collection)?.map_or(0, |state| state.records));
            }
            Selection::Ids(ids) => self.rows_of_ids(collection, ids)?.len(),
            Selection::Matching(filter) => self.rows_matching(collection, filter)?.len(),
        };
        Ok(count as u64)
    }

    /// The rows of all matching records, in ascending order.
    ///
    /// # Errors
    /// If the filter is invalid, the deadline passes or the truth cannot be read.
    pub fn rows_matching(
        &self,
        collection: u64,
        filter: &isolith_types::Filter,
    ) -> Result<Vec<u64>, StoreError> {
        filter::rows_matching(self.connection(), &self.db.deadline, collection, filter)
    }

    /// The records of these rows, in this order; `None` for one that does not exist.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn records(
        &self,
        rows: &[u64],
        with_vectors: bool,
    ) -> Result<Vec<Option<StoredRecord>>, StoreError> {
        let db = self.connection();
        let mut fetch = Fetch::new(db, with_vectors).during(db, "read records")?;
        rows.iter()
            .enumerate()
            .map(|(at, row)| {
                if at % 256 == 0 {
                    self.db.deadline.check("read records")?;
                }
                fetch.one(*row).during(db, "read a record")
            })
            .collect()
    }

    /// The first of these ids that no record has.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn missing_id(
        &self,
        collection: u64,
        ids: &[String],
    ) -> Result<Option<String>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut find =
                db.prepare_cached("SELECT 1 FROM record WHERE collection = ?1 AND id = ?2")?;
            for id in ids {
                if !find.exists(params![collection, id])? {
                    return Ok(Some(id.clone()));
                }
            }
            Ok(None)
        };
        read().during(db, "look for ids")
    }

    fn rows_of_ids(&self, collection: u64, ids: &[String]) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut find =
                db.prepare_cached("SELECT row FROM record WHERE collection = ?1 AND id = ?2")?;
            let mut rows = Vec::with_capacity(ids.len());
            for id in ids {
                rows.extend(
                    find.query_row(params![collection, id], |row| row.get::<_, u64>(0))
                        .optional()?,
                );
            }
            Ok(rows)
        };
        read().during(db, "look for ids")
    }

    /// Rows of a collection are interleaved with those of others. Skipping the others is cheap
    /// if they are few; otherwise rows are read from an index and sorted.
    fn page_of_all(&self, collection: u64, page: Page) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let Some(state) = self.collection_by_id(collection)? else { return Ok(Vec::new()) };
        if state.records == 0 || page.limit == 0 {
            return Ok(Vec::new());
        }
        let wanted = page.limit.saturating_add(page.offset).min(state.records);
        let all = self.last_change()?.max(1);
        let walked = u128::from(wanted) * u128::from(all) / u128::from(state.records);
        if walked > u128::from(state.records) * 2 {
            let rows = super::scan::all_rows(db, collection)?;
            return Ok(on_page(rows, page));
        }
        // The plus sign keeps SQLite from sorting by another index.
        let read = || {
            db.prepare_cached(
                "SELECT row FROM record WHERE row > ?1 AND +collection = ?2 \
                 ORDER BY row LIMIT ?3 OFFSET ?4",
            )?
            .query_map(
                params![
                    signed(page.after_row),
                    collection,
                    signed(page.limit),
                    signed(page.offset)
                ],
                |row| row.get(0),
            )?
            .collect::<Result<Vec<u64>, _>>()
        };
        read().during(db, "walk through records")
    }
}

/// Reads whole records.
struct Fetch<'a> {
    record: Statement<'a>,
    vector: Option<Statement<'a>>,
}

impl<'a> Fetch<'a> {
    fn new(db: &'a dyn Connection, with_vectors: bool) -> isolith_sql::Result<Self> {
        let vector = with_vectors
            .then(|| db.prepare_cached("SELECT data FROM vector WHERE row = ?1"))
            .transpose()?;
        let record = db.prepare_cached(
            "SELECT change, id, document, metadata, created_at, updated_at \
             FROM record WHERE row = ?1",
        )?;
        Ok(Self { record, vector })
    }

    fn one(&mut self, row: u64) -> isolith_sql::Result<Option<StoredRecord>> {
        let found = self.record.query_row([row], |found| {
            Ok(StoredRecord {
                row,
                change: found.get(0)?,
                record: Record {
                    id: found.get(1)?,
                    document: found.get(2)?,
                    metadata: Metadata::from_canonical(found.get(3)?),
                    vector: Vec::new(),
                },
                created_at: found.get(4)?,
                updated_at: found.get(5)?,
            })
        });
        let Some(mut stored) = found.optional()? else { return Ok(None) };
        if let Some(vector) = &mut self.vector {
            let numbers = vector
                .query_row([row], |found| Ok(numbers_of(found.get_ref(0)?.as_blob()?)))
                .optional()?;
            stored.record.vector = numbers.unwrap_or_default();
        }
        Ok(Some(stored))
    }
}

fn numbers_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

pub(super) fn on_page(rows: Vec<u64>, page: Page) -> Vec<u64> {
    let part = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    rows.into_iter()
        .filter(|row| *row > page.after_row)
        .skip(part(page.offset))
        .take(part(page.limit))
        .collect()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
