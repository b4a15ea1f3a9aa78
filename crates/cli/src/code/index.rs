//! `isolith index`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use isolate::Signal;
use isolith_config::Layers;
use isolith_engine::{
    EngineOptions, IndexOptions, IndexProgress, IndexReport, IndexStage, StorePlace, move_aside,
};
use isolith_types::{Code, Failure, counted};
use serde_json::json;

use super::merge;
use crate::output::Output;
use crate::session::{Session, interrupted};
use crate::terminal::one_line;

/// What to do with a folder.
pub(crate) enum IndexCommand {
    Index {
        options: IndexOptions,
        settings: Layers,
        /// Whether to move an existing store aside first.
        fresh: bool,
    },
    Merge {
        /// The folder's own store.
        inner: StorePlace,
        options: IndexOptions,
        settings: Layers,
    },
    Remove(PathBuf),
}

/// Problems that are listed; the others are counted.
const LISTED: usize = 10;

pub(crate) fn run(
    store: &StorePlace,
    plan: IndexCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match plan {
        IndexCommand::Index { options, settings, fresh } => {
            refuse_odd_path(&options.path, store)?;
            if fresh {
                start_afresh(store, output)?;
            }
            index(store, &options, settings, output)
        }
        IndexCommand::Merge { inner, options, settings } => {
            merge::run(store, &inner, &options, settings, output)
        }
        IndexCommand::Remove(path) => remove(store, &path, output),
    }
}

fn index(
    store: &StorePlace,
    options: &IndexOptions,
    settings: Layers,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let how = EngineOptions { create: true, settings, ..EngineOptions::default() };
    let mut session = Session::open(store, how)?;
    let _status = session.serve_status();
    let (report, signal) = index_one(&mut session, options, output)?;
    output.result(&report, &describe(&report, &options.path))?;
    match signal.filter(|_| report.interrupted).map(interrupted) {
        Some(failure) => {
            output.complain(&failure);
            session.close();
            Ok(ExitCode::from(failure.code.exit_status()))
        }
        None => {
            if report.history_due {
                gather_history(&mut session, &options.path, output)?;
            }
            session.settle()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Indexes a folder; returns the signal that interrupted it, if any.
pub(super) fn index_one(
    session: &mut Session,
    options: &IndexOptions,
    output: &Output,
) -> Result<(IndexReport, Option<Signal>), Failure> {
    let screen = Arc::new(Screen::new(output));
    let watcher = Arc::clone(&screen);
    let outcome = session.run_with_signal(async |engine| {
        engine.index(options, Arc::new(move |progress| watcher.show(progress))).await
    });
    screen.finish();
    match outcome {
        Ok(report) => Ok((report?, None)),
        Err((signal, Some(Ok(report)))) => Ok((report, Some(signal))),
        Err((signal, _)) => Err(interrupted(signal)),
    }
}

fn start_afresh(store: &StorePlace, output: &Output) -> Result<(), Failure> {
    match move_aside(store) {
        Ok(aside) => {
            output.note(&format!("moved the old store to {}", aside.display()));
            Ok(())
        }
        Err(failure) if failure.code == Code::NoStore => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// A path that cannot be indexed must not leave an empty store behind.
pub(super) fn refuse_odd_path(path: &Path, store: &StorePlace) -> Result<(), Failure> {
    if !path.exists() {
        let message = format!("{} does not exist", path.display());
        return Err(Failure::new(Code::NotFound, message).with_hint(
            "name an existing folder; --remove removes a deleted folder from the index",
        ));
    }
    if !path.is_dir() && !store.path().exists() {
        let message = format!("{} is a file", path.display());
        return Err(Failure::new(Code::BadInput, message).with_hint("name its folder"));
    }
    Ok(())
}

/// The index is usable; what git adds to it may be missing.
pub(super) fn gather_history(
    session: &mut Session,
    path: &Path,
    output: &Output,
) -> Result<(), Failure> {
    let gathered = session.run_with_signal(async |engine| engine.gather_history(path).await);
    match gathered {
        Ok(Err(failure)) => {
            output.note(&format!("cannot read authors and dates from git: {}", failure.message));
            Ok(())
        }
        Ok(Ok(_)) => Ok(()),
        Err((signal, _)) => Err(interrupted(signal)),
    }
}

fn remove(store: &StorePlace, path: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let mut session = Session::open(store, EngineOptions::default())?;
    let root = session.run(async |engine| engine.remove_root(path).await)?;
    let folder = root.folder.display().to_string();
    let text = format!(
        "removed {folder} from the index ({}, {}); the files themselves are unchanged\n",
        counted(root.files, "file"),
        counted(root.chunks, "chunk"),
    );
    let document = json!({ "root": folder, "files": root.files, "chunks": root.chunks });
    output.result(&document, &text)?;
    session.settle()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn describe(report: &IndexReport, path: &Path) -> String {
    let files = &report.files;
    let mut text = format!(
        "{}: {} in {:.1} s, {} in the index\n  {} indexed, {} unchanged, {} removed",
        path.display(),
        counted(files.seen, "file"),
        report.seconds.total,
        counted(report.chunks, "chunk"),
        files.indexed,
        files.unchanged,
        files.removed,
    );
    if files.renamed > 0 {
        let _ = write!(text, ", {} renamed", files.renamed);
    }
    if files.failed > 0 {
        let _ = write!(text, ", {} failed", files.failed);
    }
    if files.skipped > 0 {
        let _ = write!(text, ", {} skipped", files.skipped);
    }
    if files.pending > 0 {
        let _ = write!(text, ", {} left for the next run", files.pending);
    }
    text.push('\n');
    if report.reused > 0 {
        let files = counted(report.reused, "file");
        let _ = writeln!(text, "  {files} taken over from another worktree without parsing");
    }
    for problem in report.problems.iter().take(LISTED) {
        let _ = writeln!(text, "  {}: {}", one_line(&problem.path), one_line(&problem.message));
    }
    if report.problems.len() > LISTED {
        let more = report.problems.len() - LISTED;
        let _ = writeln!(text, "  and {more} more: use --json to list all");
    }
    if report.problems.iter().any(|problem| problem.code == "secret") {
        text.push_str("  use --include-secrets to index files that look like secrets\n");
    }
    text
}

/// Shows progress: a bar on a terminal, otherwise a line now and then.
pub(super) struct Screen {
    bar: Option<ProgressBar>,
    output: Output,
    /// The last reported stage, and its progress in tenths.
    reported: AtomicU64,
}

impl Screen {
    pub(super) fn new(output: &Output) -> Self {
        let bar = output.draws_progress().then(|| ProgressBar::new(0));
        Self { bar, output: *output, reported: AtomicU64::new(0) }
    }

    pub(super) fn show(&self, progress: IndexProgress) {
        let IndexProgress { stage, done, total } = progress;
        let step = stage as u64 * 11 + 1 + done * 10 / total.max(1);
        let before = self.reported.fetch_max(step, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            if bar.length() != Some(total) || before == 0 || (before - 1) / 11 < stage as u64 {
                bar.set_style(style(stage, total));
            }
            bar.set_length(total);
            bar.set_position(done);
            bar.tick();
        }
        // Waiting for another process is reported even if nothing else is.
        if self.output.prints_progress() && before < step {
            let percent = done * 100 / total.max(1);
            match (stage, total) {
                (IndexStage::Waiting, _) => self.output.progress(WAITING),
                (_, 0) => self.output.progress(word(stage)),
                _ => self.output.progress(&format!("{}, {percent} %", word(stage))),
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

const WAITING: &str = "waiting for another process that is indexing this folder";

fn word(stage: IndexStage) -> &'static str {
    match stage {
        IndexStage::Waiting => WAITING,
        IndexStage::Walking => "listing files",
        IndexStage::Parsing => "indexing",
        IndexStage::Linking => "resolving references",
        IndexStage::Folding => "building the search index",
    }
}

fn style(stage: IndexStage, total: u64) -> ProgressStyle {
    let unknown = format!("{{spinner}} {}", word(stage));
    let template = match stage {
        IndexStage::Parsing if total > 0 => {
            "indexing {wide_bar} {pos}/{len} files, {rate}, {eta} left"
        }
        IndexStage::Folding if total > 0 => "building {wide_bar} {pos}/{len} chunks, {eta} left",
        _ => &unknown,
    };
    // The templates are constants; the plain style is only for the compiler.
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key(
        "rate",
        |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec());
        },
    )
}
