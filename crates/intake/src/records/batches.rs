use isolith_types::{Metadata, counted};

use crate::feed::{
    BufferedFeed, Content, Fault, Feed, Taken, next_member, peek, skip_value, take_value,
};
use crate::records::error::Flaw;
use crate::records::layout::List;
use crate::records::record::{Parts, RecordReader};
use crate::records::row::{read_document, read_id, read_metadata, read_vector};
use crate::records::{Cursor, Format, IntakeError, Layout, MAX_ROW_BYTES};

/// The second pass: reads the records of a checked file in batches.
///
/// The content is shared by up to four readers: use a `&File`, an `Arc<File>` or similar. A file
/// that changed between the passes is detected by its length or by an invalid row; different
/// content of the same shape is not detected.
pub struct Batches<C> {
    layout: Layout,
    reader: Reader<C>,
    cursor: Cursor,
    /// A row that did not fit into the last batch, and the position after it.
    waiting: Option<(Row, Cursor)>,
}

/// Records of consecutive rows. Rejected rows are left out, so it may cover rows without having
/// records.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordBatch {
    /// The first row covered, from 1.
    pub first_row: u64,
    /// The number of rows covered, including rejected ones.
    pub rows_covered: u64,
    /// The id of each record.
    pub ids: Vec<String>,
    /// The document of each record, if it has one.
    pub documents: Vec<Option<String>>,
    /// The metadata of each record; may be empty.
    pub metadatas: Vec<Metadata>,
    /// The vectors, concatenated; none if documents are to be embedded.
    pub vectors: Vec<f32>,
    /// Where the next batch begins.
    pub next: Cursor,
}

impl<C: Content + Clone> Batches<C> {
    /// Starts reading at [`Layout::start`], or at [`RecordBatch::next`] of an earlier batch.
    ///
    /// # Errors
    /// [`IntakeError::Changed`] if the length of the file has changed, [`IntakeError::BadCursor`] if
    /// the cursor is not in the file.
    pub fn open(content: C, layout: Layout, cursor: Cursor) -> Result<Self, IntakeError> {
        const BUFFER_BYTES: usize = 256 << 10;
        Self::open_with(content, layout, cursor, BUFFER_BYTES)
    }

    /// Starts reading after this many rows, if there is no cursor. The rows before are scanned, which
    /// is fast but not free.
    ///
    /// # Errors
    /// As for [`Batches::open`].
    pub fn open_after(content: C, layout: Layout, rows: u64) -> Result<Self, IntakeError> {
        if rows > layout.rows {
            return Err(IntakeError::BadCursor { row: rows, rows: layout.rows });
        }
        let start = layout.start();
        let mut batches = Self::open(content, layout, start)?;
        batches.reader.skip(rows).map_err(|fault| changed_at(fault, rows))?;
        batches.cursor = batches.reader.position(rows);
        Ok(batches)
    }

    pub(crate) fn open_with(
        content: C,
        layout: Layout,
        cursor: Cursor,
        buffer_bytes: usize,
    ) -> Result<Self, IntakeError> {
        let bytes = content.size().map_err(IntakeError::Io)?;
        if bytes != layout.bytes {
            let detail = format!("it had {} bytes, now it has {bytes}", layout.bytes);
            return Err(IntakeError::changed(detail));
        }
        if cursor.row > layout.rows || cursor.offsets.iter().any(|offset| *offset > bytes) {
            return Err(IntakeError::BadCursor { row: cursor.row, rows: layout.rows });
        }
        let source = |offset| BufferedFeed::new(content.clone(), offset, buffer_bytes);
        let first = cursor.row == 0;
        let reader = match layout.format {
            Format::Lists => {
                let starts = layout.start.offsets;
                let lists = List::ALL.map(|list| {
                    let place = list as usize;
                    (starts[place] > 0)
                        .then(|| ListReader { source: source(cursor.offsets[place]), first })
                });
                Reader::Lists(lists)
            }
            format => {
                let source = source(cursor.offsets[0]);
                Reader::Records(RecordReader::new(source, format, cursor.line, first))
            }
        };
        Ok(Self { layout, reader, cursor, waiting: None })
    }

    /// The position of the next batch.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The next batch: at most `max_rows` rows and `max_bytes` bytes of ids, documents, metadata and
    /// vectors, but at least one row. `None` at the end of the file.
    ///
    /// # Errors
    /// [`IntakeError::Changed`] if a row that passed the first pass is no longer valid.
    pub fn next(
        &mut self,
        max_rows: u64,
        max_bytes: usize,
    ) -> Result<Option<RecordBatch>, IntakeError> {
        let mut batch = RecordBatch::starting_at(self.cursor);
        let mut bytes = 0;
        while batch.rows_covered < max_rows.max(1) {
            let (row, after) = match self.waiting.take() {
                Some((row, after)) => (Some(row), after),
                None if batch.next.row == self.layout.rows => {
                    self.expect_end()?;
                    break;
                }
                None => {
                    let row = self.read_row(batch.next.row)?;
                    (row, self.reader.position(batch.next.row + 1))
                }
            };
            if let Some(row) = row {
                if !batch.ids.is_empty() && bytes + row.bytes() > max_bytes {
                    self.waiting = Some((row, after));
                    break;
                }
                bytes += row.bytes();
                batch.push(row);
            }
            batch.rows_covered += 1;
            batch.next = after;
        }
        self.cursor = batch.next;
        Ok((batch.rows_covered > 0).then_some(batch))
    }

    /// Reads a row, counted from 0; `None` if it is rejected.
    fn read_row(&mut self, row: u64) -> Result<Option<Row>, IntakeError> {
        if self.layout.rejected_rows.contains(row) {
            self.reader.skip(1).map_err(|fault| changed_at(fault, row))?;
            return Ok(None);
        }
        let record =
            self.reader.read(self.layout.embedded).map_err(|fault| changed_at(fault, row))?;
        let record = record.map_err(|flaw| changed_row(row, &flaw.to_string()))?;
        if self.layout.embedded {
            return Ok(Some(record));
        }
        if Some(record.vector.len()) != self.layout.dimension.map(|dimension| dimension as usize) {
            let found = record.vector.len();
            let expected = self.layout.dimension.unwrap_or(0);
            return Err(changed_row(row, &Flaw::Dimension { found, expected }.to_string()));
        }
        Ok(Some(record))
    }

    fn expect_end(&mut self) -> Result<(), IntakeError> {
        let rows = self.layout.rows;
        if self.reader.at_end().map_err(|fault| changed_at(fault, rows))? {
            Ok(())
        } else {
            Err(IntakeError::changed(format!("it had {}, now it has more", counted(rows, "row"))))
        }
    }
}

impl RecordBatch {
    fn starting_at(cursor: Cursor) -> Self {
        Self {
            first_row: cursor.row + 1,
            rows_covered: 0,
            ids: Vec::new(),
            documents: Vec::new(),
            metadatas: Vec::new(),
            vectors: Vec::new(),
            next: cursor,
        }
    }

    fn push(&mut self, row: Row) {
        self.ids.push(row.id);
        self.documents.push(row.document);
        self.metadatas.push(row.metadata);
        self.vectors.extend_from_slice(&row.vector);
    }
}

#[derive(Debug, Default)]
struct Row {
    id: String,
    document: Option<String>,
    metadata: Metadata,
    vector: Vec<f32>,
}

impl Row {
    fn bytes(&self) -> usize {
        let document = self.document.as_ref().map_or(0, String::len);
        self.id.len() + document + self.metadata.as_str().len() + self.vector.len() * 4
    }

    fn set(&mut self, list: List, bytes: &[u8]) -> Result<(), Flaw> {
        match list {
            List::Ids => self.id = read_id(bytes, 0)?.into_owned(),
            List::Embeddings => read_vector(bytes, 0, &mut self.vector)?,
            List::Metadatas => self.metadata = read_metadata(bytes, 0)?,
            List::Documents => {
                self.document = read_document(bytes, 0)?.map(|document| document.into_owned());
            }
        }
        Ok(())
    }
}

enum Reader<C> {
    Lists([Option<ListReader<C>>; 4]),
    Records(RecordReader<C>),
}

struct ListReader<C> {
    source: BufferedFeed<C>,
    first: bool,
}

impl<C: Content> Reader<C> {
    /// Reads one row. The outer error concerns the file, the inner one the row.
    fn read(&mut self, embedded: bool) -> Result<Result<Row, Flaw>, Fault> {
        match self {
            Reader::Lists(lists) => read_from_lists(lists),
            Reader::Records(reader) => read_record(reader, embedded),
        }
    }

    fn skip(&mut self, rows: u64) -> Result<(), Fault> {
        match self {
            Reader::Lists(lists) => {
                for list in lists.iter_mut().flatten() {
                    for _ in 0..rows {
                        list.go_to_item()?;
                        skip_value(&mut list.source)?;
                    }
                }
            }
            Reader::Records(reader) => {
                for _ in 0..rows {
                    match reader.take()? {
                        None => return Err(Fault::End { offset: reader.offset() }),
                        Some(Taken::Whole(length)) => reader.consume(length),
                        Some(Taken::TooLong(_)) => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn at_end(&mut self) -> Result<bool, Fault> {
        match self {
            Reader::Lists(lists) => {
                for list in lists.iter_mut().flatten() {
                    if peek(&mut list.source)? != Some(b']') {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Reader::Records(reader) => reader.at_end(),
        }
    }

    fn position(&self, row: u64) -> Cursor {
        match self {
            Reader::Lists(lists) => {
                let mut offsets = [0; 4];
                for (offset, list) in offsets.iter_mut().zip(lists) {
                    *offset = list.as_ref().map_or(0, |list| list.source.offset());
                }
                Cursor { row, line: 0, offsets }
            }
            Reader::Records(reader) => {
                Cursor { row, line: reader.line, offsets: [reader.offset(), 0, 0, 0] }
            }
        }
    }
}

impl<C: Content> ListReader<C> {
    fn go_to_item(&mut self) -> Result<(), Fault> {
        if !next_member(&mut self.source, self.first, b']')? {
            return Err(Fault::End { offset: self.source.offset() });
        }
        self.first = false;
        Ok(())
    }
}

fn read_from_lists<C: Content>(
    lists: &mut [Option<ListReader<C>>; 4],
) -> Result<Result<Row, Flaw>, Fault> {
    let mut row = Row::default();
    for (list, reader) in List::ALL.into_iter().zip(lists) {
        let Some(reader) = reader else { continue };
        reader.go_to_item()?;
        match take_value(&mut reader.source, list.item_limit())? {
            Taken::Whole(length) => {
                if let Err(flaw) = row.set(list, &reader.source.window()[..length]) {
                    return Ok(Err(flaw));
                }
                reader.source.advance(length);
            }
            Taken::TooLong(bytes) => {
                let (part, limit) = (list.item_name(), list.item_limit());
                return Ok(Err(Flaw::TooLong { part, bytes, limit }));
            }
        }
    }
    Ok(Ok(row))
}

fn read_record<C: Content>(
    reader: &mut RecordReader<C>,
    embedded: bool,
) -> Result<Result<Row, Flaw>, Fault> {
    match reader.take()? {
        None => Err(Fault::End { offset: reader.offset() }),
        Some(Taken::TooLong(bytes)) => {
            Ok(Err(Flaw::TooLong { part: "the record", bytes, limit: MAX_ROW_BYTES }))
        }
        Some(Taken::Whole(length)) => {
            let row = row_of_record(reader.bytes(length), reader.offset(), embedded);
            reader.consume(length);
            Ok(row)
        }
    }
}

fn row_of_record(bytes: &[u8], offset: u64, embedded: bool) -> Result<Row, Flaw> {
    let parts = Parts::find(bytes, offset)?;
    let mut row = Row::default();
    row.set(List::Ids, parts.id.ok_or(Flaw::Missing { part: "id" })?.bytes)?;
    if !embedded {
        let vector = parts.vector.ok_or(Flaw::NoVector)?;
        row.set(List::Embeddings, vector.bytes)?;
    }
    if let Some(metadata) = parts.metadata {
        row.set(List::Metadatas, metadata.bytes)?;
    }
    if let Some(document) = parts.document {
        row.set(List::Documents, document.bytes)?;
    }
    Ok(row)
}

fn changed_at(fault: Fault, row: u64) -> IntakeError {
    match fault {
        Fault::Io(_) | Fault::Cancelled => fault.into(),
        other => changed_row(row, &Flaw::from_fault(other).to_string()),
    }
}

fn changed_row(row: u64, reason: &str) -> IntakeError {
    IntakeError::changed(format!("row {}: {reason}", row + 1))
}
