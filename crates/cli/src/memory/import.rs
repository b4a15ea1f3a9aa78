//! `isolith memory import`: conversations and drawers from files.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use isolith_engine::{
    EngineOptions, ImportOptions, ImportProgress, ImportReceipt, StorePlace, TranscriptFormat,
    TranscriptOptions,
};
use isolith_types::{Code, Failure, counted};
use serde::Serialize;
use tempfile::{NamedTempFile, TempDir};

use crate::output::Output;
use crate::session::{Session, interrupted};
use crate::wording::left_out;

/// What to import, and how.
pub(crate) struct MemoryImportPlan {
    /// Files, folders of sessions, and - for standard input.
    pub(crate) paths: Vec<PathBuf>,
    /// Format of the files, and where their drawers go. The name is set for each file.
    pub(crate) turns: TranscriptOptions,
    pub(crate) dry_run: bool,
    pub(crate) patience: Duration,
}

/// Outcome of all files.
#[derive(Serialize)]
struct Receipt<'a> {
    success: bool,
    files: &'a [ImportReceipt],
    created: u64,
    duplicates: u64,
    rejected: u64,
    seconds: f64,
    error: Option<&'a Failure>,
}

/// Maximum number of files listed individually.
const SHOWN_FILES: usize = 10;

pub(crate) fn run(
    store: &StorePlace,
    plan: &MemoryImportPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let files = expand(plan)?;
    // A dry run needs no store and must not create one.
    let scratch = plan.dry_run.then(TempDir::new).transpose().map_err(|error| unwritten(&error))?;
    let scratch_store = scratch.as_ref().map(|scratch| StorePlace::unchecked(scratch.path()));
    let store = scratch_store.as_ref().unwrap_or(store);
    let mut session =
        Session::open(store, EngineOptions { create: true, ..EngineOptions::default() })?;
    let _status = session.serve_status();
    let screen = Arc::new(Screen::new(&files, output));
    let mut receipts = Vec::new();
    for file in &files {
        let receipt = import_one(&mut session, store, plan, file, &screen);
        let goes_on = receipt.error.as_ref().is_none_or(concerns_one_file);
        receipts.push(receipt);
        if !goes_on {
            break;
        }
    }
    screen.finish();
    let seconds = started.elapsed().as_secs_f64();
    let error = report(&receipts, seconds, plan.dry_run, output)?;
    match error.map(|error| error.code) {
        // After an interruption, do not make the user wait for a fold.
        Some(Code::Interrupted | Code::Terminated | Code::StoreReplaced) => session.close(),
        _ if plan.dry_run => session.close(),
        _ => session.settle()?,
    }
    Ok(error.map_or(ExitCode::SUCCESS, |error| ExitCode::from(error.code.exit_status())))
}

fn import_one(
    session: &mut Session,
    store: &StorePlace,
    plan: &MemoryImportPlan,
    file: &Path,
    screen: &Arc<Screen>,
) -> ImportReceipt {
    let failed =
        |error| ImportReceipt { error: Some(error), ..ImportReceipt::new(file.to_owned()) };
    let copied = match is_standard_input(file) {
        true => match keep_standard_input(session, store) {
            Ok(copy) => Some(copy),
            Err(failure) => return failed(failure),
        },
        false => None,
    };
    let name = if copied.is_some() { "stdin".into() } else { name_of(file) };
    let options = ImportOptions {
        file: copied.as_ref().map_or(file, NamedTempFile::path).to_owned(),
        plan: TranscriptOptions { name, ..plan.turns.clone() },
        dry_run: plan.dry_run,
        patience: plan.patience,
        opened: None,
        without_secrets: false,
        start: None,
    };
    let watcher = Arc::clone(screen);
    let outcome = session.run_with_signal(async |engine| {
        engine.import_memory(&options, Arc::new(move |progress| watcher.show(progress))).await
    });
    screen.next_file(file);
    let receipt = outcome.unwrap_or_else(|(signal, receipt)| {
        let mut receipt = receipt.unwrap_or_else(|| ImportReceipt::new(file.to_owned()));
        let stopped = receipt.error.is_some() || receipt.format.is_none();
        receipt.error = stopped.then(|| interrupted(signal));
        receipt
    });
    ImportReceipt { path: file.to_owned(), ..receipt }
}

/// Expands folders to the sessions of Claude Code in them.
fn expand(plan: &MemoryImportPlan) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in &plan.paths {
        if is_standard_input(path) || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        if plan.turns.format.is_some_and(|format| format != TranscriptFormat::ClaudeCode) {
            let message = format!("{} is a folder", path.display());
            return Err(Failure::new(Code::BadInput, message)
                .with_hint("name the files in it; only --format claude-code reads folders"));
        }
        let before = files.len();
        collect_sessions(path, &mut files)?;
        if files.len() == before {
            let message = format!("{} contains no sessions of Claude Code", path.display());
            return Err(Failure::new(Code::NotFound, message)
                .with_hint("sessions are .jsonl files, usually in ~/.claude/projects"));
        }
    }
    Ok(files)
}

fn collect_sessions(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unread = |error: io::Error| {
        Failure::new(Code::BadInput, format!("cannot read {}: {error}", folder.display()))
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(unread)?.collect();
    let mut entries = entries.map_err(unread)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // Links could lead anywhere, and subagents do not talk to people.
        let kind = entry.file_type().map_err(unread)?;
        if kind.is_dir() && name != "subagents" {
            collect_sessions(&path, files)?;
        } else if kind.is_file() && name.ends_with(".jsonl") && !name.starts_with("agent-") {
            files.push(path);
        }
    }
    Ok(())
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Copies standard input to a file, because workers only read files and may have to read again.
/// `isolith doctor` cleans up what a killed process leaves there.
fn keep_standard_input(
    session: &mut Session,
    store: &StorePlace,
) -> Result<NamedTempFile, Failure> {
    let folder = store.path().join("run");
    let copy = move || {
        let mut file = tempfile::Builder::new().prefix(".import-").tempfile_in(folder)?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        Ok(file)
    };
    session.run(async |_| {
        let copied = tokio::task::spawn_blocking(copy).await;
        copied.map_err(io::Error::other).flatten().map_err(|error| unwritten(&error))
    })
}

fn unwritten(error: &io::Error) -> Failure {
    Failure::new(Code::Failed, format!("cannot write a temporary file: {error}"))
}

/// Whether importing the other files still makes sense.
fn concerns_one_file(error: &Failure) -> bool {
    matches!(error.code, Code::BadInput | Code::NotFound | Code::Quarantined | Code::WorkerDied)
}

/// Prints the result. Returns the first failure.
fn report<'a>(
    receipts: &'a [ImportReceipt],
    seconds: f64,
    dry_run: bool,
    output: &Output,
) -> Result<Option<&'a Failure>, Failure> {
    let sum = |count: fn(&ImportReceipt) -> u64| receipts.iter().map(count).sum::<u64>();
    let error = receipts.iter().find_map(|receipt| receipt.error.as_ref());
    let receipt = Receipt {
        success: error.is_none(),
        files: receipts,
        created: sum(|receipt| receipt.created),
        duplicates: sum(|receipt| receipt.duplicates),
        rejected: sum(|receipt| receipt.rejected_count),
        seconds,
        error,
    };
    for failure in receipts.iter().filter_map(|receipt| receipt.error.as_ref()) {
        output.complain(failure);
    }
    let mut text = String::new();
    for receipt in
        receipts.iter().filter(|it| receipts.len() <= SHOWN_FILES || it.rejected_count > 0)
    {
        describe(&mut text, receipt, dry_run);
    }
    if receipts.len() > 1 {
        let drawers = sum(|receipt| receipt.drawers);
        let counts = counts(drawers, receipt.created, receipt.duplicates, dry_run);
        let _ = writeln!(text, "{} files: {counts} in {seconds:.1} s", receipts.len());
    }
    output.result(&receipt, &text)?;
    Ok(error)
}

fn describe(text: &mut String, receipt: &ImportReceipt, dry_run: bool) {
    let ImportReceipt { path, drawers, created, duplicates, skipped, .. } = receipt;
    let Some(format) = receipt.format else { return };
    let counts = counts(*drawers, *created, *duplicates, dry_run);
    let _ = writeln!(text, "{} ({format}): {counts}", path.display());
    if *skipped > 0 {
        let _ = writeln!(
            text,
            "  {} skipped: no user text, for example tool calls",
            counted(*skipped, "part")
        );
    }
    text.push_str(&left_out(receipt.rejected_count, "part", &receipt.rejected));
}

fn counts(drawers: u64, created: u64, duplicates: u64, dry_run: bool) -> String {
    let drawers = counted(drawers, "drawer");
    match dry_run {
        true => format!("{drawers}, nothing written"),
        false => format!("{drawers}, {created} new, {duplicates} existing"),
    }
}

/// Shows progress: a bar over all files on a terminal, otherwise a line now and then.
struct Screen {
    bar: Option<ProgressBar>,
    output: Output,
    total: u64,
    /// Bytes of finished files.
    before: AtomicU64,
    /// The progress that was reported last, in tenths.
    reported: AtomicU64,
}

impl Screen {
    fn new(files: &[PathBuf], output: &Output) -> Self {
        let total = files.iter().map(|file| size_of(file)).sum();
        let bar = output.draws_progress().then(|| {
            let template = "importing {bar:30} {bytes}/{total_bytes}, {eta} left";
            // The template is constant; the plain style is only for the compiler.
            let style = ProgressStyle::with_template(template);
            ProgressBar::new(total)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let (before, reported) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { bar, output: *output, total, before, reported }
    }

    fn show(&self, progress: ImportProgress) {
        let ImportProgress { done, total, drawers } = progress;
        let done = self.before.load(Ordering::Relaxed) + done;
        // The size of standard input is unknown until it has been read.
        let total = self.total.max(total);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        }
        let tenth = done * 10 / total.max(1);
        if self.output.prints_progress()
            && self.reported.fetch_max(tenth, Ordering::Relaxed) < tenth
        {
            let percent = tenth * 10;
            self.output.progress(&format!(
                "importing, {percent} %: {} from this file",
                counted(drawers, "drawer")
            ));
        }
    }

    fn next_file(&self, file: &Path) {
        self.before.fetch_add(size_of(file), Ordering::Relaxed);
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn size_of(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}
