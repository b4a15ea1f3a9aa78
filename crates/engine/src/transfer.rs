//! Export and import: collections as JSONL, vectors included.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use isolith_protocol::{CollectionState, Page, Selection};
use isolith_types::{Code, CollectionSpec, Failure, Hint, Metadata};
use serde::{Deserialize, Serialize};

use crate::open::Engine;

/// The first line of an export.
#[derive(Serialize, Deserialize)]
struct ExportHeader {
    /// The version of the export format.
    isolith_export: u32,
    collection: CollectionSpec,
}

/// One record's line.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    document: Option<&'a str>,
    metadata: &'a Metadata,
    vector: &'a [f32],
}

const VERSION: u32 = 1;

/// Maximum length of a header; anything longer is a record.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// Maximum number of vector components in one page: 8 MB.
const PAGE_NUMBERS: u32 = 2 << 20;

impl Engine {
    /// Writes a collection as JSONL: a header, then one line per record, in insertion order.
    /// Records written in the meantime may or may not be included.
    ///
    /// # Errors
    /// `not_found`; any error of a read, or of writing to the sink.
    pub async fn export(
        &self,
        name: &str,
        sink: &mut (dyn Write + Send),
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<u64, Failure> {
        let state = self.collection(name).await?;
        let limit = (PAGE_NUMBERS / state.dimension.unwrap_or(1).max(1)).clamp(1, 1_000);
        write_line(sink, &header(&state))?;
        let (mut after_row, mut written) = (0, 0);
        loop {
            let page = Page { after_row, offset: 0, limit: u64::from(limit) };
            let records = self.get(name, Selection::All, page, true).await?;
            let Some(last) = records.last() else { break };
            after_row = last.row;
            for stored in &records {
                let record = &stored.record;
                write_line(
                    sink,
                    &Line {
                        id: &record.id,
                        document: record.document.as_deref(),
                        metadata: &record.metadata,
                        vector: &record.vector,
                    },
                )?;
            }
            written += records.len() as u64;
            progress(written, state.records.max(written));
        }
        sink.flush().map_err(unwritable)?;
        Ok(written)
    }
}

/// Reads the collection's specification from an exported file.
///
/// # Errors
/// `bad_input` if the file is not an export, `not_found` if there is none.
pub fn exported_collection(file: &Path) -> Result<CollectionSpec, Failure> {
    let bad = |code, reason: &str| {
        Failure::new(code, format!("{}: {reason}", file.display())).with_hint(Hint::IngestFile)
    };
    let open = File::open(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => bad(Code::NotFound, "there is no such file"),
        _ => bad(Code::BadInput, &error.to_string()),
    })?;
    let mut line = Vec::new();
    let read = BufReader::new(open.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line);
    read.map_err(|error| bad(Code::BadInput, &error.to_string()))?;
    let header: ExportHeader = serde_json::from_slice(&line)
        .map_err(|_| bad(Code::BadInput, "its first line is not the header of an export"))?;
    if header.isolith_export > VERSION {
        return Err(bad(Code::BadInput, "it was exported by a newer version"));
    }
    Ok(header.collection)
}

fn header(state: &CollectionState) -> ExportHeader {
    ExportHeader {
        isolith_export: VERSION,
        collection: CollectionSpec {
            name: state.name.clone(),
            dimension: state.dimension,
            metric: state.metric,
            model: state.model.clone(),
        },
    }
}

fn write_line(sink: &mut (dyn Write + Send), line: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(&mut *sink, line).map_err(|error| unwritable(error.into()))?;
    sink.write_all(b"\n").map_err(unwritable)
}

fn unwritable(error: io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::Failed,
    };
    Failure::new(code, format!("the export cannot be written: {error}"))
}
