//! `isolith export` and `isolith import`: collections as JSONL, vectors included.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use isolith_engine::{EngineOptions, Exported, OnError, PutMode, exported_collection};
use isolith_types::{Code, DatabaseName, Failure, counted};
use serde_json::json;

use crate::collection::CollectionPlaces;
use crate::ingest::{IngestPlan, load_all};
use crate::output::{Output, ResultStream};
use crate::session::Session;
use crate::terminal::{TextKind, visible};

/// What to export, and where to.
pub(crate) enum ExportPlan {
    /// One collection, to a file or to standard output.
    Collection { name: String, file: Option<PathBuf> },
    /// All collections, one file each.
    All { folder: PathBuf },
}

/// What to import.
pub(crate) struct ImportPlan {
    /// Files, or folders with files.
    pub(crate) paths: Vec<PathBuf>,
    /// New name, if there is only one collection.
    pub(crate) collection: Option<String>,
}

pub(crate) fn export(
    places: &CollectionPlaces,
    plan: &ExportPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let session = match plan {
        ExportPlan::Collection { name, .. } => places.find(name, true, output)?.0,
        ExportPlan::All { .. } => Session::open(&places.store, EngineOptions::default())?,
    };
    let mut source = Source { session, database: &places.database };
    let outcome = match plan {
        ExportPlan::Collection { name, file: None } => {
            let mut out = ResultStream::new(TextKind::Json);
            let written = write(&mut source, name, &mut out, output);
            out.finish(written.map(drop)).map(|()| None)
        }
        ExportPlan::Collection { name, file: Some(file) } => {
            write_file(&mut source, name, file, output).map(|records| {
                Some(vec![json!({ "name": name, "records": records, "file": file })])
            })
        }
        ExportPlan::All { folder } => write_all(&mut source, folder, output).map(Some),
    };
    source.session.close();
    if let Some(exported) = outcome? {
        let text: String = exported
            .iter()
            .map(|it| {
                let records = it["records"].as_u64().unwrap_or(0);
                let records = counted(records, "record");
                format!("{}: {records}\n", it["file"].as_str().unwrap_or(""))
            })
            .collect();
        output.result(&json!({ "collections": exported }), &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where exported collections are.
struct Source<'a> {
    session: Session,
    database: &'a DatabaseName,
}

fn write_all(
    source: &mut Source<'_>,
    folder: &Path,
    output: &Output,
) -> Result<Vec<serde_json::Value>, Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let Source { session, database } = source;
    let collections = session.run(async |engine| engine.collections_of(database).await)?;
    let mut exported = Vec::new();
    for (number, collection) in collections.iter().enumerate() {
        let file = folder.join(file_name(number + 1, &collection.name));
        let records = write_file(source, &collection.name, &file, output)?;
        exported.push(json!({ "name": collection.name, "records": records, "file": file }));
    }
    Ok(exported)
}

/// Collection names may contain characters that are not allowed in file names.
fn file_name(number: usize, collection: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = collection.chars().take(60).map(plain).collect();
    format!("{number:03}-{name}.jsonl")
}

/// Writes to a temporary file first, so that the named file is never incomplete.
fn write_file(
    source: &mut Source<'_>,
    name: &str,
    file: &Path,
    output: &Output,
) -> Result<u64, Failure> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let aside = tempfile::NamedTempFile::new_in(folder);
    let aside = aside.map_err(|error| unwritable(folder, &error))?;
    let mut sink = BufWriter::new(aside);
    let records = write(source, name, &mut sink, output)?;
    let aside = sink.into_inner().map_err(|error| unwritable(file, error.error()))?;
    aside.as_file().sync_all().map_err(|error| unwritable(file, &error))?;
    aside.persist(file).map_err(|error| unwritable(file, &error.error))?;
    Ok(records)
}

fn write(
    source: &mut Source<'_>,
    name: &str,
    sink: &mut (dyn Write + Send),
    output: &Output,
) -> Result<u64, Failure> {
    let bar = output.draws_progress().then(|| ProgressBar::new(0).with_message(visible(name)));
    if let Some(bar) = &bar {
        let style = ProgressStyle::with_template("{msg}: {bar:30} {pos}/{len} records, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    }
    let progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let Source { session, database } = source;
    let records = session.run(async |engine| engine.export(database, name, sink, &progress).await);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    records
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::Failed,
    };
    Failure::new(code, format!("cannot write {}: {error}", path.display()))
}

pub(crate) fn import(
    places: &CollectionPlaces,
    plan: &ImportPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let files = files_of(&plan.paths)?;
    if plan.collection.is_some() && files.len() > 1 {
        let message = "--collection cannot be used with several files";
        return Err(Failure::new(Code::Usage, message));
    }
    let mut plans = Vec::new();
    for file in files {
        let Exported { spec, attached } = exported_collection(&file)?;
        plans.push(IngestPlan {
            files: vec![file],
            collection: plan.collection.clone().unwrap_or(spec.name),
            mode: PutMode::Upsert,
            on_error: OnError::Stop,
            patience: std::time::Duration::from_secs(180),
            dimension: spec.dimension,
            metric: Some(spec.metric),
            default_metric: spec.metric,
            model: spec.model,
            attached,
        });
    }
    load_all(places, &plans, output)
}

/// The given files, and those in folders sorted by name.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |error: io::Error| {
            Failure::new(Code::BadInput, format!("cannot read {}: {error}", path.display()))
        };
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(file);
            }
        }
        if found.is_empty() {
            let message = format!("{} contains no .jsonl files", path.display());
            return Err(Failure::new(Code::NotFound, message));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}
