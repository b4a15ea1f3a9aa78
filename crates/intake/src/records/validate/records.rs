use crate::feed::{Blocks, BufferedFeed, Feed, Taken, peek};
use crate::records::error::Flaw;
use crate::records::layout::Rejections;
use crate::records::record::{Parts, RecordReader};
use crate::records::row::{
    VectorRule, kind_of, read_document, read_id, read_metadata, read_vector,
};
use crate::records::{Cursor, Format, IntakeError, MAX_METADATA_BYTES, MAX_ROW_BYTES, Rules};

use super::Findings;
use super::duplicates::IdHashes;

/// Checks a file with one record per line.
pub(super) fn read_lines<B: Blocks>(
    source: BufferedFeed<B>,
    rules: &Rules,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    read(source, Format::Lines, rules)
}

/// Checks a list of records after its opening bracket.
pub(super) fn read_array<B: Blocks>(
    mut source: BufferedFeed<B>,
    rules: &Rules,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    if let Some(first) = peek(&mut source)?
        && !matches!(first, b'{' | b']')
    {
        let item = source.window().split(|byte| b",] \r\n".contains(byte)).next();
        let kind = kind_of(item.unwrap_or_default());
        let found = format!("a JSON list that begins with {kind}");
        return Err(IntakeError::Unrecognized { found });
    }
    read(source, Format::Array, rules)
}

fn read<B: Blocks>(
    source: BufferedFeed<B>,
    format: Format,
    rules: &Rules,
) -> Result<(Findings, BufferedFeed<B>), IntakeError> {
    let mut records = Records::new(source.offset(), format, rules);
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
    records.findings.dimension = records.vectors.dimension;
    Ok((records.findings, reader.into_source()))
}

struct Records {
    findings: Findings,
    vectors: VectorRule,
    vector: Vec<f32>,
}

enum Verdict {
    Record,
    Header,
}

impl Records {
    fn new(offset: u64, format: Format, rules: &Rules) -> Self {
        let findings = Findings {
            format,
            rows: 0,
            dimension: None,
            start: Cursor { offsets: [offset, 0, 0, 0], ..Cursor::default() },
            header: None,
            rejections: Rejections::default(),
            ids: IdHashes::default(),
        };
        let vectors = VectorRule { dimension: rules.dimension, metric: rules.metric };
        Self { findings, vectors, vector: Vec::new() }
    }

    fn check(&mut self, bytes: &[u8], offset: u64) -> Result<Verdict, Flaw> {
        let parts = Parts::find(bytes, offset)?;
        if parts.is_header && self.findings.format == Format::Lines {
            return Ok(Verdict::Header);
        }
        let id = parts.id.ok_or(Flaw::Missing { part: "id" })?;
        let id = read_id(id.bytes, id.offset)?;
        let vector = parts.vector.ok_or(Flaw::Missing { part: "embedding" })?;
        read_vector(vector.bytes, vector.offset, &mut self.vector)?;
        if let Some(metadata) = parts.metadata {
            read_metadata(metadata.bytes, metadata.offset)?;
        }
        if let Some(document) = parts.document {
            read_document(document.bytes, document.offset)?;
        }
        self.vectors.admit(&self.vector)?;
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
        Ok(())
    }
}
