use crate::feed::{
    Blocks, BufferedFeed, Fault, Feed, SliceFeed, Taken, next_member, peek, skip_value, take_key,
    take_line, take_value,
};
use crate::records::error::Flaw;
use crate::records::row::kind_of;
use crate::records::{Format, MAX_METADATA_BYTES, MAX_ROW_BYTES, MAX_VECTOR_BYTES};

/// The parts of one record as raw JSON, each a whole value with its offset in the file.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) id: Option<RecordPart<'a>>,
    pub(crate) vector: Option<RecordPart<'a>>,
    pub(crate) metadata: Option<RecordPart<'a>>,
    pub(crate) document: Option<RecordPart<'a>>,
    /// It is the header line of an export, not a record.
    pub(crate) is_header: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordPart<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: u64,
}

impl<'a> Parts<'a> {
    /// Splits a record into its parts.
    pub(crate) fn find(bytes: &'a [u8], offset: u64) -> Result<Self, Flaw> {
        let mut cut = SliceFeed::new(bytes, offset);
        if peek(&mut cut).map_err(Flaw::from_fault)? != Some(b'{') {
            let found = kind_of(cut.window().trim_ascii_end());
            return Err(Flaw::WrongKind { part: "a record", expected: "an object", found });
        }
        cut.advance(1);
        let mut parts = Self::default();
        let mut text = None;
        let mut first = true;
        while next_member(&mut cut, first, b'}').map_err(Flaw::from_fault)? {
            first = false;
            let key = take_key(&mut cut).map_err(Flaw::from_fault)?;
            match key.as_str() {
                "id" => fill(&mut parts.id, &mut cut, "id", MAX_METADATA_BYTES)?,
                "embedding" | "vector" if parts.vector.is_some() => {
                    return Err(Flaw::Both("embedding", "vector"));
                }
                "embedding" | "vector" => {
                    fill(&mut parts.vector, &mut cut, "embedding", MAX_VECTOR_BYTES)?;
                }
                "metadata" => {
                    fill(&mut parts.metadata, &mut cut, "metadata", MAX_METADATA_BYTES)?;
                }
                "document" => fill(&mut parts.document, &mut cut, "document", MAX_ROW_BYTES)?,
                "text" => fill(&mut text, &mut cut, "text", MAX_ROW_BYTES)?,
                other => {
                    parts.is_header |= other == "isolith_export";
                    skip_value(&mut cut).map_err(Flaw::from_fault)?;
                }
            }
        }
        parts.document = parts.document.or(text);
        match peek(&mut cut).map_err(Flaw::from_fault)? {
            None => Ok(parts),
            Some(found) => Err(Flaw::from_fault(Fault::Syntax {
                offset: cut.offset(),
                expected: "the end of the record",
                found,
            })),
        }
    }
}

fn fill<'a>(
    place: &mut Option<RecordPart<'a>>,
    cut: &mut SliceFeed<'a>,
    name: &'static str,
    limit: usize,
) -> Result<(), Flaw> {
    if place.is_some() {
        return Err(Flaw::Repeated(name));
    }
    let offset = cut.offset();
    match take_value(cut, limit).map_err(Flaw::from_fault)? {
        Taken::Whole(length) => *place = Some(RecordPart { bytes: cut.take(length), offset }),
        Taken::TooLong(bytes) => return Err(Flaw::TooLong { part: name, bytes, limit }),
    }
    Ok(())
}

/// Iterates over the records of a file of lines or of one list.
pub(crate) struct RecordReader<B> {
    source: BufferedFeed<B>,
    lines: bool,
    /// The number of lines taken.
    pub(crate) line: u64,
    first: bool,
}

impl<B: Blocks> RecordReader<B> {
    /// Reads from a position between two records; `first` if it is before the first one.
    pub(crate) fn new(source: BufferedFeed<B>, format: Format, line: u64, first: bool) -> Self {
        Self { source, lines: format == Format::Lines, line, first }
    }

    /// Brings the next record into memory; the caller consumes it after use. `None` at the end. A
    /// record that is too long is already consumed.
    pub(crate) fn take(&mut self) -> Result<Option<Taken>, Fault> {
        if self.lines {
            return self.take_line();
        }
        if !next_member(&mut self.source, self.first, b']')? {
            return Ok(None);
        }
        self.first = false;
        take_value(&mut self.source, MAX_ROW_BYTES).map(Some)
    }

    fn take_line(&mut self) -> Result<Option<Taken>, Fault> {
        loop {
            let taken = take_line(&mut self.source, MAX_ROW_BYTES)?;
            self.line += u64::from(taken.is_some());
            match taken {
                Some(Taken::Whole(length)) if self.bytes(length).trim_ascii().is_empty() => {
                    self.consume(length);
                }
                other => return Ok(other),
            }
        }
    }

    /// Whether no record follows. Consumes only white space.
    pub(crate) fn at_end(&mut self) -> Result<bool, Fault> {
        if self.lines {
            Ok(self.take_line()?.is_none())
        } else {
            Ok(peek(&mut self.source)? == Some(b']'))
        }
    }

    /// The bytes of the record that was taken.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        &self.source.window()[..length]
    }

    pub(crate) fn consume(&mut self, length: usize) {
        self.source.advance(length);
        if self.lines && self.source.window().first() == Some(&b'\n') {
            self.source.advance(1);
        }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The line of the record that was taken, in a file of lines.
    pub(crate) fn current_line(&self) -> Option<u64> {
        self.lines.then_some(self.line)
    }

    pub(crate) fn into_source(self) -> BufferedFeed<B> {
        self.source
    }
}
