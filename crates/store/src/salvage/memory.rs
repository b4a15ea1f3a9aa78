//! Memory: texts are saved, whatever happened to their metadata.

use std::collections::BTreeMap;

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::Metadata;

use super::indexes::{Index, KnownColumns};
use super::rebuild::{Rescue, text};
use super::report::{Extent, MAX_NAMED_IDS};
use super::table::{Completed, TableCopy};
use crate::memory::{content_hash, id_of};
use crate::read::memory::{tags_of, text_of};
use crate::sqlite::During;

const DRAWER: TableCopy = TableCopy {
    table: "drawer",
    select: "SELECT number, id, content, wing, room, position, source, author, date, whole_day, \
             date_text, tags, metadata, passages, created_at, updated_at \
             FROM drawer WHERE number BETWEEN ?1 AND ?2 ORDER BY number",
    insert: "INSERT INTO drawer (number, id, content, wing, room, position, source, author, \
             date, whole_day, date_text, tags, metadata, passages, created_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    columns: 16,
    key: "number",
    name: "id",
    indexes: &[
        Index {
            from: "drawer INDEXED BY sqlite_autoindex_drawer_1",
            row: "number",
            columns: &["id"],
            unique: true,
            has_all: true,
        },
        Index {
            from: "drawer INDEXED BY sqlite_autoindex_drawer_2",
            row: "number",
            columns: &["content"],
            unique: true,
            has_all: true,
        },
        Index {
            from: "drawer INDEXED BY sqlite_autoindex_drawer_3",
            row: "number",
            columns: &["wing", "room", "position"],
            unique: true,
            has_all: true,
        },
        Index {
            from: "drawer INDEXED BY drawer_source WHERE source IS NOT NULL",
            row: "number",
            columns: &["source"],
            unique: false,
            has_all: false,
        },
    ],
    is_derived: false,
};

/// Only used to recognize memory: the ids of records contain the same.
const PASSAGE: TableCopy = TableCopy {
    table: "passage",
    select: "SELECT row, drawer FROM passage WHERE row BETWEEN ?1 AND ?2 ORDER BY row",
    insert: "INSERT INTO temp.old_passage (row, drawer) VALUES (?1, ?2)",
    columns: 2,
    key: "row",
    name: "row",
    indexes: &[],
    is_derived: false,
};

/// A user's collection with the reserved name, from before there was memory, is renamed. If
/// memory's own row was lost, it is a collection that salvage created.
const FIND_MEMORY: &str = "
UPDATE main.collection SET name = 'was-@memory-' || id WHERE name = '@memory' AND kind <> 'memory';
UPDATE main.collection SET name = '@memory', kind = 'memory'
WHERE kind = 'records' AND name LIKE 'recovered-%'
AND NOT EXISTS (SELECT 1 FROM main.collection WHERE kind = 'memory')
AND id = (SELECT r.collection FROM temp.old_passage p JOIN main.record r ON r.row = p.row
  WHERE substr(r.id, 1, instr(r.id, ':')) = printf('%08x:', p.drawer) LIMIT 1);
DROP TABLE temp.old_passage;
";

/// The wing for texts whose drawer is lost.
const RECOVERED: &str = "recovered";

const NO_TEXT: &str = "nothing of their texts could be saved";

/// Ids of drawers, by what they have lost.
type LostDrawers = BTreeMap<&'static str, Vec<String>>;

impl Rescue<'_> {
    /// Saves drawers with what is left of their texts.
    pub(super) fn memory(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        db.execute_batch("CREATE TEMP TABLE old_passage (row INTEGER, drawer INTEGER)")
            .during(db, "save drawers")?;
        if self.knows("SELECT number FROM drawer") {
            let now = self.work.now;
            self.table_with(&DRAWER, &mut |number, known| drawer_of(db, number, known, now))?;
            let before = self.report.lost.len();
            self.table(&PASSAGE)?;
            self.report.lost.truncate(before);
        }
        let repair = || {
            db.execute_batch(FIND_MEMORY)?;
            let orphaned = find_passages(db, self.work.now)?;
            Ok((orphaned, repair_drawers(db)?))
        };
        let (orphaned, lost) = repair().during(db, "save drawers")?;
        if orphaned > 0 {
            let reason = format!("their texts are in the wing {RECOVERED:?} now");
            self.lose("drawer", Extent::Partial, orphaned, reason);
        }
        for (reason, ids) in lost {
            let extent = if reason == NO_TEXT { Extent::Lost } else { Extent::Partial };
            self.report.lost_ids.extend(ids.iter().cloned());
            self.lose_named("drawer", extent, ids, reason.to_owned());
        }
        self.report.lost_ids.truncate(MAX_NAMED_IDS);
        Ok(())
    }
}

/// Restores a drawer from its indexes: its location, its source, and the hash that tells whether
/// its text is complete. Its passages know when it was added.
fn drawer_of(
    db: &dyn Connection,
    number: i64,
    known: &KnownColumns,
    now: i64,
) -> isolith_sql::Result<Completed> {
    let columns = ["id", "content", "wing", "room", "position"].map(|name| known.get(name));
    let [Some(id), Some(content), Some(wing), Some(room), Some(position)] = columns else {
        return Ok(Completed::Nothing);
    };
    let created_at: Option<i64> = db
        .prepare_cached(
            "SELECT min(r.created_at) FROM collection c JOIN record r ON r.collection = c.id \
             WHERE c.kind = 'memory' AND r.id >= printf('%08x:', ?1) \
             AND r.id < printf('%08x;', ?1)",
        )?
        .query_row([number], |row| row.get(0))
        .optional()?
        .flatten();
    let created_at = Value::Integer(created_at.unwrap_or(now));
    let source = known.get("source").cloned().unwrap_or(Value::Null);
    let mut row = vec![number.into(), id.clone(), content.clone(), wing.clone(), room.clone()];
    row.extend([position.clone(), source, Value::Null, Value::Null, 0.into(), Value::Null]);
    // The number of passages is set with the text.
    row.extend([text("[]"), text("{}"), 1.into(), created_at, now.into()]);
    Ok(Completed::Row(row, "their authors, dates, tags and metadata are lost"))
}

/// Assigns passages to drawers by their ids. Creates lost drawers and returns their number.
fn find_passages(db: &dyn Connection, now: i64) -> isolith_sql::Result<u64> {
    let mut orphaned = 0;
    let mut records = db.prepare(
        "SELECT r.row, r.id, r.created_at, r.document IS NULL FROM collection c \
         JOIN record r ON r.collection = c.id WHERE c.kind = 'memory' ORDER BY r.row",
    )?;
    let records: Vec<(i64, String, i64, bool)> = records
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<_, _>>()?;
    for (row, id, created_at, blank) in records {
        let number =
            id.split_once(':').and_then(|(drawer, _)| i64::from_str_radix(drawer, 16).ok());
        // Writers never create passages without a number or a text.
        let Some(number) = number.filter(|number| *number > 0 && !blank) else {
            remove_record(db, row)?;
            continue;
        };
        // `repair_drawers` sets its hash and count.
        orphaned += db
            .prepare_cached(
                "INSERT OR IGNORE INTO drawer (number, id, content, wing, room, position, source, \
                 whole_day, tags, metadata, passages, created_at, updated_at) \
                 VALUES (?1, 'drawer ' || ?1, CAST('drawer ' || ?1 AS BLOB), ?2, ?2, \
                 (SELECT coalesce(max(position), 0) + 1 FROM drawer WHERE wing = ?2 AND room = ?2), \
                 'drawer ' || ?1, 0, '[]', '{}', 0, ?3, ?4)",
            )?
            .execute(params![number, RECOVERED, created_at, now])? as u64;
        db.prepare_cached("INSERT INTO passage (row, drawer) VALUES (?1, ?2)")?
            .execute([row, number])?;
    }
    Ok(orphaned)
}

/// Makes every drawer consistent with what is left of it.
fn repair_drawers(db: &dyn Connection) -> isolith_sql::Result<LostDrawers> {
    let numbers: Vec<u64> = db
        .prepare("SELECT number FROM drawer ORDER BY number")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut lost = LostDrawers::new();
    for number in numbers {
        for (reason, id) in
            [repair_labels(db, number)?, repair_text(db, number)?].into_iter().flatten()
        {
            lost.entry(reason).or_default().push(id);
        }
    }
    Ok(lost)
}

/// What a drawer has lost, and its id.
type LostColumn = Option<(&'static str, String)>;

fn repair_labels(db: &dyn Connection, number: u64) -> isolith_sql::Result<LostColumn> {
    let (id, tags, metadata): (String, String, String) = db
        .prepare_cached("SELECT id, tags, metadata FROM drawer WHERE number = ?1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let sound = |text: &&String| Metadata::parse(text).is_ok_and(|it| it.as_str() == text.as_str());
    let kept_tags = Some(&tags).filter(|tags| tags_of(tags).is_some());
    let kept_metadata = Some(&metadata).filter(sound);
    if kept_tags.is_some() && kept_metadata.is_some() {
        return Ok(None);
    }
    let (tags, metadata) =
        (kept_tags.map_or("[]", String::as_str), kept_metadata.map_or("{}", String::as_str));
    db.prepare_cached("UPDATE drawer SET tags = ?2, metadata = ?3 WHERE number = ?1")?
        .execute(params![number, tags, metadata])?;
    Ok(Some(("their tags or metadata could not be read", id)))
}

fn repair_text(db: &dyn Connection, number: u64) -> isolith_sql::Result<LostColumn> {
    let text = text_of(db, number)?;
    let rows: Vec<i64> = db
        .prepare_cached("SELECT row FROM passage WHERE drawer = ?1")?
        .query_map([number], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let (id, hash, said) = db
        .prepare_cached(
            "SELECT id, content, wing, room, source, passages FROM drawer WHERE number = ?1",
        )?
        .query_row([number], |row| {
            let (wing, room) = (row.get_ref(2)?.as_str()?, row.get_ref(3)?.as_str()?);
            let hash = content_hash(wing, room, row.get_ref(4)?.as_str_or_null()?, &text);
            let same = row.get_ref(1)?.as_bytes()? == hash;
            Ok((row.get::<_, String>(0)?, (!same).then_some(hash), row.get::<_, usize>(5)?))
        })?;
    let Some(hash) = hash else {
        db.prepare_cached("UPDATE drawer SET passages = ?2 WHERE number = ?1")?
            .execute(params![number, rows.len()])?;
        return Ok(None);
    };
    let taken = db.prepare_cached("SELECT 1 FROM drawer WHERE content = ?1")?.exists([hash])?;
    if rows.is_empty() || taken {
        rows.iter().try_for_each(|row| remove_record(db, *row))?;
        db.prepare_cached("DELETE FROM drawer WHERE number = ?1")?.execute([number])?;
    } else {
        db.prepare_cached("UPDATE drawer SET content = ?2, passages = ?3 WHERE number = ?1")?
            .execute(params![number, hash, rows.len()])?;
    }
    if said == 0 && !rows.is_empty() {
        // Created above, with a temporary id.
        db.prepare_cached("UPDATE drawer SET id = ?2 WHERE number = ?1")?
            .execute(params![number, id_of(&hash, 0)])?;
        return Ok(None);
    }
    let reason = match rows.is_empty() {
        true => NO_TEXT,
        false => "they lost a part of their texts; the rest was saved",
    };
    Ok(Some((reason, id)))
}

fn remove_record(db: &dyn Connection, row: i64) -> isolith_sql::Result<()> {
    for sql in [
        "DELETE FROM passage WHERE row = ?1",
        "DELETE FROM vector WHERE row = ?1",
        "DELETE FROM record WHERE row = ?1",
    ] {
        db.prepare_cached(sql)?.execute([row])?;
    }
    Ok(())
}
