//! Export and import: collections as JSONL, vectors included.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use isolith_protocol::{CollectionState, Page, Selection, WhichCollection};
use isolith_types::{Code, CollectionSpec, DatabaseName, Failure, Hint, Metadata};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ingest::Attached;
use crate::open::Engine;

/// The first line of an export.
#[derive(Serialize, Deserialize)]
struct ExportHeader {
    /// The version of the export format: 2 if something is attached to the collection, which
    /// older versions would lose.
    isolith_export: u32,
    collection: CollectionSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Map<String, Value>>,
}

/// What a file exported from a collection says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// Its properties.
    pub spec: CollectionSpec,
    /// What else was stored with it.
    pub attached: Attached,
}

/// One record's line.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    document: Option<&'a str>,
    metadata: &'a Metadata,
    vector: &'a [f32],
}

/// The newest version of the format.
const VERSION: u32 = 2;

/// Maximum length of a header; anything longer is a record.
const MAX_HEADER_BYTES: u64 = 1 << 20;

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
        database: &DatabaseName,
        name: &str,
        sink: &mut (dyn Write + Send),
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<u64, Failure> {
        let state = self.collection_in(database, name).await?;
        let limit = (PAGE_NUMBERS / state.dimension.unwrap_or(1).max(1)).clamp(1, 1_000);
        let header = self.header(database, name, &state).await?;
        write_line(sink, &header)?;
        let (mut after_row, mut written) = (0, 0);
        loop {
            let page = Page { after_row, offset: 0, limit: u64::from(limit) };
            let records = self.get(&state.name, Selection::All, page, true).await?;
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

    async fn header(
        &self,
        database: &DatabaseName,
        name: &str,
        state: &CollectionState,
    ) -> Result<ExportHeader, Failure> {
        let which = WhichCollection::Named(database.clone(), name.to_owned());
        // The code index and memory have nothing attached.
        let info = self.find_collection(which).await?;
        let (metadata, settings) = info.map(|it| (it.metadata, it.settings)).unwrap_or_default();
        let settings = serde_json::from_str(&settings).ok();
        let settings = settings.filter(|settings: &Map<String, Value>| !settings.is_empty());
        let metadata = metadata.as_ref().map(Metadata::to_json);
        let spec = CollectionSpec {
            name: name.to_owned(),
            dimension: state.dimension,
            metric: state.metric,
            model: state.model.clone(),
        };
        let isolith_export = if metadata.is_some() || settings.is_some() { VERSION } else { 1 };
        let header = ExportHeader { isolith_export, collection: spec, metadata, settings };
        let length = serde_json::to_vec(&header).map_or(0, |line| line.len() as u64);
        match length < MAX_HEADER_BYTES {
            true => Ok(header),
            false => Err(Failure::new(
                Code::TooLarge,
                format!("the metadata of {name:?} is longer than 1 MiB and cannot be exported"),
            )),
        }
    }
}

/// Reads what an exported file says about the collection.
///
/// # Errors
/// `bad_input` if the file is not an export, `not_found` if there is none.
pub fn exported_collection(file: &Path) -> Result<Exported, Failure> {
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
    let not_header = "its first line is not the header of an export";
    let header: ExportHeader =
        serde_json::from_slice(&line).map_err(|_| bad(Code::BadInput, not_header))?;
    if header.isolith_export > VERSION {
        return Err(bad(Code::BadInput, "it was exported by a newer version"));
    }
    let ExportHeader { collection: spec, metadata, settings, .. } = header;
    let metadata = metadata.map(Metadata::from_json).transpose().map_err(|error| {
        bad(Code::BadInput, &format!("the metadata of the collection: {error}"))
    })?;
    let settings = settings.map(|settings| Value::Object(settings).to_string());
    Ok(Exported { spec, attached: Attached { metadata, settings } })
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
