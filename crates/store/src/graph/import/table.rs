//! CSV tables: a header with column names and types, then rows.

use csv::{ByteRecord, Reader, ReaderBuilder};
use isolith_graph::{Datum, Temporal, TemporalKind, Value};
use isolith_types::{Code, Failure, counted};

/// Maximum number of rows per batch: they are held in memory while other writes wait.
pub(super) const MAX_ROWS: u64 = 1 << 19;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Integer,
    Float,
    Boolean,
    /// A JSON value: any of the others, or a flat list.
    Json,
    Temporal(TemporalKind),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnType,
}

#[derive(Debug)]
pub(super) struct TableHeader(pub(super) Vec<Column>);

impl TableHeader {
    /// Parses the first line: column names, each optionally followed by a colon and a type
    /// (text by default).
    pub(super) fn read(line: &str, delimiter: u8) -> Result<Self, Failure> {
        let mut record = ByteRecord::new();
        let _ = reader(line.as_bytes(), delimiter).read_byte_record(&mut record);
        let mut columns: Vec<Column> = Vec::with_capacity(record.len());
        for cell in &record {
            let column = Column::read(String::from_utf8_lossy(cell).trim())?;
            if columns.iter().any(|other| other.name == column.name) {
                return Err(bad_header(format!("duplicate column {:?}", column.name)));
            }
            columns.push(column);
        }
        match columns.is_empty() {
            true => Err(bad_header("the header is empty".to_owned())),
            false => Ok(Self(columns)),
        }
    }

    /// The index of the column with this name.
    pub(super) fn position(&self, name: &str) -> Result<usize, Failure> {
        let place = self.0.iter().position(|column| column.name == name);
        place.ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|column| column.name.as_str()).collect();
            bad_header(format!("no column {name:?}; the table has {}", names.join(", ")))
        })
    }
}

impl Column {
    fn read(text: &str) -> Result<Self, Failure> {
        let (name, kind) = text.rsplit_once(':').unwrap_or((text, "string"));
        let kind = match kind {
            "string" => ColumnType::Text,
            "int" => ColumnType::Integer,
            "float" => ColumnType::Float,
            "bool" => ColumnType::Boolean,
            "json" => ColumnType::Json,
            _ => match TemporalKind::named(kind) {
                Some(kind) => ColumnType::Temporal(kind),
                None => {
                    return Err(bad_header(format!("{kind:?} in {text:?} is not a column type")));
                }
            },
        };
        match name.is_empty() {
            true => Err(bad_header("a column has no name".to_owned())),
            false => Ok(Self { name: name.to_owned(), kind }),
        }
    }

    /// Rejects a column whose type cannot be a node key.
    pub(super) fn check_names(&self) -> Result<(), Failure> {
        match self.kind {
            ColumnType::Text | ColumnType::Integer => Ok(()),
            _ => {
                let message = format!("column {} cannot be a node key", self.name);
                let hint = "what names nodes is text, or whole numbers (`:int`)";
                Err(Failure::new(Code::BadInput, message).with_hint(hint))
            }
        }
    }

    /// Parses a cell; null if it is empty.
    fn value(&self, cell: &[u8]) -> Result<Value, String> {
        let Column { name, kind } = self;
        let text = std::str::from_utf8(cell).map_err(|_| format!("{name} is not valid UTF-8"))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let value = match kind {
            ColumnType::Text => Some(Value::text(text)),
            ColumnType::Integer => text.trim().parse().ok().map(Value::Integer),
            ColumnType::Float => text.trim().parse().ok().map(Value::Float),
            ColumnType::Boolean => {
                text.trim().to_ascii_lowercase().parse().ok().map(Value::Boolean)
            }
            ColumnType::Json => json_value(text),
            ColumnType::Temporal(kind) => Temporal::parsed(*kind, text).map(Value::from),
        };
        value.ok_or_else(|| {
            let wanted = match kind {
                ColumnType::Text => "text",
                ColumnType::Integer => "a whole number",
                ColumnType::Float => "a number",
                ColumnType::Boolean => "true or false",
                ColumnType::Json => "JSON: a string, a number, a boolean or a flat list",
                ColumnType::Temporal(kind) => kind.name(),
            };
            let shown: String = text.chars().take(40).collect();
            format!("{name} is {shown:?}, which is not {wanted}")
        })
    }
}

/// Parses a JSON value that a property can hold.
fn json_value(text: &str) -> Option<Value> {
    let json = serde_json::from_str(text).ok()?;
    let value = Datum::from_json(&json).ok()?.to_value();
    (value.is_null() || value.is_storable()).then_some(value)
}

fn bad_header(message: String) -> Failure {
    Failure::new(Code::BadInput, message).with_hint(
        "the first line names the columns, as in `id:int,name,score:float,active:bool,tags:json`; \
         a column without a type is text",
    )
}

/// Iterates over the rows in one block of a table.
pub(super) struct Rows<'a> {
    header: &'a TableHeader,
    reader: Reader<&'a [u8]>,
    record: ByteRecord,
    length: u64,
    is_last: bool,
    /// Number of rows returned.
    pub(super) count: u64,
    /// Number of bytes these rows took.
    pub(super) taken: u64,
}

impl<'a> Rows<'a> {
    /// Unless `is_last`, the block may end within a row, which is left for the next block.
    pub(super) fn new(
        header: &'a TableHeader,
        bytes: &'a [u8],
        delimiter: u8,
        is_last: bool,
    ) -> Self {
        Self {
            header,
            reader: reader(bytes, delimiter),
            record: ByteRecord::new(),
            length: bytes.len() as u64,
            is_last,
            count: 0,
            taken: 0,
        }
    }

    /// The cells of the next row, or what is wrong with it.
    pub(super) fn next(&mut self) -> Option<Result<Vec<Value>, String>> {
        if self.count == MAX_ROWS {
            return None;
        }
        // Reading from memory cannot fail, and the number of cells may vary.
        let there = self.reader.read_byte_record(&mut self.record).unwrap_or(false);
        let end = self.reader.position().byte();
        if !there || (end == self.length && !self.is_last) {
            // Blank lines may follow the last row.
            self.taken = if there { self.taken } else { end };
            return None;
        }
        (self.count, self.taken) = (self.count + 1, end);
        Some(self.cells())
    }

    fn cells(&self) -> Result<Vec<Value>, String> {
        let (found, named) = (self.record.len(), self.header.0.len());
        if found != named {
            return Err(format!("expected {}, found {found}", counted(named, "cell")));
        }
        let mut cells = Vec::with_capacity(named);
        for (column, cell) in self.header.0.iter().zip(&self.record) {
            cells.push(column.value(cell)?);
        }
        Ok(cells)
    }
}

/// Reads all rows of a table as text, in two blocks split at `cut`. For fuzz targets.
///
/// # Errors
/// If the header is invalid.
#[cfg(feature = "fuzzing")]
pub fn read_cells(header: &str, bytes: &[u8], cut: usize) -> Result<Vec<String>, Failure> {
    let header = TableHeader::read(header, b',')?;
    let mut cells = Vec::new();
    let mut first = Rows::new(&header, &bytes[..cut.min(bytes.len())], b',', false);
    cells.extend(std::iter::from_fn(|| first.next()).map(|row| format!("{row:?}")));
    let taken = usize::try_from(first.taken).unwrap_or(usize::MAX);
    let mut rest = Rows::new(&header, bytes.get(taken..).unwrap_or_default(), b',', true);
    cells.extend(std::iter::from_fn(|| rest.next()).map(|row| format!("{row:?}")));
    Ok(cells)
}

fn reader(bytes: &[u8], delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(delimiter);
    builder.buffer_capacity(64 << 10).from_reader(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(line: &str) -> TableHeader {
        TableHeader::read(line, b',').unwrap()
    }

    /// All rows or their errors, and the number of bytes consumed.
    fn rows(bytes: &[u8], is_last: bool) -> (Vec<Result<Vec<Value>, String>>, u64) {
        let header = header("id:int,name,score:float,ok:bool");
        let mut rows = Rows::new(&header, bytes, b',', is_last);
        let all = std::iter::from_fn(|| rows.next()).collect();
        (all, rows.taken)
    }

    #[test]
    fn columns_have_names_and_types() {
        let TableHeader(columns) = header("id:int, name ,score:float,ok:bool,a:b:string,\"x,y\"");
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let expected = [
            column("id", ColumnType::Integer),
            column("name", ColumnType::Text),
            column("score", ColumnType::Float),
            column("ok", ColumnType::Boolean),
            column("a:b", ColumnType::Text),
            column("x,y", ColumnType::Text),
        ];
        assert_eq!(columns, expected);
    }

    #[test]
    fn an_invalid_header_is_rejected() {
        for (line, expected) in [
            ("", "the header is empty"),
            ("a,,b", "a column has no name"),
            ("a:int,a", "duplicate column \"a\""),
            ("a:point", "\"point\" in \"a:point\" is not a column type"),
        ] {
            assert_eq!(TableHeader::read(line, b',').unwrap_err().message, expected);
        }
        let missing = header("a,b").position("c").unwrap_err();
        assert_eq!(missing.message, "no column \"c\"; the table has a, b");
    }

    #[test]
    fn cells_are_parsed_by_column_type() {
        let text = b"7,\"a \"\"b\"\",\nc\",1.5,TRUE\r\n\n-1,,,\n";
        let (all, taken) = rows(text, true);
        let full = vec![
            Value::Integer(7),
            Value::text("a \"b\",\nc"),
            Value::Float(1.5),
            Value::Boolean(true),
        ];
        let bare = vec![Value::Integer(-1), Value::Null, Value::Null, Value::Null];
        assert_eq!(all, [Ok(full), Ok(bare)]);
        assert_eq!(taken, text.len() as u64);
    }

    #[test]
    fn invalid_rows_have_a_reason() {
        let (all, _) = rows(b"1,x\nseven,x,1,true\n1,\xff,1,true\n1,x,1,maybe\n1,x,1,true", true);
        let wrong: Vec<String> = all.into_iter().filter_map(Result::err).collect();
        let expected = [
            "expected 4 cells, found 2",
            "id is \"seven\", which is not a whole number",
            "name is not valid UTF-8",
            "ok is \"maybe\", which is not true or false",
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn at_most_max_rows_are_read() {
        let header = header("id:int");
        let text = "1\n".repeat(usize::try_from(MAX_ROWS).unwrap() + 3);
        let mut rows = Rows::new(&header, text.as_bytes(), b',', true);
        while rows.next().is_some() {}
        assert_eq!((rows.count, rows.taken), (MAX_ROWS, 2 * MAX_ROWS));
    }

    #[test]
    fn an_incomplete_row_is_left_for_the_next_block() {
        let text = b"1,a,1,true\n2,\"b\nb\",1,true\n3,c,1,true\n";
        for cut in 0..text.len() {
            let (first, taken) = rows(&text[..cut], false);
            let (rest, _) = rows(&text[usize::try_from(taken).unwrap()..], true);
            let all: Vec<_> = first.into_iter().chain(rest).collect();
            assert_eq!(all, rows(text, true).0, "cut at {cut}");
        }
    }
}
