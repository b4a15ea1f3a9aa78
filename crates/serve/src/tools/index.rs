//! The tool that indexes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use isolith_engine::{
    FileCounts, IndexOptions, IndexProblem, IndexProgress, IndexReport, IndexStage,
};
use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::progress::ProgressStep;
use crate::text::round;
use crate::tool::{Call, Effect, Shown, Tool};

/// Maximum number of problems to list.
const LISTED: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::new(
        "index_project",
        Effect::AddOnce,
        "Index the project's code, or update its index. Needed once before search_code; later edits are indexed automatically.",
        index_project,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IndexProject {
    /// Default: the project's folder
    path: Option<String>,
    /// Index all files again
    rebuild: Option<bool>,
}

async fn index_project(call: Call, asked: IndexProject) -> Result<Report, Failure> {
    let stores = call.server.stores();
    let path = stores.confinement().existing(asked.path.as_deref().unwrap_or("."))?;
    if !path.is_dir() && stores.code().is_err() {
        let message = format!("{} is a file, and no folder is indexed yet", path.display());
        return Err(Failure::new(Code::BadInput, message).with_hint("pass its folder"));
    }
    let engine = stores.code_to_index()?;
    let rebuild = asked.rebuild.unwrap_or(false);
    let options = IndexOptions { rebuild, ..IndexOptions::new(&path) };
    let run = call.progress.during(|steps| {
        let watcher = move |progress: IndexProgress| {
            steps.send_replace(step(progress));
        };
        engine.index(&options, Arc::new(watcher))
    });
    let report = run.await?;
    call.server.keep_fresh(&engine).await;
    Ok(Report::of(&path, report))
}

/// Maps a stage's progress to that of the whole. The shares are estimates.
fn step(progress: IndexProgress) -> ProgressStep {
    let IndexProgress { stage, done, total } = progress;
    let (from, part, what) = match stage {
        IndexStage::Waiting => (0.0, 0.01, "waiting for another run"),
        IndexStage::Walking => (0.01, 0.04, "looking for files"),
        IndexStage::Parsing => (0.05, 0.8, "files parsed"),
        IndexStage::Linking => (0.85, 0.05, "resolving references"),
        IndexStage::Folding => (0.9, 0.1, "building segments"),
    };
    let share = if total == 0 { 0.0 } else { done.min(total) as f64 / total as f64 };
    let message = match total {
        0 => what.to_owned(),
        _ => format!("{what}: {done} of {total}"),
    };
    ProgressStep { share: from + part * share, message }
}

#[derive(Serialize, JsonSchema)]
struct Report {
    path: String,
    #[schemars(with = "JsonObject")]
    files: Files,
    chunks: u64,
    problems: Vec<String>,
    seconds: f64,
    interrupted: bool,
}

#[derive(Serialize)]
struct Files {
    seen: u64,
    indexed: u64,
    unchanged: u64,
    removed: u64,
    renamed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
}

impl Report {
    fn of(path: &Path, report: IndexReport) -> Self {
        let FileCounts { seen, indexed, unchanged, removed, renamed, failed, skipped, pending } =
            report.files;
        let problem = |it: IndexProblem| format!("{}: {}", it.path, it.message);
        Self {
            path: path.display().to_string(),
            files: Files { seen, indexed, unchanged, removed, renamed, failed, skipped, pending },
            chunks: report.chunks,
            problems: report.problems.into_iter().take(LISTED).map(problem).collect(),
            seconds: round(report.seconds.total),
            interrupted: report.interrupted,
        }
    }
}

impl Shown for Report {
    fn text(&self) -> String {
        let Files { seen, indexed, unchanged, removed, .. } = self.files;
        let mut text = format!(
            "{}: {seen} files in {:.1} s, {} chunks; {indexed} indexed, {unchanged} unchanged, {removed} removed\n",
            self.path, self.seconds, self.chunks
        );
        if self.interrupted {
            text.push_str("interrupted: finished work is kept, and the next run continues\n");
        }
        for problem in &self.problems {
            let _ = writeln!(text, "  {problem}");
        }
        text
    }

    fn is_ours(&self) -> bool {
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
                let share = step(IndexProgress { stage, done, total: 10 }).share;
                assert!(share >= last && share <= 1.0, "{stage:?} {done}: {share}");
                last = share;
            }
        }
    }
}
