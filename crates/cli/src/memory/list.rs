//! `isolith memory list`.

use isolith_engine::Engine;
use isolith_types::{
    Drawer, DrawerFilter, DrawerOrder, DrawerPage, DrawerPlace, Failure, Metadata, Moment,
};
use serde::Serialize;
use serde_json::json;

use super::show;
use crate::output::Output;

/// Which drawers are listed, and how.
pub(crate) enum ListPlan {
    /// One page, as a table, a JSON document, or JSON lines.
    Page { filter: DrawerFilter, page: DrawerPage, lines: bool },
    /// All drawers as JSON lines, in the import format.
    All { filter: DrawerFilter },
}

/// Drawers per batch when all are listed.
const BATCH: u32 = 500;

pub(super) async fn list(engine: &Engine, plan: ListPlan, output: &Output) -> Result<(), Failure> {
    match plan {
        ListPlan::All { filter } => list_all(engine, &filter, output).await,
        ListPlan::Page { filter, page, lines } => {
            let (drawers, total) = pages(engine, &filter, &page).await?;
            if lines {
                return output.lines(&drawers);
            }
            let text = show::list(&drawers, total, page.offset, &output.paint());
            let document = json!({ "drawers": drawers, "total": total, "offset": page.offset });
            output.result(&document, &text)
        }
    }
}

/// Reads a page, in several batches if necessary.
async fn pages(
    engine: &Engine,
    filter: &DrawerFilter,
    page: &DrawerPage,
) -> Result<(Vec<Drawer>, u64), Failure> {
    let (mut drawers, total) = engine.list_drawers(filter, page.clone()).await?;
    loop {
        let got = drawers.len() as u64;
        let left = u64::from(page.limit) - got;
        if got == 0 || left == 0 || page.offset + got >= total {
            return Ok((drawers, total));
        }
        let limit = u32::try_from(left).unwrap_or(u32::MAX);
        let rest = DrawerPage { offset: page.offset + got, limit, ..page.clone() };
        let (more, _) = engine.list_drawers(filter, rest).await?;
        if more.is_empty() {
            return Ok((drawers, total));
        }
        drawers.extend(more);
    }
}

/// Each batch starts after the last drawer of the previous one, so concurrent changes cause no
/// gaps.
async fn list_all(engine: &Engine, filter: &DrawerFilter, output: &Output) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let page = DrawerPage {
            order: DrawerOrder::Position,
            after,
            limit: BATCH,
            ..DrawerPage::default()
        };
        let (drawers, _) = engine.list_drawers(filter, page).await?;
        let Some(last) = drawers.last() else { return Ok(()) };
        after = Some(DrawerPlace {
            wing: last.wing.clone(),
            room: last.room.clone(),
            position: last.position,
        });
        output.lines(&drawers.iter().map(Ready::of).collect::<Vec<_>>())?;
    }
}

/// A drawer in the import format. Its id and position are derived from the rest.
#[derive(Serialize)]
struct Ready<'a> {
    text: &'a str,
    wing: &'a str,
    room: &'a str,
    source: Option<&'a str>,
    author: Option<&'a str>,
    date: Option<Moment>,
    date_text: Option<&'a str>,
    tags: &'a [String],
    metadata: &'a Metadata,
}

impl<'a> Ready<'a> {
    fn of(drawer: &'a Drawer) -> Self {
        Self {
            text: &drawer.text,
            wing: &drawer.wing,
            room: &drawer.room,
            source: drawer.source.as_deref(),
            author: drawer.author.as_deref(),
            date: drawer.date,
            date_text: drawer.date_text.as_deref(),
            tags: &drawer.tags,
            metadata: &drawer.metadata,
        }
    }
}
