//! Tenants, databases, and collections in them.

use isolith_protocol::{StoreError, WhichCollection};
use isolith_sql::{Connection, OptionalExtension, Row, ToSql, params};
use isolith_types::{
    CollectionInfo, CollectionKind, DEFAULT_DATABASE, DEFAULT_TENANT, Database, DatabaseName,
    KeyType, Metadata, Metric, Tenant,
};

use super::Snapshot;
use super::collections::named;
use crate::sqlite::During;
use crate::write::IN_A_LIST;

/// The number of the database whose collections are stored under their own names.
pub(crate) const DEFAULT: u64 = 1;

impl Snapshot<'_> {
    /// The tenant with this name, if it exists.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn tenant(&self, name: &str) -> Result<Option<Tenant>, StoreError> {
        let db = self.connection();
        db.prepare_cached("SELECT name, resource_name FROM tenant WHERE name = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([name], |row| {
                        Ok(Tenant { name: row.get(0)?, resource_name: row.get(1)? })
                    })
                    .optional()
            })
            .during(db, "read a tenant")
    }

    /// The database with this name, if it exists.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn database(&self, name: &DatabaseName) -> Result<Option<Database>, StoreError> {
        let found = database(self.connection(), name)?;
        Ok(found.map(|(_, uuid)| Database { uuid, name: name.clone() }))
    }

    /// The databases of a tenant, by name.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn databases(
        &self,
        tenant: &str,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<Database>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(
                "SELECT d.uuid, d.name FROM database d JOIN tenant t ON t.id = d.tenant \
                 WHERE t.name = ?1 ORDER BY d.name LIMIT ?2 OFFSET ?3",
            )?
            .query_map(params![tenant, signed(limit), signed(offset)], |row| {
                let name = DatabaseName { tenant: tenant.to_owned(), database: row.get(1)? };
                Ok(Database { uuid: row.get(0)?, name })
            })?
            .collect::<Result<_, _>>()
        };
        read().during(db, "list databases")
    }

    /// What stored names of collections begin with in databases other than the default one.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn prefixes(&self) -> Result<Vec<(String, DatabaseName)>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(
                "SELECT d.id, t.name, d.name FROM database d JOIN tenant t ON t.id = d.tenant \
                 WHERE d.id != ?1 ORDER BY d.id",
            )?
            .query_map([DEFAULT], |row| {
                let name = DatabaseName { tenant: row.get(1)?, database: row.get(2)? };
                Ok((prefix(row.get(0)?), name))
            })?
            .collect::<Result<_, _>>()
        };
        read().during(db, "list databases")
    }

    /// The collections of a database, in the order of their creation.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn collections_in(
        &self,
        name: &DatabaseName,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<CollectionInfo>, StoreError> {
        let db = self.connection();
        let Some((number, _)) = database(db, name)? else { return Ok(Vec::new()) };
        let read = || {
            db.prepare_cached(&format!("{INFO} AND {IN_DATABASE} ORDER BY id LIMIT ?2 OFFSET ?3"))?
                .query_map(params![prefix(number), signed(limit), signed(offset)], |row| {
                    info_of(db, row, |_| Ok(name.clone()))
                })?
                .collect::<Result<_, _>>()
        };
        read().during(db, "list collections")
    }

    /// The number of collections in a database.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn count_collections(&self, name: &DatabaseName) -> Result<u64, StoreError> {
        let db = self.connection();
        let Some((number, _)) = database(db, name)? else { return Ok(0) };
        db.prepare_cached(&format!(
            "SELECT count(*) FROM collection WHERE kind = 'records' AND {IN_DATABASE}"
        ))
        .and_then(|mut statement| statement.query_row([prefix(number)], |row| row.get(0)))
        .during(db, "count collections")
    }

    /// A collection of users, if it exists.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn find_collection(
        &self,
        which: &WhichCollection,
    ) -> Result<Option<CollectionInfo>, StoreError> {
        let db = self.connection();
        match which {
            WhichCollection::Uuid(uuid) => by_uuid(db, uuid),
            WhichCollection::Named(name, collection) => {
                let Some((number, _)) = database(db, name)? else { return Ok(None) };
                by_stored_name(db, &stored_name(number, collection))
            }
        }
    }
}

/// The name under which a collection of a database is stored.
pub(crate) fn stored_name(database: u64, name: &str) -> String {
    format!("{}{name}", prefix(database))
}

/// What the stored names of a database's collections begin with; nothing for the default one.
pub(crate) fn prefix(database: u64) -> String {
    match database {
        DEFAULT => String::new(),
        other => format!("@{other}/"),
    }
}

/// The number of the database, and the name of the collection in it.
pub(crate) fn split(stored: &str) -> (u64, &str) {
    let parts = stored.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    match parts.and_then(|(number, name)| Some((number.parse().ok()?, name))) {
        Some(parts) => parts,
        None => (DEFAULT, stored),
    }
}

/// Selects by the prefix `?1`. A prefix ends with a slash, which is followed by a zero.
pub(crate) const IN_DATABASE: &str = "CASE ?1 WHEN '' THEN name NOT LIKE '@%' \
     ELSE name >= ?1 AND name < substr(?1, 1, length(?1) - 1) || '0' END";

/// The number and the uuid of a database, if it exists.
pub(crate) fn database(
    db: &dyn Connection,
    DatabaseName { tenant, database }: &DatabaseName,
) -> Result<Option<(u64, String)>, StoreError> {
    db.prepare_cached(
        "SELECT d.id, d.uuid FROM database d JOIN tenant t ON t.id = d.tenant \
         WHERE t.name = ?1 AND d.name = ?2",
    )
    .and_then(|mut statement| {
        statement.query_row([tenant, database], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    })
    .during(db, "read a database")
}

pub(crate) fn by_stored_name(
    db: &dyn Connection,
    name: &str,
) -> Result<Option<CollectionInfo>, StoreError> {
    one(db, "name = ?1", name)
}

pub(crate) fn by_uuid(
    db: &dyn Connection,
    uuid: &str,
) -> Result<Option<CollectionInfo>, StoreError> {
    one(db, "uuid = ?1", uuid)
}

const INFO: &str = "SELECT name, uuid, dimension, metric, model, records, metadata, settings, id \
     FROM collection WHERE name IS NOT NULL AND kind = 'records'";

fn one(
    db: &dyn Connection,
    which: &str,
    key: impl ToSql,
) -> Result<Option<CollectionInfo>, StoreError> {
    db.prepare_cached(&format!("{INFO} AND {which}"))
        .and_then(|mut statement| {
            statement
                .query_row([key], |row| info_of(db, row, |number| name_of(db, number)))
                .optional()
        })
        .during(db, "read a collection")
}

fn name_of(db: &dyn Connection, number: u64) -> isolith_sql::Result<DatabaseName> {
    let found = db
        .prepare_cached(
            "SELECT t.name, d.name FROM database d JOIN tenant t ON t.id = d.tenant \
             WHERE d.id = ?1",
        )?
        .query_row([number], |row| Ok(DatabaseName { tenant: row.get(0)?, database: row.get(1)? }))
        .optional()?;
    // Only the default database can be missing: others are deleted with their collections.
    Ok(found.unwrap_or_else(|| DatabaseName {
        tenant: DEFAULT_TENANT.to_owned(),
        database: DEFAULT_DATABASE.to_owned(),
    }))
}

fn info_of(
    db: &dyn Connection,
    row: &Row<'_>,
    database: impl FnOnce(u64) -> isolith_sql::Result<DatabaseName>,
) -> isolith_sql::Result<CollectionInfo> {
    let (number, name) = split(row.get_ref(0)?.as_str()?);
    let metadata: Option<String> = row.get(6)?;
    Ok(CollectionInfo {
        uuid: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        name: name.to_owned(),
        database: database(number)?,
        dimension: row.get(2)?,
        metric: named(row, 3, |name| name.parse::<Metric>().ok())?,
        model: row.get(4)?,
        records: row.get(5)?,
        metadata: metadata.map(Metadata::from_canonical),
        settings: row.get(7)?,
        keys: keys_of(db, row.get(8)?)?,
    })
}

fn keys_of(db: &dyn Connection, collection: u64) -> isolith_sql::Result<Vec<(String, KeyType)>> {
    db.prepare_cached(
        "SELECT name, type, (SELECT typeof(value) FROM field WHERE key = field_key.id LIMIT 1) \
         FROM field_key WHERE collection = ?1 ORDER BY id LIMIT 1000",
    )?
    .query_map([collection], |row| {
        let value: Option<String> = row.get(2)?;
        let of_type = match row.get::<_, u8>(1)? % IN_A_LIST {
            1 => KeyType::Text,
            2 => KeyType::Bool,
            _ if value.as_deref() == Some("real") => KeyType::Float,
            _ => KeyType::Integer,
        };
        Ok((row.get(0)?, of_type))
    })?
    .collect()
}

/// The names of all collections of users in a database.
pub(crate) fn names_in(db: &dyn Connection, number: u64) -> Result<Vec<String>, StoreError> {
    let kind = CollectionKind::Records.name();
    let read = || {
        db.prepare_cached(&format!(
            "SELECT name FROM collection WHERE kind = ?2 AND {IN_DATABASE} ORDER BY id"
        ))?
        .query_map(params![prefix(number), kind], |row| row.get(0))?
        .collect::<Result<_, _>>()
    };
    read().during(db, "list collections")
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_have_the_number_of_the_database() {
        for (number, name, stored) in [(1, "a/b", "a/b"), (7, "a/b", "@7/a/b"), (12, "c", "@12/c")]
        {
            assert_eq!(stored_name(number, name), stored);
            assert_eq!(split(stored), (number, name));
        }
        assert_eq!(split("@code"), (1, "@code"));
    }
}
