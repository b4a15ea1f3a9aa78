use isolith_protocol::{AddDrawers, Done, DrawerVectors, DrawersAdded, StoreError};
use isolith_sql::params;
use isolith_types::{AddedDrawer, Moment, NewDrawer};

use super::super::change::Changes;
use super::super::{Perform, Work, shorten};
use super::check::Content;
use super::identity::{DrawerSlot, place_for};
use super::memory_for;
use super::passages::{Cut, PassageWriter};
use crate::sqlite::During;

impl Perform for AddDrawers {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        add(work, &self.drawers, self.skip_bad, &self.vectors)
    }

    fn shorten(reply: &mut DrawersAdded) -> bool {
        match reply.drawers.is_empty() {
            true => shorten(&mut reply.rejected),
            false => {
                reply.drawers.clear();
                true
            }
        }
    }

    fn complete(&self, work: Work<'_>, reply: &mut DrawersAdded) -> Result<(), StoreError> {
        if reply.drawers.len() + reply.rejected.len() < self.drawers.len() {
            reply.drawers.clear();
            again(work, &self.drawers, &self.vectors, reply)?;
        }
        Ok(())
    }
}

/// Maximum number of drawers per call.
const MAX_DRAWERS: usize = 500;

/// Adds drawers. Existing ones are not changed.
pub(in crate::write) fn add(
    work: Work<'_>,
    drawers: &[NewDrawer],
    skip_bad: bool,
    vectors: &DrawerVectors,
) -> Result<Done<DrawersAdded>, StoreError> {
    if drawers.len() > MAX_DRAWERS {
        let reason =
            format!("{} drawers in one call, at most {MAX_DRAWERS} are allowed", drawers.len());
        return Err(StoreError::Invalid(reason));
    }
    let state = memory_for(work, vectors)?;
    let mut changes = Changes::begin(work, &state)?;
    let mut writer = PassageWriter::new(work, state.id)?;
    let mut reply = DrawersAdded::default();
    for (at, drawer) in drawers.iter().enumerate() {
        work.deadline.check("add drawers")?;
        let (content, cut) = match check(drawer, vectors, at) {
            Ok(checked) => checked,
            Err(error) if skip_bad => {
                reply.rejected_count += 1;
                reply.rejected.push((at as u64, error.to_string()));
                continue;
            }
            Err(error) => return Err(at_row(error, at, drawers.len())),
        };
        let added = match place_for(work, &content)? {
            DrawerSlot::Taken { id } => {
                reply.unchanged += 1;
                reply.known.push(at as u32);
                AddedDrawer { id: id.clone(), created: false, duplicate_of: Some(id) }
            }
            DrawerSlot::Free { id } => {
                let number =
                    insert(work, &id, &content, cut.len()).during(work.db, "add a drawer")?;
                writer.insert(&mut changes, number, &cut)?;
                reply.inserted += 1;
                AddedDrawer { id, created: true, duplicate_of: None }
            }
        };
        reply.drawers.push(added);
    }
    changes.finish(reply)
}

/// Restores a reply that was too long for its receipt: everything follows from the request and
/// the stored drawers.
pub(in crate::write) fn again(
    work: Work<'_>,
    drawers: &[NewDrawer],
    vectors: &DrawerVectors,
    reply: &mut DrawersAdded,
) -> Result<(), StoreError> {
    reply.rejected.clear();
    for (at, drawer) in drawers.iter().enumerate() {
        let content = match check(drawer, vectors, at) {
            Ok((content, _)) => content,
            Err(error) => {
                reply.rejected.push((at as u64, error.to_string()));
                continue;
            }
        };
        let (DrawerSlot::Taken { id } | DrawerSlot::Free { id }) = place_for(work, &content)?;
        let created = !reply.known.contains(&(at as u32));
        let duplicate_of = (!created).then(|| id.clone());
        reply.drawers.push(AddedDrawer { id, created, duplicate_of });
    }
    Ok(())
}

/// The next free position in a room.
pub(super) fn next_position(work: Work<'_>, wing: &str, room: &str) -> isolith_sql::Result<u64> {
    work.db
        .prepare_cached(
            "SELECT coalesce(max(position), 0) + 1 FROM drawer WHERE wing = ?1 AND room = ?2",
        )?
        .query_row(params![wing, room], |row| row.get(0))
}

fn check<'a>(
    drawer: &'a NewDrawer,
    vectors: &'a DrawerVectors,
    at: usize,
) -> Result<(Content<'a>, Cut<'a>), StoreError> {
    let content = Content::of_new(drawer)?;
    let cut = Cut::new(content.text, vectors, at)?;
    Ok((content, cut))
}

/// Adds the drawer's position in the request to an error.
fn at_row(error: StoreError, at: usize, of: usize) -> StoreError {
    match error {
        error if of == 1 => error,
        StoreError::Invalid(reason) => {
            StoreError::BadRecord { row: at as u64, id: String::new(), reason }
        }
        StoreError::TooLong { what, bytes, limit } => {
            StoreError::TooLong { what: format!("{what} of drawer {at}"), bytes, limit }
        }
        error => error,
    }
}

/// Writes the drawer's own row and returns its number.
fn insert(
    work: Work<'_>,
    id: &str,
    content: &Content<'_>,
    passages: usize,
) -> isolith_sql::Result<u64> {
    let position = next_position(work, content.wing, content.room)?;
    work.db
        .prepare_cached(
            "INSERT INTO drawer (id, content, wing, room, position, source, author, date, \
             whole_day, date_text, tags, metadata, passages, created_at, updated_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14) \
             RETURNING number",
        )?
        .query_row(
            params![
                id,
                content.hash(),
                content.wing,
                content.room,
                position,
                content.source,
                content.author,
                content.date.map(Moment::start),
                content.date.is_some_and(Moment::is_day),
                content.date_text,
                content.tags_json(),
                content.metadata.as_str(),
                passages,
                work.now
            ],
            |row| row.get(0),
        )
}
