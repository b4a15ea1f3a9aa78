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
    EngineOptions, ImportOptions, ImportProgress, ImportReceipt, SkippedItems, StorePlace,
    TranscriptOptions,
};
use isolith_types::{Code, Failure, counted};
use serde::Serialize;
use tempfile::{NamedTempFile, TempDir};

use super::folder::{ImportFile, files_in};
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
    import: &ImportFile,
    screen: &Arc<Screen>,
) -> ImportReceipt {
    let file = &import.path;
    let failed =
        |error| ImportReceipt { error: Some(error), ..ImportReceipt::new(file.to_owned()) };
    let copied = match is_standard_input(file) {
        true => match keep_standard_input(session, store) {
            Ok(copy) => Some(copy),
            Err(failure) => return failed(failure),
        },
        false => None,
    };
    let name = if copied.is_some() { "stdin" } else { &import.name };
    let wing = plan.turns.wing.clone().or_else(|| import.wing.clone());
    let options = ImportOptions {
        file: copied.as_ref().map_or(file.as_path(), NamedTempFile::path).to_owned(),
        plan: TranscriptOptions { name: name.to_owned(), wing, ..plan.turns.clone() },
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

/// Expands folders to the files in them.
fn expand(plan: &MemoryImportPlan) -> Result<Vec<ImportFile>, Failure> {
    let mut files = Vec::new();
    for path in &plan.paths {
        match is_standard_input(path) || !path.is_dir() {
            true => files.push(ImportFile::single(path)),
            false => files.extend(files_in(path, plan.turns.format)?),
        }
    }
    Ok(files)
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
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
    let ImportReceipt { path, drawers, created, duplicates, skipped, skipped_by, .. } = receipt;
    let Some(format) = receipt.format else { return };
    let counts = counts(*drawers, *created, *duplicates, dry_run);
    let _ = writeln!(text, "{} ({format}): {counts}", path.display());
    if *skipped > 0 {
        let parts = counted(*skipped, "part");
        let _ = writeln!(text, "  {parts} skipped: {}", reasons(skipped_by));
    }
    text.push_str(&left_out(receipt.rejected_count, "part", &receipt.rejected));
}

/// Why parts are skipped, with their numbers.
fn reasons(skipped: &SkippedItems) -> String {
    let SkippedItems { events, hidden, subagents, inserted, without_text } = skipped;
    let reasons = [
        (events, "not messages"),
        (hidden, "hidden or made by the program"),
        (subagents, "of subagents"),
        (inserted, "inserted by the program"),
        (without_text, "without text, such as tool calls"),
    ];
    let given = reasons.into_iter().filter(|(count, _)| **count > 0);
    given.map(|(count, reason)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
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
    fn new(files: &[ImportFile], output: &Output) -> Self {
        let total = files.iter().map(|file| size_of(&file.path)).sum();
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
