//! `index_project`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolith_engine::{
    FileCounts, IndexOptions, IndexProblem, IndexProgress, IndexReport, IndexStage,
};
use isolith_types::{Code, Failure, counted};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::progress::ProgressStep;
use crate::text::round;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

/// Maximum number of problems in an answer.
const MAX_PROBLEMS: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::new(
        "index_project",
        Effect::AddOnce,
        "Index the project's code. Use it if search_code answers no_store. Not later: edits are indexed by themselves. Example: {}",
        index_project,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexProject {
    /// Default: the project
    path: Option<String>,
    /// All files again
    rebuild: Option<bool>,
}

async fn index_project(call: Call, arguments: IndexProject) -> Result<IndexResult, Failure> {
    let (path, report) = run_index(call, arguments).await?;
    Ok(IndexResult::of(&path, report))
}

/// Updates the index of a folder; returns the folder and what was done.
pub(crate) async fn run_index(
    call: Call,
    arguments: IndexProject,
) -> Result<(PathBuf, IndexReport), Failure> {
    let stores = call.server.stores();
    let path = stores.confinement().existing(arguments.path.as_deref().unwrap_or("."))?;
    if !path.is_dir() && stores.code().is_err() {
        let message = format!("{} is a file, and no folder is indexed yet", path.display());
        return Err(Failure::new(Code::BadInput, message).with_hint("pass its folder"));
    }
    let engine = stores.code_to_index()?;
    let rebuild = arguments.rebuild.unwrap_or(false);
    let options = IndexOptions { rebuild, ..IndexOptions::new(&path) };
    let run = call.progress.during(|steps| {
        let watcher = move |progress: IndexProgress| {
            steps.send_replace(step(progress));
        };
        engine.index(&options, Arc::new(watcher))
    });
    let report = run.await?;
    call.server.watch_roots(&engine).await;
    Ok((path, report))
}

/// Maps the progress of a stage to that of the whole run. The fractions are estimates.
fn step(progress: IndexProgress) -> ProgressStep {
    let IndexProgress { stage, done, total } = progress;
    let (name, from, part, what) = match stage {
        IndexStage::Waiting => ("waiting", 0.0, 0.01, "waiting for another run"),
        IndexStage::Walking => ("walking", 0.01, 0.04, "listing files"),
        IndexStage::Parsing => ("parsing", 0.05, 0.8, "files parsed"),
        IndexStage::Linking => ("linking", 0.85, 0.05, "resolving references"),
        IndexStage::Folding => ("folding", 0.9, 0.1, "building segments"),
    };
    let fraction = if total == 0 { 0.0 } else { done.min(total) as f64 / total as f64 };
    let message = match total {
        0 => what.to_owned(),
        _ => format!("{what}: {done} of {total}"),
    };
    ProgressStep {
        stage: name,
        done,
        total,
        fraction: from + part * fraction,
        message,
        items: Vec::new(),
    }
}

#[derive(Serialize, JsonSchema)]
struct IndexResult {
    path: String,
    #[schemars(with = "JsonObject")]
    files: FileTotals,
    chunks: u64,
    problems: Vec<String>,
    seconds: f64,
    interrupted: bool,
}

#[derive(Serialize)]
struct FileTotals {
    seen: u64,
    indexed: u64,
    unchanged: u64,
    removed: u64,
    renamed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
}

impl IndexResult {
    fn of(path: &Path, report: IndexReport) -> Self {
        let FileCounts { seen, indexed, unchanged, removed, renamed, failed, skipped, pending } =
            report.files;
        let problem = |it: IndexProblem| format!("{}: {}", it.path, it.message);
        Self {
            path: path.display().to_string(),
            files: FileTotals {
                seen,
                indexed,
                unchanged,
                removed,
                renamed,
                failed,
                skipped,
                pending,
            },
            chunks: report.chunks,
            problems: report.problems.into_iter().take(MAX_PROBLEMS).map(problem).collect(),
            seconds: round(report.seconds.total),
            interrupted: report.interrupted,
        }
    }
}

impl ToolAnswer for IndexResult {
    fn text(&self) -> String {
        let FileTotals { seen, indexed, unchanged, removed, .. } = self.files;
        let mut text = format!(
            "{}: {} in {:.1} s, {}; {indexed} indexed, {unchanged} unchanged, {removed} removed\n",
            self.path,
            counted(seen, "file"),
            self.seconds,
            counted(self.chunks, "chunk"),
        );
        if self.interrupted {
            text.push_str("interrupted: the next run continues where this one stopped\n");
        }
        for problem in &self.problems {
            let _ = writeln!(text, "  {problem}");
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.problems.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_never_decreases() {
        let stages =
            [IndexStage::Waiting, IndexStage::Walking, IndexStage::Parsing, IndexStage::Folding];
        let mut last = -1.0;
        for stage in stages {
            for done in [0, 5, 10] {
                let fraction = step(IndexProgress { stage, done, total: 10 }).fraction;
                assert!(fraction >= last && fraction <= 1.0, "{stage:?} {done}: {fraction}");
                last = fraction;
            }
        }
    }
}
