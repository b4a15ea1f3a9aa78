//! The background process: saves the transcripts in the queue, then ends.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolith_engine::{
    DurableListener, EngineOptions, ImportOptions, ImportReceipt, TranscriptCursor,
    TranscriptOptions, project_names,
};
use isolith_types::{Code, Failure};

use super::HookPlan;
use super::mark::Mark;
use super::queue::{Queue, Saving};
use super::reply::Client;
use crate::session::Session;

/// How long it may run; the rest waits for the next hook.
const TIME: Duration = Duration::from_secs(50);

/// How long an import may make no progress.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much time must be left for folding.
const FOLD_TIME: Duration = Duration::from_secs(20);

/// Starts the process, which outlives this one and its client.
pub(super) fn start(plan: &HookPlan) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::Failed, format!("cannot start the background process: {error}"))
    };
    let store = std::path::absolute(plan.store.path()).map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    Command::new(program)
        .args(["hook", "--work", "--store"])
        .arg(store)
        // The project's folder must stay removable.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(failed)
}

/// Saves what is in the queue, unless another process does.
pub(super) fn run(plan: &HookPlan) -> Result<(), Failure> {
    // A client that ends takes its session and process group with it. This fails only if the process
    // already leads a group.
    let _ = rustix::process::setsid();
    let until = Instant::now() + TIME;
    let queue = Queue::open(&plan.state, &plan.store)?;
    let mut failed = Vec::new();
    // Whoever adds a request looks for the lock afterwards, so it is looked for again after it was
    // released.
    while !queue.is_empty()? && Instant::now() < until {
        let Some(_lock) = queue.lock()? else { return Ok(()) };
        let before = failed.len();
        let mut worked = false;
        while let Some(taken) = queue.take(&failed)? {
            worked = true;
            let receipt = save(plan, &queue, &taken.saving, until)?;
            match &receipt.error {
                None => {
                    tell(&receipt);
                    queue.finish(&taken)?;
                }
                Some(error) if concerns_transcript(error) => {
                    let path = taken.saving.transcript.display();
                    tracing::warn!(%error, %path, "cannot save the transcript");
                    queue.finish(&taken)?;
                }
                // It stays for the next hook.
                Some(error) => {
                    let path = taken.saving.transcript.display();
                    tracing::warn!(%error, %path, "the transcript is not saved completely yet");
                    failed.push(taken.saving.transcript.clone());
                }
            }
            if Instant::now() >= until {
                break;
            }
        }
        queue.limit_marks()?;
        if !worked || failed.len() > before {
            break;
        }
    }
    Ok(())
}

fn tell(receipt: &ImportReceipt) {
    let ImportReceipt { path, created, duplicates, rejected_count, .. } = receipt;
    let path = path.display();
    tracing::info!(%path, created, duplicates, rejected = rejected_count, "saved a transcript");
    for rejected in &receipt.rejected {
        let (row, reason) = (rejected.row, &rejected.reason);
        tracing::info!(%path, row, %reason, "left out");
    }
}

/// Whether trying again later would fail in the same way.
fn concerns_transcript(error: &Failure) -> bool {
    matches!(error.code, Code::BadInput | Code::NotFound | Code::Quarantined)
}

fn save(
    plan: &HookPlan,
    queue: &Queue,
    saving: &Saving,
    until: Instant,
) -> Result<ImportReceipt, Failure> {
    let Saving { transcript, .. } = saving;
    let failed =
        |error| ImportReceipt { error: Some(error), ..ImportReceipt::new(transcript.clone()) };
    let opened = File::open(transcript).map_err(|error| {
        Failure::new(Code::NotFound, format!("cannot read {}: {error}", transcript.display()))
    });
    let opened = match opened {
        Ok(opened) => Arc::new(opened),
        Err(failure) => return Ok(failed(failure)),
    };
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let mut session = Session::open(&plan.store, options)?;
    let store = plan.store.path().to_owned();
    let mark: Option<Mark> =
        queue.read_mark(transcript).and_then(|text| serde_json::from_slice(&text).ok());
    let start = mark.and_then(|mark| mark.cursor(&opened, &store)).map(Box::new);
    let options = import_options(saving, start);
    let place = (plan.state.clone(), plan.store.clone(), transcript.clone());
    let durable: DurableListener = Arc::new(move |cursor: &TranscriptCursor| {
        let (state, store, transcript) = &place;
        let mark = Mark::at(cursor, &opened, store.path());
        let queue = Queue::open(state, store);
        if let (Some(mark), Ok(queue)) = (mark, queue)
            && let Err(failure) = queue.write_mark(transcript, &mark)
        {
            tracing::warn!(%failure, "cannot write the mark of a transcript");
        }
    });
    let outcome = session.run_with_signal(async |engine| {
        let time = until.saturating_duration_since(Instant::now());
        let import = engine.import_and_mark(&options, Arc::new(|_| {}), durable);
        let late = || Failure::new(Code::Timeout, "there was not enough time");
        tokio::time::timeout(time, import).await.unwrap_or_else(|_| failed(late()))
    });
    let receipt = outcome.unwrap_or_else(|(signal, receipt)| {
        receipt.unwrap_or_else(|| failed(crate::session::interrupted(signal)))
    });
    // Folding may take a while; a later hook does it if there is no time now.
    let has_time = until.saturating_duration_since(Instant::now()) > FOLD_TIME;
    match receipt.error.is_none() && has_time {
        true => session.settle()?,
        false => session.close(),
    }
    Ok(receipt)
}

fn import_options(saving: &Saving, start: Option<Box<TranscriptCursor>>) -> ImportOptions {
    let Saving { client, transcript, folder } = saving;
    let name = transcript.file_name().unwrap_or(transcript.as_os_str());
    // The transcripts of the others say which folder they are about.
    let wing = match client {
        Client::ClaudeCode | Client::Codex => None,
        Client::Gemini | Client::Cursor => project_names(folder).pop(),
    };
    let file: PathBuf = transcript.clone();
    let name = name.to_string_lossy().into_owned();
    ImportOptions {
        file,
        opened: None,
        plan: TranscriptOptions { name, wing, grows: true, ..TranscriptOptions::default() },
        dry_run: false,
        patience: PATIENCE,
        without_secrets: true,
        start,
    }
}
