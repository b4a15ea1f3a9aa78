//! The table `field`, which filters read.

use std::collections::HashMap;

use isolith_protocol::StoreError;
use isolith_sql::{OptionalExtension, Statement, ToSql, params};
use isolith_sql::{ToSqlOutput, ValueRef};
use isolith_types::{Metadata, Scalar, Value};

use super::Work;
use crate::sqlite::During;

/// Added to the type of list elements, to separate them from single values.
pub(crate) const IN_A_LIST: u8 = 4;

/// The type number of a scalar in `field_key`.
pub(crate) fn type_of(scalar: &Scalar) -> u8 {
    match scalar {
        Scalar::Integer(_) | Scalar::Float(_) => 0,
        Scalar::Text(_) => 1,
        Scalar::Bool(_) => 2,
    }
}

/// A scalar as stored in `field.value`.
pub(crate) struct AsValue<'a>(pub(crate) &'a Scalar);

impl ToSql for AsValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Scalar::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Scalar::Integer(whole) => ToSqlOutput::Borrowed(ValueRef::Integer(*whole)),
            Scalar::Float(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
            Scalar::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*value))),
        })
    }
}

/// The fields of one collection, during one write.
pub(crate) struct Fields<'a> {
    work: Work<'a>,
    collection: u64,
    // Only valid during one write: ids of keys are reused after a rollback.
    keys: HashMap<String, [Option<i64>; 8]>,
    add: Statement<'a>,
    remove: Statement<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(work: Work<'a>, collection: u64) -> Result<Self, StoreError> {
        let prepare = |sql| work.db.prepare_cached(sql).during(work.db, "prepare fields");
        Ok(Self {
            work,
            collection,
            keys: HashMap::new(),
            // A list may contain the same element twice.
            add: prepare("INSERT OR IGNORE INTO field (key, value, row) VALUES (?1, ?2, ?3)")?,
            remove: prepare("DELETE FROM field WHERE key = ?1 AND value = ?2 AND row = ?3")?,
        })
    }

    pub(crate) fn add(&mut self, row: u64, metadata: &Metadata) -> Result<(), StoreError> {
        self.for_each(metadata, |this, key, scalar| {
            this.add.execute(params![key, AsValue(scalar), row]).map(|_| ())
        })
    }

    pub(super) fn remove(&mut self, row: u64, metadata: &Metadata) -> Result<(), StoreError> {
        self.for_each(metadata, |this, key, scalar| {
            this.remove.execute(params![key, AsValue(scalar), row]).map(|_| ())
        })
    }

    fn for_each(
        &mut self,
        metadata: &Metadata,
        mut each: impl FnMut(&mut Self, i64, &Scalar) -> isolith_sql::Result<()>,
    ) -> Result<(), StoreError> {
        let db = self.work.db;
        if metadata.as_str() == "{}" {
            return Ok(());
        }
        let mut write_all = || {
            for (name, value) in metadata.entries() {
                match value {
                    Value::One(scalar) => {
                        let key = self.key(&name, type_of(&scalar))?;
                        each(self, key, &scalar)?;
                    }
                    Value::Many(scalars) => {
                        for scalar in scalars {
                            let key = self.key(&name, type_of(&scalar) + IN_A_LIST)?;
                            each(self, key, &scalar)?;
                        }
                    }
                }
            }
            Ok(())
        };
        write_all().during(db, "write fields")
    }

    fn key(&mut self, name: &str, of_type: u8) -> isolith_sql::Result<i64> {
        let known = self.keys.get(name).and_then(|ids| ids[usize::from(of_type)]);
        if let Some(id) = known {
            return Ok(id);
        }
        let id = self.find_or_make(name, of_type)?;
        self.keys.entry(name.to_owned()).or_default()[usize::from(of_type)] = Some(id);
        Ok(id)
    }

    fn find_or_make(&self, name: &str, of_type: u8) -> isolith_sql::Result<i64> {
        let db = self.work.db;
        let found = db
            .prepare_cached(
                "SELECT id FROM field_key WHERE collection = ?1 AND name = ?2 AND type = ?3",
            )?
            .query_row(params![self.collection, name, of_type], |row| row.get(0))
            .optional()?;
        if let Some(id) = found {
            return Ok(id);
        }
        db.prepare_cached(
            "INSERT INTO field_key (collection, name, type) VALUES (?1, ?2, ?3) RETURNING id",
        )?
        .query_row(params![self.collection, name, of_type], |row| row.get(0))
    }
}
