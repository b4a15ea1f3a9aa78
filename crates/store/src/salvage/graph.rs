//! The graph: readable nodes and edges, and what is derived from them. Nodes derived from files
//! are kept, too, since users' edges may point to them; if any are lost, their files are
//! reindexed. Nodes and edges of facts are updated to match the saved facts.

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, params_from_iter};

use super::indexes::Index;
use super::rebuild::Rescue;
use super::report::Extent;
use super::table::{Completed, TableCopy};
use crate::graph::{self, KnownNames, NodeParts, edge_names};
use crate::sqlite::During;

const NAME: TableCopy = TableCopy {
    table: "graph_name",
    select: "SELECT id, kind, name, indexed FROM graph_name \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO graph_name (id, kind, name, indexed) VALUES (?1, ?2, ?3, ?4)",
    columns: 4,
    key: "id",
    name: "name",
    indexes: &[Index {
        from: "graph_name INDEXED BY sqlite_autoindex_graph_name_1",
        row: "id",
        columns: &["kind", "name"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

const CONSTRAINT: TableCopy = TableCopy {
    table: "graph_constraint",
    select: "SELECT id, name, statement FROM graph_constraint \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO graph_constraint (id, name, statement) VALUES (?1, ?2, ?3)",
    columns: 3,
    key: "id",
    name: "name",
    indexes: &[],
    is_derived: false,
};

/// Indexes are read by `recover_nodes` and `recover_edges`: several entries make up one row.
const NODE: TableCopy = TableCopy {
    table: "node",
    select: "SELECT id, labels, properties, owner, name FROM node \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO node (id, labels, properties, owner, name) VALUES (?1, ?2, ?3, ?4, ?5)",
    columns: 5,
    key: "id",
    name: "id",
    indexes: &[],
    is_derived: false,
};

const EDGE: TableCopy = TableCopy {
    table: "edge",
    select: "SELECT id, type, src, dst, properties, owner FROM edge \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO edge (id, type, src, dst, properties, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    columns: 6,
    key: "id",
    name: "id",
    indexes: &[],
    is_derived: false,
};

const CODE_GRAPH: TableCopy = TableCopy {
    table: "code_graph",
    select: "SELECT file, outline, uses, due FROM code_graph \
             WHERE file BETWEEN ?1 AND ?2 ORDER BY file",
    insert: "INSERT INTO code_graph (file, outline, uses, due) VALUES (?1, ?2, ?3, ?4)",
    columns: 4,
    key: "file",
    name: "file",
    indexes: &[],
    is_derived: true,
};

const CODE_LOOKUP: TableCopy = TableCopy {
    table: "code_lookup",
    select: "SELECT file, keys FROM code_lookup WHERE file BETWEEN ?1 AND ?2 ORDER BY file",
    insert: "INSERT INTO code_lookup (file, keys) VALUES (?1, ?2)",
    columns: 2,
    key: "file",
    name: "file",
    indexes: &[],
    is_derived: true,
};

/// Makes files look changed, so that the next run indexes them again.
const INDEX_AGAIN: &str = "
UPDATE file SET hash = zeroblob(32), modified = 0;
UPDATE root SET indexed_at = NULL;
";

/// Nodes and edges of files that no longer exist.
const DROP_OWNED: &str = "
DELETE FROM code_module WHERE file NOT IN (SELECT id FROM file);
DELETE FROM code_lookup WHERE file NOT IN (SELECT id FROM file);
";

/// Edges with a missing node.
const DROP_LOOSE: &str = "DELETE FROM edge WHERE src NOT IN (SELECT id FROM node) \
    OR dst NOT IN (SELECT id FROM node) RETURNING id";

/// Folders without a parent; every folder is created in one.
const DROP_FOLDERS: &str = "DELETE FROM node WHERE owner = 0 \
    AND name LIKE 'folder:%' AND name NOT LIKE 'folder:%:' \
    AND id NOT IN (SELECT dst FROM edge WHERE owner = 0)";

/// Lookup rows of missing nodes.
const DROP_FOUND: &str = "
DELETE FROM node_label WHERE node NOT IN (SELECT id FROM node);
DELETE FROM node_value WHERE node NOT IN (SELECT id FROM node);
";

impl Rescue<'_> {
    /// Saves nodes, edges and the outlines of the code graph.
    pub(super) fn graph(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        if !self.knows("SELECT owner FROM node") {
            return db.execute_batch(INDEX_AGAIN).during(db, "save files");
        }
        let before = self.report.lost.len();
        self.graph_row()?;
        self.table_with(&NAME, &mut |id, known| {
            let (Some(kind), Some(name)) = (known.get("kind"), known.get("name")) else {
                return Ok(Completed::Nothing);
            };
            Ok(Completed::Row(vec![id.into(), kind.clone(), name.clone(), 1.into()], ""))
        })?;
        if self.knows("SELECT statement FROM graph_constraint") {
            self.table(&CONSTRAINT)?;
        }
        let gaps = self.table(&NODE)?;
        self.recover_nodes(&gaps)?;
        let gaps = self.table(&EDGE)?;
        self.recover_edges(&gaps)?;
        if self.counted_before().is_some() {
            // Losses of these are computed at the end, from the counts.
            let is_counted = |table: &str| ["node", "edge"].contains(&table);
            let lost = &mut self.report.lost;
            lost.retain(|loss| loss.extent != Extent::Unknown || !is_counted(&loss.table));
        }
        self.table(&CODE_GRAPH)?;
        self.table(&CODE_LOOKUP)?;
        self.modules()?;
        self.drop_owned()?;
        self.drop_malformed_constraints()?;
        let (nodes, edges) = repair(db).during(db, "save the graph")?;
        for (at, (table, broken)) in [("node", nodes), ("edge", edges)].into_iter().enumerate() {
            self.graph_gone[at] += broken.len() as u64;
            let broken = broken.iter().map(i64::to_string).collect();
            self.lose_named(table, Extent::Lost, broken, "they are malformed".to_owned());
        }
        let loose = drop_loose(db).during(db, "save the graph")?;
        self.graph_gone[1] += loose.len() as u64;
        let loose = loose.iter().map(i64::to_string).collect();
        self.lose_named("edge", Extent::Lost, loose, "a node at their end is lost".to_owned());
        graph::recount(db).during(db, "count what was saved")?;
        if self.report.lost.len() > before {
            db.execute_batch(INDEX_AGAIN).during(db, "save files")?;
        }
        Ok(())
    }

    fn drop_malformed_constraints(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let malformed = graph::malformed_constraints(db).during(db, "save constraints")?;
        for (name, _) in &malformed {
            db.execute("DELETE FROM graph_constraint WHERE name = ?1", [name])
                .during(db, "save constraints")?;
        }
        let names = malformed.into_iter().map(|(name, _)| name).collect();
        let reason = "they are malformed".to_owned();
        self.lose_named("graph_constraint", Extent::Lost, names, reason);
        Ok(())
    }

    /// Deletes what was derived from files that no longer exist.
    fn drop_owned(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        for (at, table) in ["node", "edge"].into_iter().enumerate() {
            let sql = format!(
                "DELETE FROM {table} WHERE owner > 0 AND owner NOT IN (SELECT id FROM file)"
            );
            let gone = db.execute(&sql, []).during(db, "save the graph")? as u64;
            self.graph_gone[at] += gone;
            if gone > 0 {
                let reason = "their files will be indexed again".to_owned();
                self.lose(table, Extent::Derived, gone, reason);
            }
        }
        db.execute_batch(DROP_OWNED).during(db, "save the graph")
    }

    /// The last ids assigned, so that none is reused.
    fn graph_row(&mut self) -> Result<(), StoreError> {
        let sql = "SELECT change + 1, last_node, last_edge FROM graph WHERE only = 1";
        let read = self.old.query_row(sql, [], |row| {
            Ok([row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?])
        });
        let numbers = match read {
            Ok(numbers) => numbers.map(|number| number.clamp(0, i64::MAX >> 1)),
            Err(error) => {
                self.lose("graph", Extent::Partial, 1, error.to_string());
                // Later than any change before.
                [self.work.now, 0, 0]
            }
        };
        let update = "UPDATE graph SET change = ?1, last_node = ?2, last_edge = ?3";
        let db = self.work.db;
        db.execute(update, numbers).during(db, "save the graph").map(|_| ())
    }

    /// Copies the names of modules. Without row numbers, they can only be read from both ends.
    fn modules(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let mut insert = db
            .prepare("INSERT OR IGNORE INTO code_module (name, file) VALUES (?1, ?2)")
            .during(db, "prepare to save rows")?;
        let mut reason = None;
        for order in ["ASC", "DESC"] {
            let sql =
                format!("SELECT name, file FROM code_module ORDER BY name {order}, file {order}");
            let mut copy = || {
                let mut statement = self.old.prepare(&sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    insert.execute(params_from_iter([row.get::<_, Value>(0)?, row.get(1)?]))?;
                }
                Ok::<_, isolith_sql::Error>(())
            };
            match copy() {
                Ok(()) => break,
                Err(error) => reason = Some(error.to_string()),
            }
        }
        drop(insert);
        if let Some(reason) = reason {
            self.lose("code_module", Extent::Derived, 1, reason);
        }
        Ok(())
    }
}

/// Rebuilds lookup rows, replaces lost names, and deletes malformed nodes and edges, whose ids
/// are returned.
fn repair(db: &dyn Connection) -> isolith_sql::Result<(Vec<i64>, Vec<i64>)> {
    let mut names = KnownNames::read(db)?;
    let mut broken = (Vec::new(), Vec::new());
    let mut statement =
        db.prepare("SELECT id, labels, properties, coalesce(owner, -1) >= 0 FROM node")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (node, is_code): (i64, bool) = (row.get(0)?, row.get(3)?);
        let parts = NodeParts::read(row.get_ref(1)?.as_blob()?, row.get_ref(2)?.as_blob()?);
        match parts {
            Some(parts) if have_names(db, &mut names, parts.names())? => {
                graph::put(db, &names, (node, is_code), &parts)?;
            }
            _ => broken.0.push(node),
        }
    }
    let mut statement = db.prepare("SELECT id, type, properties FROM edge")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let properties = row.get_ref(2)?.as_blob_or_null()?.unwrap_or(&[]);
        let needed = u32::try_from(row.get::<_, i64>(1)?).ok();
        match needed.and_then(|kind| edge_names(kind, properties)) {
            Some(needed) if have_names(db, &mut names, needed.iter().copied())? => {}
            _ => broken.1.push(row.get::<_, i64>(0)?),
        }
    }
    for (table, numbers) in [("node", &broken.0), ("edge", &broken.1)] {
        let mut delete = db.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
        for number in numbers {
            delete.execute([number])?;
        }
    }
    Ok(broken)
}

/// Deletes edges with a missing node, which are returned, and folders without a parent; then
/// rebuilds the endpoint tables.
fn drop_loose(db: &dyn Connection) -> isolith_sql::Result<Vec<i64>> {
    let mut loose = Vec::new();
    loop {
        let mut drop = db.prepare_cached(DROP_LOOSE)?;
        for edge in drop.query_map([], |row| row.get(0))? {
            loose.push(edge?);
        }
        if db.execute(DROP_FOLDERS, [])? == 0 {
            break;
        }
    }
    db.execute_batch(DROP_FOUND)?;
    db.execute_batch(graph::REBUILD_ENDS)?;
    Ok(loose)
}

/// Whether all names are of the right kind, after replacing lost ones.
fn have_names(
    db: &dyn Connection,
    names: &mut KnownNames,
    mut needed: impl Iterator<Item = (u32, u8)>,
) -> isolith_sql::Result<bool> {
    needed.try_fold(true, |so_far, (number, kind)| match names.is(number, kind) {
        Some(is_right) => Ok(so_far && is_right),
        None => names.insert_placeholder(db, number, kind).map(|()| so_far),
    })
}
