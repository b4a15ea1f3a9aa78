//! Tenants, databases, and collections in them.

use isolith_protocol::{
    AddCollection, ChangeCollection, CollectionAdded, CollectionDeleted, CollectionState,
    CreateDatabase, CreateTenant, DeleteDatabase, Done, ResetDatabases, StoreError, UpdateTenant,
};
use isolith_sql::{OptionalExtension, params};
use isolith_types::{
    CollectionKind, CollectionSpec, DEFAULT_DATABASE, DEFAULT_TENANT, DatabaseName,
};

use super::{Perform, Work, collections, validate};
use crate::read::collections::{by_name, require_records};
use crate::read::databases::{DEFAULT, by_stored_name, database, names_in, split, stored_name};
use crate::schema::NEW_UUID;
use crate::sqlite::During;

/// Maximum length of the names of tenants and databases, in bytes.
const MAX_NAME_LEN: usize = 512;

/// The uuid of the default database in every store.
const DEFAULT_UUID: &str = "00000000-0000-0000-0000-000000000000";

impl Perform for CreateTenant {
    fn perform(&self, work: Work<'_>) -> Result<Done<()>, StoreError> {
        check_name("tenant", &self.name)?;
        let created = work
            .db
            .prepare_cached(
                "INSERT INTO tenant (name, created_at) VALUES (?1, ?2) \
                 ON CONFLICT (name) DO NOTHING",
            )
            .and_then(|mut statement| statement.execute(params![self.name, work.now]))
            .during(work.db, "create a tenant")?;
        if created == 0 { Err(exists("tenant", &self.name)) } else { Ok(().into()) }
    }
}

impl Perform for UpdateTenant {
    fn perform(&self, work: Work<'_>) -> Result<Done<()>, StoreError> {
        let changed = work
            .db
            .prepare_cached("UPDATE tenant SET resource_name = ?2 WHERE name = ?1")
            .and_then(|mut statement| statement.execute([&self.name, &self.resource_name]))
            .during(work.db, "change a tenant")?;
        match changed {
            0 => Err(StoreError::NoTenant { name: self.name.clone() }),
            _ => Ok(().into()),
        }
    }
}

impl Perform for CreateDatabase {
    fn perform(&self, work: Work<'_>) -> Result<Done<()>, StoreError> {
        let DatabaseName { tenant, database: name } = &self.database;
        check_name("database", name)?;
        let number = tenant_number(work, tenant)?
            .ok_or_else(|| StoreError::NoTenant { name: tenant.clone() })?;
        if database(work.db, &self.database)?.is_some() {
            return Err(exists("database", name));
        }
        let insert = || {
            // The default database has a number of its own, also if it was deleted.
            let (id, uuid) = match tenant == DEFAULT_TENANT && name == DEFAULT_DATABASE {
                true => (Some(DEFAULT), Some(DEFAULT_UUID)),
                false => (None, None),
            };
            work.db
                .prepare_cached(&format!(
                    "INSERT INTO database (id, uuid, tenant, name, created_at) \
                     VALUES (?1, coalesce(?2, {NEW_UUID}), ?3, ?4, ?5)"
                ))?
                .execute(params![id, uuid, number, name, work.now])
        };
        insert().during(work.db, "create a database")?;
        Ok(().into())
    }
}

impl Perform for DeleteDatabase {
    fn perform(&self, work: Work<'_>) -> Result<Done<CollectionDeleted>, StoreError> {
        let (number, _) = database(work.db, &self.database)?
            .ok_or_else(|| StoreError::NoDatabase { name: self.database.database.clone() })?;
        let reply = delete_collections(work, number)?;
        work.db
            .execute("DELETE FROM database WHERE id = ?1", [number])
            .during(work.db, "delete a database")?;
        Ok(reply.into())
    }
}

impl Perform for AddCollection {
    fn perform(&self, work: Work<'_>) -> Result<Done<CollectionAdded>, StoreError> {
        let Self { database: place, spec, metadata, settings, get_or_create } = self;
        validate::name(&spec.name)?;
        let (number, _) = database(work.db, place)?
            .ok_or_else(|| StoreError::NoDatabase { name: place.database.clone() })?;
        let name = stored_name(number, &spec.name);
        if let Some(collection) = by_stored_name(work.db, &name)? {
            return match get_or_create {
                true => Ok(CollectionAdded { created: false, collection }.into()),
                false => Err(taken(&spec.name)),
            };
        }
        let stored = CollectionSpec { name: name.clone(), ..spec.clone() };
        collections::insert(work, &stored, CollectionKind::Records)?;
        let metadata = metadata.as_ref().map(isolith_types::Metadata::as_str);
        work.db
            .prepare_cached("UPDATE collection SET metadata = ?2, settings = ?3 WHERE name = ?1")
            .and_then(|mut statement| statement.execute(params![name, metadata, settings]))
            .during(work.db, "describe a collection")?;
        let collection = by_stored_name(work.db, &name)?.ok_or_else(|| taken(&spec.name))?;
        Ok(CollectionAdded { created: true, collection }.into())
    }
}

impl Perform for ChangeCollection {
    fn perform(&self, work: Work<'_>) -> Result<Done<()>, StoreError> {
        let state = require_records(work.db, &self.collection)?;
        if let Some(name) = &self.name {
            rename(work, &state, name)?;
        }
        let metadata = self.metadata.as_ref().map(isolith_types::Metadata::as_str);
        work.db
            .prepare_cached(
                "UPDATE collection SET metadata = coalesce(?2, metadata), \
                 settings = coalesce(?3, settings), updated_at = ?4 WHERE id = ?1",
            )
            .and_then(|mut statement| {
                statement.execute(params![state.id, metadata, self.settings, work.now])
            })
            .during(work.db, "change a collection")?;
        Ok(().into())
    }
}

impl Perform for ResetDatabases {
    fn perform(&self, work: Work<'_>) -> Result<Done<CollectionDeleted>, StoreError> {
        let numbers = work
            .db
            .prepare("SELECT id FROM database UNION SELECT 1")
            .and_then(|mut statement| {
                statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<u64>, _>>()
            })
            .during(work.db, "list databases")?;
        let mut reply = CollectionDeleted::default();
        for number in numbers {
            add(&mut reply, delete_collections(work, number)?);
        }
        work.db
            .execute_batch(
                "DELETE FROM database WHERE id <> 1; DELETE FROM tenant WHERE id <> 1; \
                 UPDATE tenant SET resource_name = NULL; \
                 INSERT OR IGNORE INTO database (id, uuid, tenant, name, created_at) \
                 VALUES (1, '00000000-0000-0000-0000-000000000000', 1, 'default_database', 0);",
            )
            .during(work.db, "delete databases")?;
        Ok(reply.into())
    }
}

fn delete_collections(work: Work<'_>, number: u64) -> Result<CollectionDeleted, StoreError> {
    let mut reply = CollectionDeleted::default();
    for name in names_in(work.db, number)? {
        let state = require_records(work.db, &name)?;
        add(&mut reply, collections::retire(work, state)?);
    }
    Ok(reply)
}

fn add(reply: &mut CollectionDeleted, more: CollectionDeleted) {
    reply.deleted += more.deleted;
    reply.obsolete_files.extend(more.obsolete_files);
    reply.more |= more.more;
}

/// Renames a collection within its database.
fn rename(work: Work<'_>, state: &CollectionState, name: &str) -> Result<(), StoreError> {
    validate::name(name)?;
    let stored = stored_name(split(&state.name).0, name);
    if stored != state.name && by_name(work.db, &stored)?.is_some() {
        return Err(taken(name));
    }
    work.db
        .prepare_cached("UPDATE collection SET name = ?2 WHERE id = ?1")
        .and_then(|mut statement| statement.execute(params![state.id, stored]))
        .during(work.db, "rename a collection")?;
    Ok(())
}

fn tenant_number(work: Work<'_>, name: &str) -> Result<Option<u64>, StoreError> {
    work.db
        .prepare_cached("SELECT id FROM tenant WHERE name = ?1")
        .and_then(|mut statement| statement.query_row([name], |row| row.get(0)).optional())
        .during(work.db, "read a tenant")
}

fn check_name(what: &str, name: &str) -> Result<(), StoreError> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_LEN {
        "is longer than 512 bytes"
    } else if name.chars().any(char::is_control) {
        "contains control characters"
    } else {
        return Ok(());
    };
    Err(StoreError::Invalid(format!("the name of the {what} {problem}")))
}

fn exists(what: &str, name: &str) -> StoreError {
    StoreError::NameExists { what: what.to_owned(), name: name.to_owned() }
}

fn taken(name: &str) -> StoreError {
    StoreError::CollectionExists { name: name.to_owned(), difference: String::new() }
}
