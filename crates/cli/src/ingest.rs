//! `isolith ingest`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use isolith_engine::{
    Attached, EngineOptions, IngestOptions, IngestProgress, IngestStage, OnError, PutMode, Receipt,
};
use isolith_types::{Code, Failure, Metric, counted};
use serde_json::json;

use crate::collection::CollectionPlaces;
use crate::output::Output;
use crate::session::{Session, interrupted};
use crate::terminal::visible;
use crate::wording::left_out;

/// What to load, and how.
pub(crate) struct IngestPlan {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) collection: String,
    pub(crate) mode: PutMode,
    pub(crate) on_error: OnError,
    pub(crate) patience: Duration,
    pub(crate) dimension: Option<u32>,
    pub(crate) metric: Option<Metric>,
    pub(crate) default_metric: Metric,
    pub(crate) model: Option<String>,
    /// What to store with a new collection.
    pub(crate) attached: Attached,
}

pub(crate) fn run(
    places: &CollectionPlaces,
    plan: &IngestPlan,
    output: &Output,
) -> Result<ExitCode, Failure> {
    load_all(places, std::slice::from_ref(plan), output)
}

/// Loads the files one after another until one fails.
pub(crate) fn load_all(
    places: &CollectionPlaces,
    plans: &[IngestPlan],
    output: &Output,
) -> Result<ExitCode, Failure> {
    let mut session =
        Session::open(&places.store, EngineOptions { create: true, ..EngineOptions::default() })?;
    let _status = session.serve_status();
    let jobs: Vec<(&IngestPlan, &PathBuf)> =
        plans.iter().flat_map(|plan| plan.files.iter().map(move |file| (plan, file))).collect();
    let mut receipts = Vec::new();
    for &(plan, file) in &jobs {
        let receipt = load(&mut session, (places, plan), file, output);
        let failed = receipt.error.is_some();
        receipts.push((file.clone(), receipt));
        if failed {
            break;
        }
    }
    report(&receipts, jobs.len(), output)?;
    let failed = receipts.iter().find_map(|(_, receipt)| receipt.error.as_ref());
    let status = failed.map_or(ExitCode::SUCCESS, |error| ExitCode::from(error.code.exit_status()));
    match failed.map(|error| error.code) {
        // After an interruption, do not make the user wait for a fold. If the store is gone, do
        // not create one to fold.
        Some(Code::Interrupted | Code::Terminated | Code::StoreReplaced) => session.close(),
        _ => session.settle()?,
    }
    Ok(status)
}

fn load(
    session: &mut Session,
    (places, plan): (&CollectionPlaces, &IngestPlan),
    file: &Path,
    output: &Output,
) -> Receipt {
    let screen = Arc::new(Screen::new(file, output));
    let watcher = Arc::clone(&screen);
    let options = options(places, plan, file);
    let outcome = session.run_with_signal(async |engine| {
        let watch = move |progress| watcher.show(progress);
        engine.ingest(&options, Arc::new(watch)).await
    });
    screen.finish();
    match outcome {
        Ok(receipt) => receipt,
        Err((signal, receipt)) => {
            let mut receipt = receipt.unwrap_or_else(|| Receipt::new(&plan.collection));
            if !receipt.success {
                receipt.error = Some(interrupted(signal));
            }
            receipt
        }
    }
}

fn options(places: &CollectionPlaces, plan: &IngestPlan, file: &Path) -> IngestOptions {
    IngestOptions {
        file: file.to_owned(),
        opened: None,
        database: places.database.clone(),
        collection: plan.collection.clone(),
        dimension: plan.dimension,
        metric: plan.metric,
        default_metric: plan.default_metric,
        model: plan.model.clone(),
        attached: plan.attached.clone(),
        mode: plan.mode,
        on_error: plan.on_error,
        patience: plan.patience,
    }
}

fn report(receipts: &[(PathBuf, Receipt)], files: usize, output: &Output) -> Result<(), Failure> {
    let mut text = String::new();
    for (file, receipt) in receipts {
        match &receipt.error {
            None => text.push_str(&describe(file, receipt)),
            Some(error) => output.complain(error),
        }
    }
    match receipts {
        [(_, receipt)] if files == 1 => output.result(receipt, &text),
        receipts => {
            let success = receipts.len() == files && receipts.iter().all(|(_, it)| it.success);
            let receipts: Vec<&Receipt> = receipts.iter().map(|(_, receipt)| receipt).collect();
            output.result(&json!({ "success": success, "receipts": receipts }), &text)
        }
    }
}

fn describe(file: &Path, receipt: &Receipt) -> String {
    let Receipt { collection, rows, inserted, updated, unchanged, .. } = receipt;
    let mut text = format!(
        "{}: loaded {} into {collection} in {:.1} s\n  {inserted} new, {updated} updated, {unchanged} unchanged; the collection has {}\n",
        file.display(),
        counted(*rows, "row"),
        receipt.seconds,
        counted(receipt.count_after, "record"),
    );
    if *inserted + *updated == 0 && receipt.rejected_rows == 0 && *rows > 0 {
        text.push_str("  nothing changed: all records exist already\n");
    }
    if receipt.resumed_at > 0 {
        let _ = writeln!(text, "  continued at row {}", receipt.resumed_at + 1);
    }
    text + &left_out(receipt.rejected_rows, "row", &receipt.rejected)
}

/// Shows progress: a bar on a terminal, otherwise a line now and then.
struct Screen {
    bar: Option<ProgressBar>,
    output: Output,
    name: String,
    /// The progress that was reported last, in tenths of either pass.
    reported: AtomicU64,
}

impl Screen {
    fn new(file: &Path, output: &Output) -> Self {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let bar = output.draws_progress().then(|| ProgressBar::new(0).with_message(visible(&name)));
        Self { bar, output: *output, name, reported: AtomicU64::new(0) }
    }

    fn show(&self, progress: IngestProgress) {
        let IngestProgress { stage, done, total } = progress;
        if let Some(bar) = &self.bar {
            if bar.length() != Some(total) {
                bar.set_style(style(stage));
                bar.set_length(total);
            }
            bar.set_position(done);
        }
        let (word, base) = match stage {
            IngestStage::Checking => ("checking", 0),
            IngestStage::Writing => ("writing", 10),
        };
        let tenth = base + done * 10 / total.max(1);
        if self.output.prints_progress()
            && self.reported.fetch_max(tenth, Ordering::Relaxed) < tenth
        {
            let percent = (tenth - base) * 10;
            self.output.progress(&format!("{}: {word}, {percent} %", self.name));
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(stage: IngestStage) -> ProgressStyle {
    let template = match stage {
        IngestStage::Checking => {
            "{msg}: checking {bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left"
        }
        IngestStage::Writing => "{msg}: writing  {bar:30} {pos}/{len} rows, {per_sec}, {eta} left",
    };
    // The templates are constants; the plain style is only for the compiler.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
