//! `ingest_file`.

use std::sync::Arc;
use std::time::Duration;

use isolith_engine::{
    Attached, IngestOptions, IngestProgress, IngestStage, OnError, PutMode, Receipt, named_model,
};
use isolith_types::{Failure, Hint, Metric, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::progress::ProgressStep;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

/// Time without progress after which loading is given up.
const MAX_IDLE: Duration = Duration::from_secs(180);

/// Maximum number of skipped rows in an answer.
const MAX_REJECTED: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::new(
        "ingest_file",
        Effect::Change,
        "Load a file of records (JSONL, Chroma JSON) into a collection. Use it for many records; documents without embeddings are embedded. For conversations use memory_import, for code index_project. Example: {\"path\":\"papers.jsonl\",\"collection\":\"papers\"}",
        ingest_file,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IngestFile {
    /// File, relative to the project
    path: String,
    /// Its name
    collection: String,
    /// Skip invalid rows
    skip_bad: Option<bool>,
    /// Model of the embeddings
    model: Option<String>,
}

async fn ingest_file(call: Call, arguments: IngestFile) -> Result<IngestResult, Failure> {
    load_file(call, arguments).await.map(IngestResult::from)
}

/// Loads a file; the receipt has no error.
pub(crate) async fn load_file(call: Call, arguments: IngestFile) -> Result<Receipt, Failure> {
    let file = call.server.stores().confinement().file(&arguments.path)?;
    let skip = arguments.skip_bad.unwrap_or(false);
    let options = IngestOptions {
        file: file.path().to_owned(),
        opened: Some(file),
        database: call.server.stores().database().clone(),
        collection: arguments.collection,
        dimension: None,
        metric: None,
        default_metric: Metric::default(),
        model: arguments.model.map(named_model),
        attached: Attached::default(),
        mode: PutMode::Upsert,
        on_error: if skip { OnError::Skip } else { OnError::Stop },
        patience: MAX_IDLE,
    };
    let engine = call.server.stores().collections_to_write()?;
    let load = call.progress.during(|steps| {
        let watcher = move |progress: IngestProgress| {
            steps.send_replace(step(progress));
        };
        engine.ingest(&options, Arc::new(watcher))
    });
    let receipt = load.await;
    match receipt.error.clone() {
        Some(failure) => Err(match failure.hint {
            None => failure.with_hint(Hint::ContinueLoading),
            Some(_) => failure,
        }),
        None => Ok(receipt),
    }
}

fn step(progress: IngestProgress) -> ProgressStep {
    let IngestProgress { stage, done, total } = progress;
    let (name, from, what) = match stage {
        IngestStage::Checking => ("checking", 0.0, "bytes checked"),
        IngestStage::Writing => ("writing", 0.5, "rows written"),
    };
    let fraction = if total == 0 { 0.0 } else { done.min(total) as f64 / total as f64 };
    let message = format!("{what}: {done} of {total}");
    ProgressStep {
        stage: name,
        done,
        total,
        fraction: from + fraction / 2.0,
        message,
        items: Vec::new(),
    }
}

#[derive(Serialize, JsonSchema)]
struct IngestResult {
    collection: String,
    rows: u64,
    inserted: u64,
    updated: u64,
    unchanged: u64,
    rejected: Vec<String>,
    count_after: u64,
}

impl From<Receipt> for IngestResult {
    fn from(receipt: Receipt) -> Self {
        let rejected = receipt.rejected.into_iter().take(MAX_REJECTED);
        Self {
            collection: receipt.collection,
            rows: receipt.rows,
            inserted: receipt.inserted,
            updated: receipt.updated,
            unchanged: receipt.unchanged,
            rejected: rejected.map(|it| format!("row {}: {}", it.row, it.reason)).collect(),
            count_after: receipt.count_after,
        }
    }
}

impl ToolAnswer for IngestResult {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        format!(
            "{}: {}, {} new, {} replaced, {} unchanged, {} skipped; {} in total",
            self.collection,
            counted(self.rows, "row"),
            self.inserted,
            self.updated,
            self.unchanged,
            self.rejected.len(),
            self.count_after
        )
    }
}
