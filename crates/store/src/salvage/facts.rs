//! Facts. One whose entity is lost keeps what else is known of it, under a made-up name.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::rebuild::{Copy, Rescue, breaks_a_rule};
use crate::error::StoreError;
use crate::facts::names::{fold, fold_predicate};
use crate::read::facts::makes_sense;
use crate::sqlite::During;

const ENTITY: Copy = Copy {
    table: "entity",
    select: "SELECT id, name, folded, type, created_at \
             FROM entity WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO entity (id, name, folded, type, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
    columns: 5,
};

const PREDICATE: Copy = Copy {
    table: "predicate",
    select: "SELECT id, name, folded FROM predicate WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO predicate (id, name, folded) VALUES (?1, ?2, ?3)",
    columns: 3,
};

const ALIAS: Copy = Copy {
    table: "alias",
    select: "SELECT id, entity, name, folded FROM alias WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO alias (id, entity, name, folded) VALUES (?1, ?2, ?3, ?4)",
    columns: 4,
};

const SOURCE: Copy = Copy {
    table: "fact_source",
    select: "SELECT id, fact, confidence, drawer, file, agent, recorded_at \
             FROM fact_source WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO fact_source (id, fact, confidence, drawer, file, agent, recorded_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    columns: 7,
};

/// The columns from the second to the seventh are those that must make sense together.
const FACTS: &str = "SELECT id, valid_from, from_day, valid_to, to_day, until, confidence, \
    subject, predicate, object, drawer, file, agent, recorded_at, changed_at, superseded_by \
    FROM fact WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

impl Rescue<'_> {
    /// Entities, predicates and facts with their sources.
    pub(super) fn facts(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        if !self.knows("SELECT until FROM fact") {
            return Ok(());
        }
        self.table(&ENTITY)?;
        mend_names(db, "entity", fold).during(db, "save names")?;
        self.table(&PREDICATE)?;
        mend_names(db, "predicate", fold_predicate).during(db, "save names")?;
        self.table(&ALIAS)?;
        let gone = drop_wrong_aliases(db).during(db, "save names")?;
        if gone > 0 {
            self.lose("alias", gone, "they are no names any more".to_owned());
        }
        self.fact_rows()?;
        self.table(&SOURCE)?;
        let gone = db
            .execute("DELETE FROM fact_source WHERE NOT confidence BETWEEN 0 AND 1", [])
            .during(db, "save sources")?;
        if gone > 0 {
            self.lose("fact_source", gone as u64, "they make no sense".to_owned());
        }
        Ok(())
    }

    fn fact_rows(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let mut saver = FactSaver::new(db, self.work.now);
        let highest = self.highest("fact")?;
        let gaps = self.walk(FACTS, 0..=highest, &mut |row| {
            saver.take(row);
            Ok(())
        })?;
        let FactSaver { broken, superseded, failed, .. } = saver;
        if let Some(error) = failed {
            return Err(error).during(db, "save facts");
        }
        self.lose_gaps("fact", gaps);
        if broken > 0 {
            self.lose("fact", broken, "they make no sense".to_owned());
        }
        let link = || {
            let mut link = db.prepare(
                "UPDATE fact SET superseded_by = ?2 WHERE id = ?1 \
                 AND EXISTS (SELECT 1 FROM fact WHERE id = ?2)",
            )?;
            superseded.iter().try_for_each(|pair| link.execute(*pair).map(|_| ()))
        };
        link().during(db, "save facts")
    }
}

/// Saves facts one by one.
struct FactSaver<'a> {
    db: &'a Connection,
    now: i64,
    broken: u64,
    /// Which fact was superseded by which: that one may come later.
    superseded: Vec<(i64, i64)>,
    /// What keeps the new truth from being written.
    failed: Option<rusqlite::Error>,
}

impl<'a> FactSaver<'a> {
    fn new(db: &'a Connection, now: i64) -> Self {
        Self { db, now, broken: 0, superseded: Vec::new(), failed: None }
    }

    fn take(&mut self, row: &Row<'_>) {
        match self.save(row) {
            Ok(true) => {}
            Ok(false) => self.broken += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    fn save(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        if !makes_sense(row).unwrap_or(false) {
            return Ok(false);
        }
        let values = (0..15).map(|at| row.get::<_, Value>(at)).collect::<Result<Vec<_>, _>>()?;
        let [Value::Integer(subject), Value::Integer(predicate), Value::Integer(object)] =
            values[7..10]
        else {
            return Ok(false);
        };
        self.make_up_entity(subject)?;
        self.make_up_predicate(predicate)?;
        self.make_up_entity(object)?;
        let saved = self
            .db
            .prepare_cached(
                "INSERT INTO fact (id, valid_from, from_day, valid_to, to_day, until, \
                 confidence, subject, predicate, object, drawer, file, agent, recorded_at, \
                 changed_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?
            .execute(params_from_iter(values));
        match saved {
            Ok(_) => {}
            Err(error) if breaks_a_rule(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        if let Ok(by) = row.get::<_, i64>(15) {
            self.superseded.push((row.get(0)?, by));
        }
        Ok(true)
    }

    /// Makes sure that there is such an entity, under a new name if its own is lost.
    fn make_up_entity(&self, number: i64) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT OR IGNORE INTO entity (id, name, folded, created_at) \
                 VALUES (?1, ?2, ?2, ?3)",
            )?
            .execute(params![number, made_up("entity", number), self.now])
            .map(|_| ())
    }

    fn make_up_predicate(&self, number: i64) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT OR IGNORE INTO predicate (id, name, folded) VALUES (?1, ?2, ?2)",
            )?
            .execute(params![number, made_up("predicate", number)])
            .map(|_| ())
    }
}

fn made_up(table: &str, number: i64) -> String {
    format!("recovered-{table}-{number}")
}

/// A row that its name does not lead to is looked up by its name from now on, or, where
/// that leads to another, gets a new one.
fn mend_names(db: &Connection, table: &str, fold: fn(&str) -> String) -> rusqlite::Result<()> {
    let mut wrong = Vec::new();
    let mut statement = db.prepare(&format!("SELECT id, name, folded FROM {table}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, name, folded): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if folded.is_empty() || fold(&name) != folded {
            wrong.push((number, name));
        }
    }
    let mut mend =
        db.prepare(&format!("UPDATE OR IGNORE {table} SET name = ?2, folded = ?3 WHERE id = ?1"))?;
    for (number, name) in wrong {
        let folded = fold(&name);
        if folded.is_empty() || mend.execute(params![number, name, folded])? == 0 {
            let name = made_up(table, number);
            mend.execute(params![number, name, name])?;
        }
    }
    Ok(())
}

/// Aliases that lead nowhere, or to somebody else.
fn drop_wrong_aliases(db: &Connection) -> rusqlite::Result<u64> {
    let mut wrong: Vec<i64> = db
        .prepare("SELECT a.id FROM alias a JOIN entity e ON e.folded = a.folded")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut statement = db.prepare("SELECT id, name, folded FROM alias")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, folded) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        if folded.is_empty() || fold(name) != folded {
            wrong.push(row.get(0)?);
        }
    }
    let mut remove = db.prepare("DELETE FROM alias WHERE id = ?1")?;
    let mut gone = 0;
    for id in wrong {
        gone += remove.execute([id])? as u64;
    }
    Ok(gone)
}
