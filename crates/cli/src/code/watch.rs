//! `isolith watch`.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use isolith_config::Layers;
use isolith_engine::{
    EngineOptions, FileCounts, IndexOptions, IndexReport, Life, StorePlace, WatchEvent,
};
use isolith_types::{Failure, counted};
use serde::Serialize;

use super::index::refuse_odd_path;
use crate::output::Output;
use crate::session::{Session, interrupted};

/// What a watcher did, reported at its end.
#[derive(Debug, Clone, Default, Serialize)]
struct Summary {
    /// Number of index updates.
    passes: u64,
    /// Number of files, over all updates.
    indexed: u64,
    removed: u64,
    renamed: u64,
    failed: u64,
}

impl Summary {
    fn add(&mut self, files: &FileCounts) {
        self.passes += 1;
        self.indexed += files.indexed;
        self.removed += files.removed;
        self.renamed += files.renamed;
        self.failed += files.failed;
    }
}

/// A folder to be watched, and how.
pub(crate) struct WatchPlan {
    pub(crate) options: IndexOptions,
    pub(crate) settings: Layers,
}

pub(crate) fn run(
    store: &StorePlace,
    plan: WatchPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let WatchPlan { options, settings } = plan;
    refuse_odd_path(&options.path, store)?;
    let life = Life::Server;
    let how = EngineOptions { create: true, life, settings, ..EngineOptions::default() };
    let mut session = Session::open(store, how)?;
    let summary = Arc::new(Mutex::new(Summary::default()));
    let (counts, printer) = (Arc::clone(&summary), *output);
    let listener = move |event: WatchEvent| {
        if let WatchEvent::Updated(report) = &event {
            counts.lock().unwrap_or_else(PoisonError::into_inner).add(&report.files);
        }
        print_event(&event, &printer);
    };
    let outcome =
        session.run_with_signal(async |engine| engine.watch(&options, Arc::new(listener)).await);
    session.close();
    let signal = match outcome {
        Ok(ended) => return ended.map(|()| ExitCode::SUCCESS),
        Err((_, Some(Err(failure)))) => return Err(failure),
        Err((signal, _)) => signal,
    };
    let summary = summary.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Summary { passes, indexed, removed, .. } = summary;
    let text = format!(
        "{}: {} indexed, {removed} removed\n",
        counted(passes, "update"),
        counted(indexed, "file")
    );
    output.result(&summary, &text)?;
    Ok(ExitCode::from(interrupted(signal).code.exit_status()))
}

fn print_event(event: &WatchEvent, output: &Output) {
    match event {
        WatchEvent::Failed(failure) => output.complain(failure),
        WatchEvent::Polling(why) => {
            output.note(&format!("checking for changes every few seconds: {why}"));
        }
        WatchEvent::Waiting if output.is_quiet() => {}
        WatchEvent::Waiting => {
            output.note("waiting for another process that is watching this folder");
        }
        WatchEvent::Watching if !output.is_quiet() => output.progress("watching for changes"),
        WatchEvent::Updated(report) if !output.is_quiet() => output.progress(&line(report)),
        WatchEvent::Watching | WatchEvent::Changed | WatchEvent::Updated(_) => {}
    }
}

fn line(report: &IndexReport) -> String {
    let FileCounts { seen, indexed, unchanged, removed, renamed, failed, skipped, pending } =
        report.files;
    let mut line = format!(
        "{} in {:.2} s: {indexed} indexed, {unchanged} unchanged, {removed} removed",
        counted(seen, "file"),
        report.seconds.total
    );
    let others =
        [(renamed, "renamed"), (failed, "failed"), (skipped, "skipped"), (pending, "pending")];
    for (count, word) in others {
        if count > 0 {
            line += &format!(", {count} {word}");
        }
    }
    for gone in report.problems.iter().filter(|it| it.code == "worktree_removed") {
        line += &format!("; {}: {}", gone.path, gone.message);
    }
    line
}
