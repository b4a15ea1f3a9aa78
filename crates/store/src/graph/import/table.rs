//! CSV tables: a header with column names and types, then rows.

use csv::{ByteRecord, Reader, ReaderBuilder};
use isolith_graph::{Datum, PropertyType, Scalar, Temporal, TemporalKind, Value};
use isolith_types::{Code, Failure, counted};

/// Maximum number of rows per batch: they are held in memory while other writes wait.
pub(super) const MAX_ROWS: u64 = 1 << 19;

/// The shortest row of a node: a cell of one digit and a line break; an edge has two cells and a
/// delimiter.
pub(super) const MIN_NODE_LEN: u64 = 2;
pub(super) const MIN_EDGE_LEN: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    /// Whole numbers in a range.
    Integer {
        least: i64,
        most: i64,
    },
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
        self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|column| column.name.as_str()).collect();
            bad_header(format!("no column {name:?}; the table has {}", names.join(", ")))
        })
    }

    /// Whether no value of the column with this name, if there is one, has another type.
    pub(super) fn has_types(&self, name: &str, types: &[PropertyType]) -> bool {
        let Some(at) = self.find(name) else { return true };
        let scalar = match self.0[at].kind {
            ColumnType::Text => Scalar::String,
            ColumnType::Integer { .. } => Scalar::Integer,
            ColumnType::Float => Scalar::Float,
            ColumnType::Boolean => Scalar::Boolean,
            ColumnType::Json | ColumnType::Temporal(_) => return false,
        };
        types.contains(&PropertyType::Scalar(scalar))
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|column| column.name == name)
    }
}

impl Column {
    fn read(text: &str) -> Result<Self, Failure> {
        let (name, kind) = text.rsplit_once(':').unwrap_or((text, "string"));
        let kind = match kind {
            "string" => ColumnType::Text,
            "int" => integer(i64::MIN, i64::MAX),
            "int8" => integer(i8::MIN.into(), i8::MAX.into()),
            "int16" => integer(i16::MIN.into(), i16::MAX.into()),
            "int32" => integer(i32::MIN.into(), i32::MAX.into()),
            "uint8" => integer(0, u8::MAX.into()),
            "uint16" => integer(0, u16::MAX.into()),
            "uint32" => integer(0, u32::MAX.into()),
            "uint64" => integer(0, i64::MAX),
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
            ColumnType::Text
            | ColumnType::Integer { .. }
            | ColumnType::Float
            | ColumnType::Json => Ok(()),
            ColumnType::Boolean | ColumnType::Temporal(_) => {
                let message = format!("column {} cannot be a node key", self.name);
                let hint = "keys of nodes are texts or numbers";
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
            ColumnType::Integer { least, most } => {
                let number = text.trim().parse::<i64>().ok();
                number.filter(|it| (least..=most).contains(&it)).map(Value::Integer)
            }
            ColumnType::Float => text.trim().parse().ok().map(Value::Float),
            ColumnType::Boolean => boolean(text.trim()).map(Value::Boolean),
            ColumnType::Json => json_value(text),
            ColumnType::Temporal(kind) => Temporal::parsed(*kind, text).map(Value::from),
        };
        value.ok_or_else(|| {
            let wanted = match kind {
                ColumnType::Text => "text".to_owned(),
                ColumnType::Integer { least: i64::MIN, most: i64::MAX } => {
                    "a whole number".to_owned()
                }
                ColumnType::Integer { least, most } => {
                    format!("a whole number from {least} to {most}")
                }
                ColumnType::Float => "a number".to_owned(),
                ColumnType::Boolean => "true or false".to_owned(),
                ColumnType::Json => "JSON: a string, a number, a boolean or a flat list".to_owned(),
                ColumnType::Temporal(kind) => kind.name().to_owned(),
            };
            let shown: String = text.chars().take(40).collect();
            format!("{name} is {shown:?}, which is not {wanted}")
        })
    }
}

fn integer(least: i64, most: i64) -> ColumnType {
    ColumnType::Integer { least, most }
}

/// Accepts what databases write: `true`, `t` and `1`, in any case.
fn boolean(text: &str) -> Option<bool> {
    let is_any_of = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_any_of(["true", "t", "1"]) {
        Some(true)
    } else {
        is_any_of(["false", "f", "0"]).then_some(false)
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
    bytes: &'a [u8],
    delimiter: u8,
    reader: Reader<&'a [u8]>,
    record: ByteRecord,
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
            bytes,
            delimiter,
            reader: reader(bytes, delimiter),
            record: ByteRecord::new(),
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
        if !there || (end == self.bytes.len() as u64 && !self.is_last) {
            // Blank lines may follow the last row.
            self.taken = if there { self.taken } else { end };
            return None;
        }
        let text = &self.bytes[self.taken as usize..end as usize];
        (self.count, self.taken) = (self.count + 1, end);
        Some(check_quotes(text, self.delimiter).and_then(|()| self.cells()))
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

/// Rejects a row whose quoted cells do not end as they should, which the reader accepts.
fn check_quotes(row: &[u8], delimiter: u8) -> Result<(), String> {
    enum At {
        Start,
        Plain,
        Quoted,
        AfterQuote,
    }
    if !row.contains(&b'"') {
        return Ok(());
    }
    let mut at = At::Start;
    for byte in row {
        at = match (at, *byte) {
            (At::Start, b'"') | (At::AfterQuote, b'"') => At::Quoted,
            (At::Quoted, b'"') => At::AfterQuote,
            (At::Quoted, _) => At::Quoted,
            (_, b'\r' | b'\n') => At::Start,
            (_, byte) if byte == delimiter => At::Start,
            (At::AfterQuote, _) => return Err("text follows a closing quotation mark".to_owned()),
            (At::Start | At::Plain, _) => At::Plain,
        };
    }
    match at {
        At::Quoted => Err("a closing quotation mark is missing".to_owned()),
        _ => Ok(()),
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
            column("id", integer(i64::MIN, i64::MAX)),
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
    fn quotation_marks_must_enclose_cells() {
        for (text, expected) in [
            (&b"1,\"a\",,\n"[..], None),
            (b"1,\"a\"\"b\",,\r\n", None),
            (b"1,\"a,\nb\",,\n", None),
            (b"\n1,a\"b\"c,,\n", None),
            (b"1,\"a\"b,,\n", Some("text follows a closing quotation mark")),
            (b"1,\"a,,\n", Some("a closing quotation mark is missing")),
        ] {
            let (all, _) = rows(text, true);
            let found = all.into_iter().find_map(Result::err);
            assert_eq!(found.as_deref(), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn whole_numbers_have_a_range() {
        let header = header("a:int8,b:uint8,c:int32,d:uint64");
        let read = |text: &str| {
            let mut rows = Rows::new(&header, text.as_bytes(), b',', true);
            rows.next().unwrap().map(|cells| format!("{cells:?}"))
        };
        assert!(read("-128,255,2147483647,9223372036854775807").is_ok());
        for (text, message) in [
            ("128,0,0,0", "a is \"128\", which is not a whole number from -128 to 127"),
            ("0,-1,0,0", "b is \"-1\", which is not a whole number from 0 to 255"),
            (
                "0,0,2147483648,0",
                "c is \"2147483648\", which is not a whole number from -2147483648 to 2147483647",
            ),
            ("0,0,0,-1", "d is \"-1\", which is not a whole number from 0 to 9223372036854775807"),
        ] {
            assert_eq!(read(text).unwrap_err(), message);
        }
    }

    #[test]
    fn truth_values_may_be_short() {
        let header = header("ok:bool");
        let read = |text: &str| Rows::new(&header, text.as_bytes(), b',', true).next().unwrap();
        for (text, expected) in [("T", true), ("1", true), ("f", false), ("False", false)] {
            assert_eq!(read(text), Ok(vec![Value::Boolean(expected)]));
        }
        assert!(read("yes").is_err());
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
