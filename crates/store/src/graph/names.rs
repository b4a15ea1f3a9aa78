//! Names of labels, types and properties are stored as ids, to keep rows short.

use std::cell::RefCell;
use std::sync::Arc;

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::FastMap;

use crate::sqlite::During;

/// What a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Label = 0,
    Type = 1,
    Key = 2,
}

/// The names looked up so far in one transaction.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    /// By kind; `None` for a name without an id.
    numbers: RefCell<[FastMap<Box<str>, Option<u32>>; 3]>,
    names: RefCell<FastMap<u32, Arc<str>>>,
    indexed: RefCell<FastMap<u32, bool>>,
}

impl NameTable {
    /// The id of a name, if it has one.
    pub(super) fn find(
        &self,
        db: &dyn Connection,
        kind: NameKind,
        name: &str,
    ) -> Result<Option<u32>, StoreError> {
        if let Some(known) = self.numbers.borrow()[kind as usize].get(name) {
            return Ok(*known);
        }
        let found: Option<u32> = db
            .prepare_cached("SELECT id FROM graph_name WHERE kind = ?1 AND name = ?2")
            .and_then(|mut statement| {
                statement.query_row(params![kind as u8, name], |row| row.get(0)).optional()
            })
            .during(db, "look up a name of the graph")?;
        self.numbers.borrow_mut()[kind as usize].insert(name.into(), found);
        Ok(found)
    }

    /// The id of a name, assigning one if needed. `indexed` says whether nodes can be looked up
    /// by a new property.
    pub(super) fn find_or_make(
        &self,
        db: &dyn Connection,
        kind: NameKind,
        name: &str,
        indexed: bool,
    ) -> Result<u32, StoreError> {
        if let Some(number) = self.find(db, kind, name)? {
            return Ok(number);
        }
        let sql = "INSERT INTO graph_name (kind, name, indexed) VALUES (?1, ?2, ?3) RETURNING id";
        let number: u32 = db
            .prepare_cached(sql)
            .and_then(|mut statement| {
                statement.query_row(params![kind as u8, name, indexed], |row| row.get(0))
            })
            .during(db, "add a name to the graph")?;
        self.numbers.borrow_mut()[kind as usize].insert(name.into(), Some(number));
        Ok(number)
    }

    pub(super) fn name(&self, db: &dyn Connection, number: u32) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.names.borrow().get(&number) {
            return Ok(Arc::clone(name));
        }
        let name: String = db
            .prepare_cached("SELECT name FROM graph_name WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([number], |row| row.get(0)))
            .during(db, "look up a name of the graph")?;
        let name: Arc<str> = name.into();
        self.names.borrow_mut().insert(number, Arc::clone(&name));
        Ok(name)
    }

    /// All names of a kind with their ids, sorted by name.
    pub(super) fn all(
        &self,
        db: &dyn Connection,
        kind: NameKind,
    ) -> Result<Vec<(u32, Arc<str>)>, StoreError> {
        let read = || {
            db.prepare_cached("SELECT id, name FROM graph_name WHERE kind = ?1 ORDER BY name")?
                .query_map([kind as u8], |row| Ok((row.get(0)?, row.get::<_, String>(1)?.into())))?
                .collect::<isolith_sql::Result<Vec<_>>>()
        };
        read().during(db, "read the names of the graph")
    }

    /// Records that nodes can no longer be looked up by this property.
    pub(super) fn not_indexed(&self, key: u32) {
        self.indexed.borrow_mut().insert(key, false);
    }

    /// Whether nodes can be looked up by this property.
    pub(super) fn is_indexed(&self, db: &dyn Connection, key: u32) -> Result<bool, StoreError> {
        if let Some(known) = self.indexed.borrow().get(&key) {
            return Ok(*known);
        }
        let found: Option<bool> = db
            .prepare_cached("SELECT indexed FROM graph_name WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([key], |row| row.get(0)).optional())
            .during(db, "look up a name of the graph")?;
        let indexed = found.unwrap_or(true);
        self.indexed.borrow_mut().insert(key, indexed);
        Ok(indexed)
    }
}
