//! Translates drawer filters to SQL.

use isolith_sql::Value;
use isolith_sql::{Connection, params_from_iter};
use isolith_types::{DrawerFilter, DrawerOrder, DrawerPage};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Conditions on a row of `drawer`, with their parameters.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    pub(super) fn of(filter: &DrawerFilter) -> Self {
        let mut all = Self { sql: "true".to_owned(), values: Vec::new() };
        let DrawerFilter { wing, room, source, author, tags, since, until } = filter;
        for (name, wanted) in
            [("wing", wing), ("room", room), ("source", source), ("author", author)]
        {
            if let Some(wanted) = wanted {
                // Names are stored trimmed.
                all.add(&format!("{name} = ?"), wanted.trim().to_owned());
            }
        }
        for tag in tags {
            let has = "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)";
            all.add(has, tag.trim().to_owned());
        }
        if let Some(since) = since {
            // Only the first of the two can use an index.
            all.add("coalesce(date, created_at) > ?", since.start().saturating_sub(DAY));
            all.add("coalesce(date, created_at) + iif(whole_day, 86400000, 1) > ?", since.start());
        }
        if let Some(until) = until {
            all.add("coalesce(date, created_at) < ?", until.end());
        }
        all
    }

    fn add(&mut self, condition: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.push(value.into());
    }
}

/// The numbers of the drawers on a page, and the total number of matches.
pub(super) fn numbers_of_page(
    db: &dyn Connection,
    filter: &DrawerFilter,
    page: &DrawerPage,
) -> isolith_sql::Result<(Vec<u64>, u64)> {
    let Conditions { mut sql, mut values } = Conditions::of(filter);
    let total = db
        .prepare_cached(&format!("SELECT count(*) FROM drawer WHERE {sql}"))?
        .query_row(params_from_iter(&values), |row| row.get(0))?;
    if let Some(after) = &page.after {
        sql.push_str(" AND (wing, room, position) > (?, ?, ?)");
        values.push(after.wing.clone().into());
        values.push(after.room.clone().into());
        values.push(i64::try_from(after.position).unwrap_or(i64::MAX).into());
    }
    let order = match page.order {
        DrawerOrder::Newest => "coalesce(date, created_at) DESC, number DESC",
        DrawerOrder::Position => "wing, room, position",
    };
    values.push(i64::from(page.limit).into());
    values.push(i64::try_from(page.offset).unwrap_or(i64::MAX).into());
    let numbers = db
        .prepare_cached(&format!(
            "SELECT number FROM drawer WHERE {sql} ORDER BY {order} LIMIT ? OFFSET ?"
        ))?
        .query_map(params_from_iter(values), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok((numbers, total))
}

/// The numbers of the drawers that match a filter, oldest first.
pub(crate) fn numbers_matching(
    db: &dyn Connection,
    filter: &DrawerFilter,
    limit: u64,
) -> isolith_sql::Result<Vec<u64>> {
    let Conditions { sql, mut values } = Conditions::of(filter);
    values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
    db.prepare_cached(&format!("SELECT number FROM drawer WHERE {sql} ORDER BY number LIMIT ?"))?
        .query_map(params_from_iter(values), |row| row.get(0))?
        .collect()
}
