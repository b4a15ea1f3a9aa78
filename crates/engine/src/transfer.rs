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
struct Header {
    /// The version of the form.
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

/// A header is short; anything longer is a record.
const LONGEST_HEADER: u64 = 64 << 10;

/// Numbers in the vectors of one page: 8 MB of them.
const PAGE_NUMBERS: u32 = 2 << 20;

impl Engine {
    /// Writes a collection as JSONL: a header, then a line for each record, in the
    /// order of arrival. Records that are written meanwhile may or may not be in it.
    ///
    /// # Errors
    /// `not_found`, what keeps the store from being read, or the sink from being
    /// written to.
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

/// The collection that an exported file holds.
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
    let read = BufReader::new(open.take(LONGEST_HEADER)).read_until(b'\n', &mut line);
    read.map_err(|error| bad(Code::BadInput, &error.to_string()))?;
    let header: Header = serde_json::from_slice(&line)
        .map_err(|_| bad(Code::BadInput, "its first line is not the header of an export"))?;
    if header.isolith_export > VERSION {
        return Err(bad(Code::BadInput, "it was exported by a newer version"));
    }
    Ok(header.collection)
}

fn header(state: &CollectionState) -> Header {
    Header {
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
