//! `memory_import`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isolith_engine::{
    ImportOptions, ImportProgress, ImportReceipt, TranscriptFormat, TranscriptOptions,
};
use isolith_types::{Code, Failure, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::progress::ProgressStep;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

/// Time without progress after which an import is given up.
const MAX_IDLE: Duration = Duration::from_secs(180);

/// Maximum number of rejected parts in an answer.
const MAX_REJECTED: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::new(
        "memory_import",
        Effect::AddOnce,
        "Import a file of conversations or notes into memory: exports of Claude and ChatGPT, sessions, Markdown, text. Use it once for each file; what is stored stays. For one text use memory_add. Example: {\"path\":\"notes.md\",\"wing\":\"shop\"}",
        memory_import,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryImport {
    /// File, relative to the project
    path: String,
    /// Default: detected; else as `isolith memory import --format` takes it
    format: Option<String>,
    /// Person or project; default: what the file says
    wing: Option<String>,
    /// Topic; default: what the file says
    room: Option<String>,
}

/// Imports a file; the receipt has no error.
pub(crate) async fn memory_import(
    call: Call,
    arguments: MemoryImport,
) -> Result<ImportAnswer, Failure> {
    let MemoryImport { path, format, wing, room } = arguments;
    let format = format.map(|name| {
        name.parse::<TranscriptFormat>()
            .map_err(|()| Failure::new(Code::BadInput, format!("unknown format {name:?}")))
    });
    let file = call.server.stores().confinement().file(&path)?;
    let name = file.path().file_name().unwrap_or(file.path().as_os_str());
    let options = ImportOptions {
        file: file.path().to_owned(),
        plan: TranscriptOptions {
            name: name.to_string_lossy().into_owned(),
            format: format.transpose()?,
            wing,
            room,
            ..TranscriptOptions::default()
        },
        opened: Some(file),
        dry_run: false,
        patience: MAX_IDLE,
        without_secrets: true,
        start: None,
    };
    let engine = call.server.stores().memory_to_write()?;
    let import = call.progress.during(|steps| {
        let watcher = move |progress: ImportProgress| {
            steps.send_replace(step(progress));
        };
        engine.import_memory(&options, Arc::new(watcher))
    });
    let receipt = import.await;
    match receipt.error.clone() {
        Some(failure) => Err(failure),
        None => Ok(ImportAnswer::of(Path::new(&path), receipt)),
    }
}

fn step(progress: ImportProgress) -> ProgressStep {
    let ImportProgress { done, total, drawers } = progress;
    let fraction = if total == 0 { 0.0 } else { done.min(total) as f64 / total as f64 };
    let message = format!("{} read", counted(drawers, "drawer"));
    ProgressStep { stage: "importing", done, total, fraction, message, items: Vec::new() }
}

/// The answer of `memory_import`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ImportAnswer {
    path: String,
    format: Option<String>,
    drawers: u64,
    created: u64,
    duplicates: u64,
    skipped: u64,
    /// The first parts that were left out, and why.
    rejected: Vec<String>,
    rejected_count: u64,
}

impl ImportAnswer {
    fn of(path: &Path, receipt: ImportReceipt) -> Self {
        let rejected = receipt.rejected.into_iter().take(MAX_REJECTED);
        Self {
            path: path.display().to_string(),
            format: receipt.format.map(str::to_owned),
            drawers: receipt.drawers,
            created: receipt.created,
            duplicates: receipt.duplicates,
            skipped: receipt.skipped,
            rejected: rejected.map(|it| format!("row {}: {}", it.row, it.reason)).collect(),
            rejected_count: receipt.rejected_count,
        }
    }
}

impl ToolAnswer for ImportAnswer {
    fn text(&self) -> String {
        let Self { path, drawers, created, duplicates, rejected_count, .. } = self;
        let drawers = counted(*drawers, "drawer");
        format!(
            "{path}: {drawers}, {created} new, {duplicates} existing, {rejected_count} left out\n"
        )
    }
}
