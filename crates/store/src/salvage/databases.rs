//! Tenants and databases.

use isolith_protocol::StoreError;
use isolith_sql::Value;

use super::indexes::Index;
use super::rebuild::Rescue;
use super::table::{Completed, TableCopy};
use crate::schema::NEW_UUID;
use crate::sqlite::During;

/// The default tenant exists in every store.
const TENANT: TableCopy = TableCopy {
    table: "tenant",
    select: "SELECT id, name, resource_name, created_at FROM tenant \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO tenant (id, name, resource_name, created_at) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET resource_name = ?3, created_at = ?4 WHERE name = ?2",
    columns: 4,
    key: "id",
    name: "name",
    indexes: &[Index {
        from: "tenant INDEXED BY sqlite_autoindex_tenant_1",
        row: "id",
        columns: &["name"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

/// The default database exists in every new store.
const DATABASE: TableCopy = TableCopy {
    table: "database",
    select: "SELECT id, uuid, tenant, name, created_at FROM database \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO database (id, uuid, tenant, name, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (id) DO UPDATE SET created_at = ?5 WHERE uuid = ?2 AND name = ?4",
    columns: 5,
    key: "id",
    name: "name",
    indexes: &[
        Index {
            from: "database INDEXED BY sqlite_autoindex_database_1",
            row: "id",
            columns: &["uuid"],
            unique: true,
            has_all: true,
        },
        Index {
            from: "database INDEXED BY sqlite_autoindex_database_2",
            row: "id",
            columns: &["tenant", "name"],
            unique: true,
            has_all: true,
        },
    ],
    is_derived: false,
};

impl Rescue<'_> {
    pub(super) fn databases(&mut self) -> Result<(), StoreError> {
        let now = self.work.now;
        self.table_with(&TENANT, &mut |id, known| {
            Ok(match known.get("name") {
                Some(name) => {
                    let row = vec![id.into(), name.clone(), Value::Null, now.into()];
                    Completed::Row(row, "their resource names are lost")
                }
                None => Completed::Nothing,
            })
        })?;
        self.table_with(&DATABASE, &mut |id, known| {
            let columns = ["uuid", "tenant", "name"].map(|column| known.get(column).cloned());
            let [Some(uuid), Some(tenant), Some(name)] = columns else {
                return Ok(Completed::Nothing);
            };
            let row = vec![id.into(), uuid, tenant, name, now.into()];
            Ok(Completed::Row(row, "when they were created is unknown"))
        })?;
        Ok(())
    }

    /// Gives new names to lost tenants and databases that something belongs to.
    pub(super) fn complete_databases(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let complete = || {
            db.execute(
                "INSERT INTO tenant (id, name, created_at) \
                 SELECT DISTINCT tenant, 'recovered-' || tenant, ?1 FROM database \
                 WHERE tenant NOT IN (SELECT id FROM tenant)",
                [self.work.now],
            )?;
            db.execute(
                &format!(
                    "INSERT INTO database (id, uuid, tenant, name, created_at) \
                     SELECT number, {NEW_UUID}, 1, 'recovered-' || number, ?1 FROM \
                     (SELECT DISTINCT CAST(substr(name, 2, instr(name, '/') - 2) AS INTEGER) \
                     AS number FROM collection WHERE name GLOB '@[0-9]*/*') \
                     WHERE number NOT IN (SELECT id FROM database)"
                ),
                [self.work.now],
            )
        };
        complete().during(db, "save databases")?;
        Ok(())
    }
}
