//! Drawers and their passages.

mod filter;

use isolith_protocol::{CollectionState, StoreError, StoredPassage};
use isolith_sql::{Connection, OptionalExtension, Row, params, params_from_iter};
use isolith_types::{Drawer, DrawerFilter, DrawerPage, Metadata, Moment, Room, Wing};

use super::collections::memory;
use super::{Snapshot, unreadable};
use crate::sqlite::During;
pub(crate) use filter::numbers_matching;
use filter::{Conditions, numbers_of_page};

const DRAWER: &str = "SELECT number, id, wing, room, position, source, author, date, whole_day, \
    date_text, tags, metadata, created_at, updated_at FROM drawer";

impl Snapshot<'_> {
    /// Memory; `None` if nothing was ever stored in it.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn memory_state(&self) -> Result<Option<CollectionState>, StoreError> {
        memory(self.connection())
    }

    /// The passages of these rows, in this order; `None` for one that does not exist. Texts are
    /// most of the cost.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn passages(
        &self,
        rows: &[u64],
        with_text: bool,
    ) -> Result<Vec<Option<StoredPassage>>, StoreError> {
        let db = self.connection();
        self.db.deadline.check("read passages")?;
        let text = if with_text { "document" } else { "NULL" };
        let read = || {
            let mut find = db.prepare_cached(&format!(
                "SELECT passage.row, record.change, drawer.number, wing, room, position, {text} \
                 FROM passage JOIN record ON record.row = passage.row \
                 JOIN drawer ON drawer.number = passage.drawer WHERE passage.row = ?1"
            ))?;
            rows.iter()
                .map(|row| find.query_row([row], passage_of).optional())
                .collect::<Result<_, _>>()
        };
        read().during(db, "read passages")
    }

    /// The drawers with these numbers and their whole texts, in this order; `None` for one that
    /// does not exist.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn drawers_by_number(&self, numbers: &[u64]) -> Result<Vec<Option<Drawer>>, StoreError> {
        let one = |number: &u64| {
            self.db.deadline.check("read drawers")?;
            Ok(by_number(self.connection(), *number)?.map(|(_, drawer)| drawer))
        };
        numbers.iter().map(one).collect()
    }

    /// Like [`Self::drawers_by_number`], by id.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn drawers_by_id(&self, ids: &[String]) -> Result<Vec<Option<Drawer>>, StoreError> {
        let one = |id: &String| {
            self.db.deadline.check("read drawers")?;
            Ok(by_id(self.connection(), id)?.map(|(_, drawer)| drawer))
        };
        ids.iter().map(one).collect()
    }

    /// A page of the drawers that match a filter, and the total number of matches. The page
    /// ends early once its texts exceed the given size, but has at least one drawer.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn drawers(
        &self,
        filter: &DrawerFilter,
        page: &DrawerPage,
        most_bytes: usize,
    ) -> Result<(Vec<Drawer>, u64), StoreError> {
        let db = self.connection();
        let (numbers, total) = numbers_of_page(db, filter, page).during(db, "list drawers")?;
        let mut drawers: Vec<Drawer> = Vec::with_capacity(numbers.len());
        let mut bytes = 0;
        for number in numbers {
            self.db.deadline.check("list drawers")?;
            let Some((_, drawer)) = by_number(db, number)? else { continue };
            bytes += drawer.text.len() + drawer.metadata.as_str().len();
            if bytes > most_bytes && !drawers.is_empty() {
                break;
            }
            drawers.push(drawer);
        }
        Ok((drawers, total))
    }

    /// The rows of all passages of the drawers that match a filter, in ascending order.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn rows_of_drawers(&self, filter: &DrawerFilter) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let Conditions { sql, values } = Conditions::of(filter);
        let read = || {
            let mut rows: Vec<u64> = db
                .prepare_cached(&format!(
                    "SELECT passage.row FROM drawer \
                     JOIN passage ON passage.drawer = drawer.number WHERE {sql}"
                ))?
                .query_map(params_from_iter(values), |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            rows.sort_unstable();
            Ok(rows)
        };
        read().during(db, "look for passages")
    }

    /// The row of the first passage of the next drawer in a passage's room.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn next_passage(&self, of: &StoredPassage) -> Result<Option<u64>, StoreError> {
        let db = self.connection();
        let read = || {
            db.prepare_cached(
                "SELECT (SELECT min(row) FROM passage WHERE passage.drawer = drawer.number) \
                 FROM drawer WHERE wing = ?1 AND room = ?2 AND position > ?3 \
                 ORDER BY position LIMIT 1",
            )?
            .query_row(params![of.wing, of.room, of.position], |row| row.get(0))
            .optional()
        };
        Ok(read().during(db, "look for the next drawer")?.flatten())
    }

    /// The rows of all passages of the drawers at most `reach` positions away from a passage's
    /// own in its room, excluding its own.
    ///
    /// # Errors
    /// If the truth cannot be read.
    pub fn passages_beside(&self, of: &StoredPassage, reach: u32) -> Result<Vec<u64>, StoreError> {
        let db = self.connection();
        let (first, last) = (
            of.position.saturating_sub(u64::from(reach)),
            of.position.saturating_add(u64::from(reach)),
        );
        let read = || {
            db.prepare_cached(
                "SELECT passage.row FROM drawer JOIN passage ON passage.drawer = drawer.number \
                 WHERE wing = ?1 AND room = ?2 AND position BETWEEN ?3 AND ?4 \
                 AND drawer.number <> ?5",
            )?
            .query_map(params![of.wing, of.room, first, last, of.drawer], |row| row.get(0))?
            .collect::<Result<Vec<u64>, _>>()
        };
        read().during(db, "look for neighbours")
    }

    /// All wings and rooms, by name, with the size of their contents.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn taxonomy(&self) -> Result<Vec<Wing>, StoreError> {
        let db = self.connection();
        let read = || {
            let mut statement = db.prepare_cached(
                "SELECT wing, room, count(*) FROM drawer GROUP BY wing, room ORDER BY wing, room",
            )?;
            let mut rows = statement.query([])?;
            let mut wings: Vec<Wing> = Vec::new();
            while let Some(row) = rows.next()? {
                let name = row.get_ref(0)?.as_str()?;
                if wings.last().is_none_or(|wing| wing.name != name) {
                    wings.push(Wing { name: name.to_owned(), drawers: 0, rooms: Vec::new() });
                }
                if let Some(wing) = wings.last_mut() {
                    let room = Room { name: row.get(1)?, drawers: row.get(2)? };
                    wing.drawers += room.drawers;
                    wing.rooms.push(room);
                }
            }
            Ok(wings)
        };
        read().during(db, "list wings")
    }
}

/// The drawer with this number, if it exists.
pub(crate) fn by_number(
    db: &dyn Connection,
    number: u64,
) -> Result<Option<(u64, Drawer)>, StoreError> {
    let read = || {
        let mut find = db.prepare_cached(&format!("{DRAWER} WHERE number = ?1"))?;
        whole(db, find.query_row([number], drawer_of).optional()?)
    };
    read().during(db, "read a drawer")
}

/// The drawer with this id and its number, if it exists.
pub(crate) fn by_id(db: &dyn Connection, id: &str) -> Result<Option<(u64, Drawer)>, StoreError> {
    let read = || {
        let mut find = db.prepare_cached(&format!("{DRAWER} WHERE id = ?1"))?;
        whole(db, find.query_row([id], drawer_of).optional()?)
    };
    read().during(db, "read a drawer")
}

/// The text of a drawer: the concatenation of its passages.
pub(crate) fn text_of(db: &dyn Connection, drawer: u64) -> isolith_sql::Result<String> {
    let mut passages = db.prepare_cached(
        "SELECT document FROM passage JOIN record ON record.row = passage.row \
         WHERE passage.drawer = ?1 ORDER BY passage.row",
    )?;
    let mut rows = passages.query([drawer])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        text.push_str(row.get_ref(0)?.as_str_or_null()?.unwrap_or_default());
    }
    Ok(text)
}

/// Appends what is searched in addition to the text: author and tags.
pub(crate) fn push_labels(author: Option<&str>, tags: &[String], labels: &mut String) {
    labels.clear();
    for label in author.into_iter().chain(tags.iter().map(String::as_str)) {
        if !labels.is_empty() {
            labels.push(' ');
        }
        labels.push_str(label);
    }
}

/// Decodes stored tags.
pub(crate) fn tags_of(text: &str) -> Option<Vec<String>> {
    if text == "[]" { Some(Vec::new()) } else { serde_json::from_str(text).ok() }
}

/// Adds the text to a drawer.
fn whole(
    db: &dyn Connection,
    found: Option<(u64, Drawer)>,
) -> isolith_sql::Result<Option<(u64, Drawer)>> {
    let Some((number, mut drawer)) = found else { return Ok(None) };
    drawer.text = text_of(db, number)?;
    Ok(Some((number, drawer)))
}

fn passage_of(row: &Row<'_>) -> isolith_sql::Result<StoredPassage> {
    Ok(StoredPassage {
        row: row.get(0)?,
        change: row.get(1)?,
        drawer: row.get(2)?,
        wing: row.get(3)?,
        room: row.get(4)?,
        position: row.get(5)?,
        text: row.get(6)?,
    })
}

/// Decodes a drawer without its text.
fn drawer_of(row: &Row<'_>) -> isolith_sql::Result<(u64, Drawer)> {
    let tags = tags_of(row.get_ref(10)?.as_str()?);
    let date = row.get::<_, Option<i64>>(7)?;
    let whole_day: bool = row.get(8)?;
    let drawer = Drawer {
        id: row.get(1)?,
        wing: row.get(2)?,
        room: row.get(3)?,
        position: row.get(4)?,
        text: String::new(),
        source: row.get(5)?,
        author: row.get(6)?,
        date: date.map(|at| if whole_day { Moment::day_of(at) } else { Moment::instant(at) }),
        date_text: row.get(9)?,
        tags: tags.ok_or_else(|| unreadable(10, "tags are a list of texts"))?,
        metadata: Metadata::from_canonical(row.get(11)?),
        created_at: Moment::instant(row.get(12)?),
        updated_at: Moment::instant(row.get(13)?),
    };
    Ok((row.get(0)?, drawer))
}
