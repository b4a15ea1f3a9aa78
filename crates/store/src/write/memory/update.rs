use isolith_protocol::{Done, DrawerUpdated, DrawerVectors, StoreError, UpdateDrawer};
use isolith_sql::params;
use isolith_types::{Drawer, DrawerPatch, Moment};

use super::super::change::Changes;
use super::super::{Perform, Work};
use super::add::next_position;
use super::check::Content;
use super::identity::owner_of;
use super::memory_for;
use super::passages::{self, Cut, PassageWriter};
use crate::read::collections::memory;
use crate::read::memory::by_id;
use crate::sqlite::During;

impl Perform for UpdateDrawer {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        update(work, &self.id, &self.patch, &self.vectors)
    }
}

/// Changes a drawer, which keeps its id.
pub(in crate::write) fn update(
    work: Work<'_>,
    id: &str,
    patch: &DrawerPatch,
    vectors: &DrawerVectors,
) -> Result<Done<DrawerUpdated>, StoreError> {
    let missing = || StoreError::NoDrawer { id: id.to_owned() };
    let state = memory(work.db)?.ok_or_else(missing)?;
    let (number, drawer) = by_id(work.db, id)?.ok_or_else(missing)?;
    let old = Content::of_stored(&drawer);
    let new = old.with(patch)?;
    if new == old {
        let reply = DrawerUpdated { updated: 0 };
        return Changes::begin(work, &state)?.finish(reply);
    }
    if let Some(other) = owner_of(work, &new.hash())?.filter(|other| other != id) {
        return Err(StoreError::DrawerExists { id: other });
    }
    let state = if new.text == old.text { state } else { memory_for(work, vectors)? };
    let mut changes = Changes::begin(work, &state)?;
    let mut passages = None;
    if new.text != old.text {
        let cut = Cut::new(new.text, vectors, 0)?;
        passages::remove(work, &mut changes, number)?;
        PassageWriter::new(work, state.id)?.insert(&mut changes, number, &cut)?;
        passages = Some(cut.len());
    } else if searched(&new) != searched(&old) {
        passages::renew(work, &mut changes, number)?;
    }
    write(work, number, &drawer, &new, passages).during(work.db, "change a drawer")?;
    changes.finish(DrawerUpdated { updated: 1 })
}

/// The searchable fields of a drawer, apart from its text.
fn searched<'a>(content: &'a Content<'_>) -> impl PartialEq + use<'a> {
    (content.author, content.tags.as_slice(), content.date_text, content.date)
}

fn write(
    work: Work<'_>,
    number: u64,
    old: &Drawer,
    new: &Content<'_>,
    passages: Option<usize>,
) -> isolith_sql::Result<()> {
    let stays = old.wing == new.wing && old.room == new.room;
    let position = if stays { old.position } else { next_position(work, new.wing, new.room)? };
    work.db
        .prepare_cached(
            "UPDATE drawer SET content = ?2, wing = ?3, room = ?4, position = ?5, source = ?6, \
             author = ?7, date = ?8, whole_day = ?9, date_text = ?10, tags = ?11, \
             metadata = ?12, passages = coalesce(?13, passages), updated_at = ?14 \
             WHERE number = ?1",
        )?
        .execute(params![
            number,
            new.hash(),
            new.wing,
            new.room,
            position,
            new.source,
            new.author,
            new.date.map(Moment::start),
            new.date.is_some_and(Moment::is_day),
            new.date_text,
            new.tags_json(),
            new.metadata.as_str(),
            passages,
            work.now
        ])?;
    Ok(())
}
