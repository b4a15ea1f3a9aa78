use crate::feed::{Blocks, BufferedFeed, Feed, Taken, peek};
use crate::records::error::Flaw;
use crate::records::layout::Rejections;
use crate::records::record::{Parts, RecordReader};
use crate::records::row::{
    VectorRule, kind_of, read_document, read_id, read_metadata, read_vector,
};
use crate::records::{Cursor, Format, IntakeError, MAX_METADATA_BYTES, MAX_ROW_BYTES, Rules};

use super::duplicates::IdHashes;
use super::{Findings, VectorSource};

/// Checks a file with one record per line.
pub(super) fn read_lines<B: Blocks>(
    source: BufferedFeed<B>,
    rules: &Rules,
    vectors: VectorSource<'_>,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    read(source, Format::Lines, rules, vectors)
}

/// Checks a list of records after its opening bracket.
pub(super) fn read_array<B: Blocks>(
    mut source: BufferedFeed<B>,
    rules: &Rules,
    vectors: VectorSource<'_>,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    if let Some(first) = peek(&mut source)?
        && !matches!(first, b'{' | b']')
    {
        let item = source.window().split(|byte| b",] \r\n".contains(byte)).next();
        let kind = kind_of(item.unwrap_or_default());
        let found = format!("a JSON list that begins with {kind}");
        return Err(IntakeError::Unrecognized { found });
    }
    read(source, Format::Array, rules, vectors)
}

fn read<B: Blocks>(
    source: BufferedFeed<B>,
    format: Format,
    rules: &Rules,
    vectors: VectorSource<'_>,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    let mut records = Records::new(source.offset(), format, rules, vectors);
    let mut reader = RecordReader::new(source, format, 0, true);
    let mut row = 0;
    while let Some(taken) = reader.take().map_err(|fault| IntakeError::in_row(fault, row))? {
        let line = reader.current_line();
        let verdict = match taken {
            Taken::Whole(length) => records.check(reader.bytes(length), reader.offset()),
            Taken::TooLong(bytes) => {
                Err(Flaw::TooLong { part: "the record", bytes, limit: MAX_ROW_BYTES })
            }
        };
        if let Taken::Whole(length) = taken {
            if let Ok(Verdict::Header) = verdict {
                records.keep_header(reader.bytes(length), row, reader.line)?;
            }
            reader.consume(length);
        }
        match verdict {
            Ok(Verdict::Header) => {
                let offsets = [reader.offset(), 0, 0, 0];
                records.findings.start = Cursor { row: 0, line: reader.line, offsets };
                continue;
            }
            Ok(Verdict::Record) => {}
            Err(flaw) => records.findings.rejections.add(row, line, flaw),
        }
        row += 1;
    }
    records.findings.rows = row;
    records.findings.embedded = records.embedded.unwrap_or(false);
    if !records.findings.embedded {
        records.findings.dimension = records.vectors.dimension;
    }
    Ok((records.findings, reader.into_source()))
}

struct Records<'e> {
    findings: Findings,
    source: VectorSource<'e>,
    /// Whether documents are embedded, once that is known.
    embedded: Option<bool>,
    vectors: VectorRule,
    vector: Vec<f32>,
}

enum Verdict {
    Record,
    Header,
}

impl<'e> Records<'e> {
    fn new(offset: u64, format: Format, rules: &Rules, source: VectorSource<'e>) -> Self {
        let findings = Findings {
            format,
            rows: 0,
            dimension: None,
            embedded: false,
            start: Cursor { offsets: [offset, 0, 0, 0], ..Cursor::default() },
            header: None,
            rejections: Rejections::default(),
            ids: IdHashes::default(),
        };
        let vectors = VectorRule::new(rules.dimension, rules.metric);
        let embedded = match source {
            VectorSource::Rows => Some(false),
            VectorSource::Documents(_) => Some(true),
            VectorSource::AsFirstRow(_) => None,
        };
        Self { findings, source, embedded, vectors, vector: Vec::new() }
    }

    fn check(&mut self, bytes: &[u8], offset: u64) -> Result<Verdict, Flaw> {
        let parts = Parts::find(bytes, offset)?;
        if parts.is_header && self.findings.format == Format::Lines {
            return Ok(Verdict::Header);
        }
        let id = parts.id.ok_or(Flaw::Missing { part: "id" })?;
        let id = read_id(id.bytes, id.offset)?;
        let may_embed = self.source.may_embed();
        let vector = parts.vector.filter(|vector| !(may_embed && vector.bytes == b"null"));
        match (vector, self.embedded) {
            (Some(_), Some(true)) => return Err(self.source.unwanted()),
            (Some(vector), _) => read_vector(vector.bytes, vector.offset, &mut self.vector)?,
            (None, Some(false)) => return Err(self.source.missing()),
            (None, _) => {}
        }
        if let Some(metadata) = parts.metadata {
            read_metadata(metadata.bytes, metadata.offset)?;
        }
        let document = match parts.document {
            Some(document) => read_document(document.bytes, document.offset)?,
            None => None,
        };
        match vector {
            Some(_) => self.vectors.admit(&self.vector)?,
            None => self.source.check_document(document.as_deref())?,
        }
        self.embedded.get_or_insert(vector.is_none());
        self.findings.ids.add(&id);
        Ok(Verdict::Record)
    }

    fn keep_header(&mut self, line: &[u8], row: u64, number: u64) -> Result<(), IntakeError> {
        if row > 0 || self.findings.header.is_some() {
            return Err(IntakeError::SecondHeader { line: number });
        }
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        let text = std::str::from_utf8(line).ok();
        let text = text.filter(|text| is_json && text.len() <= MAX_METADATA_BYTES);
        let Some(text) = text else {
            let found = "an export whose first line cannot be read".to_owned();
            return Err(IntakeError::Unrecognized { found });
        };
        self.findings.header = Some(text.trim().to_owned());
        // Collections may have zero vectors, which Chroma's clients can add.
        self.vectors.refuses_zero = false;
        Ok(())
    }
}
