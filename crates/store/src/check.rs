mod content;
mod facts;
mod graph;
mod memory;

use std::ops::ControlFlow;

use isolith_protocol::StoreError;
use isolith_sql::{Connection, params};
use isolith_types::Metadata;
use serde::{Deserialize, Serialize};

pub(crate) use content::is_finite;

use crate::deadline::Deadline;
use crate::migrations::MIGRATIONS;
use crate::read::Reader;
use crate::schema::CREATE;
use crate::sqlite::During;

/// A consistency check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Check {
    /// Pages and tables, without comparing tables with their indexes.
    Quick,
    /// Pages, tables and indexes.
    Full,
    /// Every page matches its checksum, whether it is in use or not.
    Checksums,
    /// The schema is the one that this version creates.
    Schema,
    /// Foreign keys are valid.
    References,
    /// Stored counts and change numbers match the tables.
    Counts,
    /// No row is left over from something deleted or lacks its counterpart.
    Orphans,
    /// Vectors have the right length and only finite numbers.
    Vectors,
    /// Filter fields match the metadata, chunks and facts can be decoded, drawers have their
    /// original texts, and lookup rows match their nodes.
    Fields,
}

impl Check {
    /// All checks. [`Check::Full`] includes [`Check::Quick`].
    pub const ALL: [Self; 9] = [
        Self::Quick,
        Self::Full,
        Self::Checksums,
        Self::Schema,
        Self::References,
        Self::Counts,
        Self::Orphans,
        Self::Vectors,
        Self::Fields,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Checksums => "checksums",
            Self::Schema => "schema",
            Self::References => "references",
            Self::Counts => "counts",
            Self::Orphans => "orphans",
            Self::Vectors => "vectors",
            Self::Fields => "fields",
        }
    }
}

/// Something that a check found to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The check that found it.
    pub check: Check,
    /// Description for users.
    pub detail: String,
}

impl Reader {
    /// Runs a check and returns at most `limit` problems. Damage that stops the check is also
    /// returned as a problem.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn check(&mut self, check: Check, limit: usize) -> Result<Vec<Problem>, StoreError> {
        let deadline = self.db.deadline.clone();
        let snapshot = match self.snapshot() {
            Err(StoreError::Corrupt { reason, .. }) => {
                return Ok(vec![Problem { check, detail: reason }]);
            }
            snapshot => snapshot?,
        };
        let db = snapshot.connection();
        let mut found = ProblemList { limit, details: Vec::new() };
        let looked = match check {
            Check::Quick => pages(db, "quick_check", &mut found),
            Check::Full => pages(db, "integrity_check", &mut found),
            Check::Checksums => checksums(&snapshot.db.connection, &deadline, &mut found),
            Check::Schema => schema(db, &mut found),
            Check::References => references(db, &mut found),
            Check::Counts => counts(db, &mut found).and_then(|()| graph::counts(db, &mut found)),
            Check::Orphans => orphans(db, &mut found).and_then(|()| graph::orphans(db, &mut found)),
            Check::Vectors => content::vectors(db, &deadline, &mut found),
            Check::Fields => content::fields(db, &deadline, &mut found)
                .and_then(|()| content::chunks(db, &deadline, &mut found))
                .and_then(|()| memory::drawers(db, &deadline, &mut found))
                .and_then(|()| facts::facts(db, &deadline, &mut found))
                .and_then(|()| graph::content(db, &deadline, &mut found)),
        };
        match looked {
            Err(StoreError::Corrupt { reason, .. }) => found.add(reason),
            looked => looked?,
        }
        let details = found.details.into_iter();
        Ok(details.map(|detail| Problem { check, detail }).collect())
    }
}

/// The problems found so far.
struct ProblemList {
    limit: usize,
    details: Vec<String>,
}

impl ProblemList {
    fn is_full(&self) -> bool {
        self.details.len() >= self.limit
    }

    fn add(&mut self, detail: String) {
        if !self.is_full() {
            self.details.push(detail);
        }
    }

    /// How many more problems are wanted, for `LIMIT`.
    fn room(&self) -> i64 {
        i64::try_from(self.limit - self.details.len().min(self.limit)).unwrap_or(i64::MAX)
    }
}

fn pages(db: &dyn Connection, pragma: &str, found: &mut ProblemList) -> Result<(), StoreError> {
    let mut read = || {
        // A limit of 0 would mean no limit.
        let mut statement = db.prepare(&format!("PRAGMA {pragma}({})", found.room().max(1)))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let detail: String = row.get(0)?;
            if detail != "ok" {
                found.add(detail);
            }
        }
        Ok(())
    };
    read().during(db, "check the pages")
}

fn checksums(
    db: &rusqlite::Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let verified = isolith_pages::scan(db, &mut || !deadline.passed(), &mut |damage| {
        found.add(damage.to_string());
        if found.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if verified.map_err(isolith_sql::Error::from).during(db, "read all pages")?.is_none() {
        found.add("pages have no checksums".to_owned());
    }
    deadline.check("read all pages")
}

fn schema(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    let expected = rusqlite::Connection::open_in_memory()
        .and_then(|expected| expected.execute_batch(CREATE).map(|()| expected))
        .map_err(isolith_sql::Error::from)
        .during(db, "compare the schema")?;
    MIGRATIONS.iter().try_for_each(|step| step(&expected))?;
    let mut compare = || {
        let expected = objects(&expected)?;
        let there = objects(db)?;
        for (name, sql) in &expected {
            match there.iter().find(|(other, _)| other == name) {
                None => found.add(format!("{name} is missing")),
                Some((_, other)) if other != sql => {
                    found.add(format!("{name} differs from the schema"))
                }
                Some(_) => {}
            }
        }
        for (name, _) in &there {
            if expected.iter().all(|(other, _)| other != name) {
                found.add(format!("{name} is not part of the schema"));
            }
        }
        Ok(())
    };
    compare().during(db, "compare the schema")
}

/// Names and definitions, except for SQLite's internal tables (statistics, sequences).
fn objects(db: &dyn Connection) -> isolith_sql::Result<Vec<(String, Option<String>)>> {
    db.prepare(
        "SELECT type || ' ' || name, sql FROM sqlite_schema \
         WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' OR name LIKE 'sqlite\\_autoindex%' ESCAPE '\\' \
         ORDER BY name",
    )?
    .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

fn references(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    let mut read = || {
        let mut statement = db.prepare("PRAGMA foreign_key_check")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if found.is_full() {
                break;
            }
            let (table, number, parent): (String, Option<i64>, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let number = number.map_or_else(String::new, |number| format!(" row {number}"));
            found.add(format!("{table}{number} refers to a missing row in {parent}"));
        }
        Ok(())
    };
    read().during(db, "check the references")
}

fn counts(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    collect(
        db,
        found,
        "SELECT 'collection ' || coalesce(quote(c.name), c.id) || ' says ' || c.records || \
         ' records, there are ' || n FROM (SELECT id, name, records, \
         (SELECT count(*) FROM record WHERE collection = collection.id) AS n FROM collection \
         WHERE name IS NOT NULL) c WHERE n <> records LIMIT ?1",
    )?;
    collect(
        db,
        found,
        "SELECT 'collection ' || quote(c.name) || ' says ' || c.unfolded || ' unfolded, there are ' \
         || n FROM (SELECT k.name, k.unfolded, \
         (SELECT count(*) FROM record WHERE collection = k.id AND change > \
          coalesce((SELECT complete_to FROM generation WHERE collection = k.id), 0)) + \
         (SELECT count(*) FROM tombstone WHERE collection = k.id) AS n \
         FROM collection k WHERE k.name IS NOT NULL) c WHERE n <> unfolded LIMIT ?1",
    )?;
    collect(
        db,
        found,
        "SELECT 'row ' || row || ' has change ' || change || ', the last one is said to be ' || \
         last_change FROM record, store WHERE change > last_change OR row > change LIMIT ?1",
    )?;
    collect(
        db,
        found,
        "SELECT 'file ' || quote(path) || ' says ' || chunks || ' chunks, there are ' || n \
         FROM (SELECT path, chunks, (SELECT count(*) FROM chunk WHERE file = file.id) AS n \
         FROM file) WHERE n <> chunks LIMIT ?1",
    )?;
    collect(
        db,
        found,
        "SELECT 'drawer ' || id || ' says ' || passages || ' passages, there are ' || n \
         FROM (SELECT id, passages, (SELECT count(*) FROM passage WHERE drawer = drawer.number) \
         AS n FROM drawer) WHERE n <> passages LIMIT ?1",
    )?;
    let rows: i64 = db
        .query_row("SELECT count(*) FROM store", [], |row| row.get(0))
        .during(db, "check the counts")?;
    if rows != 1 {
        found.add(format!("table store has {rows} rows, not 1"));
    }
    Ok(())
}

fn orphans(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    for sql in [
        "SELECT 'the vector of row ' || v.row || ' has no record' FROM vector v \
         LEFT JOIN record r ON r.row = v.row WHERE r.row IS NULL LIMIT ?1",
        "SELECT 'record ' || quote(r.id) || ' (row ' || r.row || ') has no vector' FROM record r \
         LEFT JOIN vector v ON v.row = r.row JOIN collection c ON c.id = r.collection \
         WHERE v.row IS NULL AND c.name IS NOT NULL LIMIT ?1",
        "SELECT 'a field of row ' || f.row || ' has no record' FROM field f \
         LEFT JOIN record r ON r.row = f.row WHERE r.row IS NULL LIMIT ?1",
        "SELECT 'a field of row ' || f.row || ' has no key' FROM field f \
         LEFT JOIN field_key k ON k.id = f.key WHERE k.id IS NULL LIMIT ?1",
        "SELECT 'a tombstone of row ' || t.row || ' has no collection' FROM tombstone t \
         LEFT JOIN collection c ON c.id = t.collection WHERE c.id IS NULL LIMIT ?1",
        "SELECT 'segment ' || s.file || ' has no generation' FROM segment s \
         LEFT JOIN generation g ON g.collection = s.collection WHERE g.collection IS NULL LIMIT ?1",
        "SELECT 'the chunk of row ' || k.row || ' has no record in the code index' FROM chunk k \
         LEFT JOIN record r ON r.row = k.row LEFT JOIN collection c ON c.id = r.collection \
         WHERE c.kind IS NOT 'code' LIMIT ?1",
        "SELECT 'the chunk of row ' || k.row || ' has no file' FROM chunk k \
         LEFT JOIN file f ON f.id = k.file WHERE f.id IS NULL LIMIT ?1",
        "SELECT 'record ' || quote(r.id) || ' (row ' || r.row || ') has no chunk' \
         FROM collection c JOIN record r ON r.collection = c.id \
         LEFT JOIN chunk k ON k.row = r.row WHERE c.kind = 'code' AND k.row IS NULL LIMIT ?1",
        "SELECT 'the passage of row ' || p.row || ' has no record in the memory' FROM passage p \
         LEFT JOIN record r ON r.row = p.row LEFT JOIN collection c ON c.id = r.collection \
         WHERE c.kind IS NOT 'memory' LIMIT ?1",
        "SELECT 'the passage of row ' || p.row || ' has no drawer' FROM passage p \
         LEFT JOIN drawer d ON d.number = p.drawer WHERE d.number IS NULL LIMIT ?1",
        "SELECT 'record ' || quote(r.id) || ' (row ' || r.row || ') has no passage' \
         FROM collection c JOIN record r ON r.collection = c.id \
         LEFT JOIN passage p ON p.row = r.row WHERE c.kind = 'memory' AND p.row IS NULL LIMIT ?1",
        "SELECT 'collection ' || quote(name) || ' has no database' FROM collection \
         WHERE name GLOB '@[0-9]*/*' AND CAST(substr(name, 2, instr(name, '/') - 2) AS INTEGER) \
         NOT IN (SELECT id FROM database) LIMIT ?1",
        "SELECT 'collection ' || quote(name) || ' has no uuid' FROM collection \
         WHERE name IS NOT NULL AND uuid IS NULL LIMIT ?1",
        "SELECT 'collection ' || quote(name) || ' has unreadable metadata or settings' \
         FROM collection WHERE name IS NOT NULL AND NOT (json_valid(settings) \
         AND json_valid(coalesce(metadata, '{}'))) LIMIT ?1",
        "SELECT 'file ' || quote(f.path) || ' has no root' FROM file f \
         LEFT JOIN root o ON o.id = f.root WHERE o.id IS NULL LIMIT ?1",
    ] {
        collect(db, found, sql)?;
    }
    Ok(())
}

/// Adds one problem for each row of the query.
fn collect(db: &dyn Connection, found: &mut ProblemList, sql: &str) -> Result<(), StoreError> {
    if found.is_full() {
        return Ok(());
    }
    let mut read = || {
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query(params![found.room()])?;
        while let Some(row) = rows.next()? {
            found.add(row.get(0)?);
        }
        Ok(())
    };
    read().during(db, "check the tables")
}

/// Stored metadata must be canonical, or equal records would compare as different.
fn metadata_of(text: &str) -> Option<Metadata> {
    Metadata::parse(text).ok().filter(|metadata| metadata.as_str() == text)
}
