//! Prints rows one by one, because an answer may be larger than memory.

use std::io::{self, Write};

use isolith_engine::{Datum, GraphCursor, GraphRow};
use isolith_types::Failure;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::format::{Drawn, Format, cell_text, csv_line, plain};
use crate::output::{ResultStream, unwritten};
use crate::table::Columns;
use crate::terminal::TextKind;

/// Prints all rows of an answer.
pub(super) async fn print(cursor: &mut GraphCursor, format: Format) -> Result<(), Failure> {
    let kind = match format {
        Format::Json | Format::Jsonl => TextKind::Json,
        Format::Table | Format::Csv | Format::Dot | Format::Graphml => TextKind::Text,
    };
    let mut out = ResultStream::new(kind);
    let printed = match format {
        Format::Table => as_table(cursor, &mut out).await,
        Format::Json => as_json(cursor, &mut out).await,
        Format::Jsonl => as_lines(cursor, &mut out).await,
        Format::Csv => as_csv(cursor, &mut out).await,
        Format::Dot | Format::Graphml => drawn(cursor, format, &mut out).await,
    };
    out.finish(printed.map_err(|Stopped(failure)| failure))
}

/// Why not all rows were printed.
struct Stopped(Failure);

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Stopped(failure)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Stopped(unwritten(&error))
    }
}

impl From<serde_json::Error> for Stopped {
    fn from(error: serde_json::Error) -> Self {
        Stopped(unwritten(&error))
    }
}

/// Takes two passes: the column widths are only known after the last row.
async fn as_table(cursor: &mut GraphCursor, out: &mut impl Write) -> Result<(), Stopped> {
    let names = cursor.columns().to_vec();
    if names.is_empty() {
        return Ok(());
    }
    let mut columns = Columns::new(&names);
    let mut is_number = vec![false; names.len()];
    let mut is_other = vec![false; names.len()];
    while let Some(row) = cursor.get_next().await? {
        for (at, cell) in row.iter().enumerate() {
            match cell {
                Datum::Null => {}
                Datum::Integer(_) | Datum::Float(_) => is_number[at] = true,
                _ => is_other[at] = true,
            }
            columns.widen(at, &cell_text(cell));
        }
    }
    for (at, other) in is_other.iter().enumerate() {
        columns.align_right(at, is_number[at] && !other);
    }
    out.write_all(columns.line(&names).as_bytes())?;
    cursor.rewind();
    while let Some(row) = cursor.get_next().await? {
        let cells: Vec<String> = row.iter().map(cell_text).collect();
        out.write_all(columns.line(&cells).as_bytes())?;
    }
    Ok(())
}

async fn as_json(cursor: &mut GraphCursor, out: &mut impl Write) -> Result<(), Stopped> {
    out.write_all(b"{\"columns\":")?;
    serde_json::to_writer(&mut *out, cursor.columns())?;
    out.write_all(b",\"degraded\":")?;
    serde_json::to_writer(&mut *out, &cursor.degraded())?;
    out.write_all(b",\"rows\":[")?;
    let mut is_first = true;
    while let Some(row) = cursor.get_next().await? {
        if !std::mem::take(&mut is_first) {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &Cells(&row))?;
    }
    out.write_all(b"],\"stats\":")?;
    serde_json::to_writer(&mut *out, cursor.stats())?;
    Ok(out.write_all(b"}\n")?)
}

async fn as_lines(cursor: &mut GraphCursor, out: &mut impl Write) -> Result<(), Stopped> {
    let names = cursor.columns().to_vec();
    while let Some(row) = cursor.get_next().await? {
        serde_json::to_writer(&mut *out, &Named(&names, &row))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

async fn as_csv(cursor: &mut GraphCursor, out: &mut impl Write) -> Result<(), Stopped> {
    out.write_all(csv_line(cursor.columns()).as_bytes())?;
    while let Some(row) = cursor.get_next().await? {
        let cells: Vec<String> = row.iter().map(plain).collect();
        out.write_all(csv_line(&cells).as_bytes())?;
    }
    Ok(())
}

/// A drawing shows each node once, so it needs all rows first.
async fn drawn(
    cursor: &mut GraphCursor,
    format: Format,
    out: &mut impl Write,
) -> Result<(), Stopped> {
    let mut drawn = Drawn::default();
    while let Some(row) = cursor.get_next().await? {
        row.into_iter().for_each(|datum| drawn.add(datum));
        drawn.check()?;
    }
    let text = if format == Format::Dot { drawn.dot() } else { drawn.graphml() };
    Ok(out.write_all(text.as_bytes())?)
}

/// The cells of a row.
struct Cells<'a>(&'a GraphRow);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Datum::as_json))
    }
}

/// The cells of a row by the names of their columns, in alphabetical order.
struct Named<'a>(&'a [String], &'a GraphRow);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cells: Vec<(&String, &Datum)> = self.0.iter().zip(self.1).collect();
        cells.sort_by_key(|(name, _)| *name);
        let mut map = serializer.serialize_map(Some(cells.len()))?;
        for (name, cell) in cells {
            map.serialize_entry(name, &cell.as_json())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_objects_in_lines() {
        let names = ["b".to_owned(), "a".to_owned()];
        let row = vec![Datum::Integer(1), Datum::Float(f64::NAN)];
        assert_eq!(serde_json::to_string(&Named(&names, &row)).unwrap(), r#"{"a":"NaN","b":1}"#);
        assert_eq!(serde_json::to_string(&Cells(&row)).unwrap(), r#"[1,"NaN"]"#);
    }
}
