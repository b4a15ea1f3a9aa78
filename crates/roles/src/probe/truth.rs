//! Checks of the database.

use std::time::Instant;

use isolate::{Context, InWorker};
use isolith_protocol::{CollectionState, IndexKind, Level, StoreError};
use isolith_store::{Check as TruthCheck, Reader, Snapshot, StoreFolder, Truth};

use isolith_types::counted;

use super::finding::{CollectionRebuild, Finding, Health, Repair, joined};

/// Maximum number of problems that a check looks for.
const MAX_PROBLEMS: usize = 50;

pub(super) fn open(
    folder: &StoreFolder,
    context: &Context<'_>,
    token: InWorker,
) -> Result<Reader, StoreError> {
    // Leave time to reply with an error before the front kills the worker at its deadline.
    let until = Instant::now() + context.remaining().mul_f32(0.9);
    let reader = Truth::open_reader_until(folder, until, token)?;
    reader.set_deadline(until);
    Ok(reader)
}

/// The finding for an error of the database.
pub(super) fn finding_of(error: &StoreError) -> Finding {
    match error {
        StoreError::Corrupt { .. } => {
            Finding::new(Health::Corrupt, error.to_string()).with(Repair::Salvage)
        }
        // The check of the log has the details.
        StoreError::Behind { .. } => {
            Finding::new(Health::Corrupt, error.to_string()).with(Repair::RecoverLog)
        }
        _ => Finding::new(Health::Failed, error.to_string()),
    }
}

/// Runs several checks. `ok` is the detail if there are no problems, `repair` fixes them.
pub(super) fn run_checks(
    reader: &mut Reader,
    checks: &[TruthCheck],
    ok: impl Into<String>,
    repair: Repair,
) -> Result<Finding, StoreError> {
    let mut problems = Vec::new();
    for check in checks {
        let found = reader.check(*check, MAX_PROBLEMS)?;
        problems.extend(found.into_iter().map(|problem| problem.detail));
    }
    if problems.is_empty() {
        return Ok(Finding::ok(ok));
    }
    Ok(Finding::of_problems(Health::Corrupt, &problems).with(repair))
}

/// SQLite's integrity check.
pub(super) fn integrity(reader: &mut Reader, full: bool) -> Result<Finding, StoreError> {
    let contents = contents(reader).unwrap_or_default();
    if full {
        let checks = [TruthCheck::Full, TruthCheck::Checksums];
        return run_checks(reader, &checks, contents, Repair::Salvage);
    }
    let ok = format!("{contents}; not checked without --full: free pages, indexes against tables");
    run_checks(reader, &[TruthCheck::Quick], ok, Repair::Salvage)
}

/// Checks that segments, tombstones and tail add up to the records.
pub(super) fn generations(reader: &mut Reader) -> Result<Finding, StoreError> {
    let snapshot = reader.snapshot()?;
    let mut wrong = Vec::new();
    let mut repairs = Vec::new();
    let mut folded = 0;
    for state in snapshot.collections()? {
        folded += u64::from(state.generation.is_some());
        if let Some(problem) = miscount(&snapshot, &state)? {
            wrong.push(problem);
            repairs.push(Repair::RebuildCollection(CollectionRebuild {
                generation: state.generation_number(),
                id: state.id,
                collection: state.name,
                damaged: Vec::new(),
            }));
        }
    }
    if wrong.is_empty() {
        return Ok(Finding::ok(format!("{} consistent", counted(folded, "generation"))));
    }
    Ok(Finding { repairs, ..Finding::of_problems(Health::Corrupt, &wrong) })
}

fn miscount(
    snapshot: &Snapshot<'_>,
    state: &CollectionState,
) -> Result<Option<String>, StoreError> {
    let Some(generation) = &state.generation else { return Ok(None) };
    let complete_to = generation.complete_to;
    let tail = snapshot.tail(state.id, complete_to)?.len() as u64;
    // Versions newer than the fold are in no segment.
    let tombstones = snapshot.tombstones(state.id)?;
    let dead = tombstones.iter().filter(|(_, change)| *change <= complete_to).count() as u64;
    for kind in [IndexKind::Vector, IndexKind::Text, IndexKind::Source] {
        let rows = |level| generation.segment(level, kind).map(|segment| segment.rows);
        let Some(base) = rows(Level::Base) else { continue };
        let delta = rows(Level::Delta).unwrap_or(0);
        if base + delta + tail != state.records + dead {
            return Ok(Some(format!(
                "{}: {} segments have {base} + {delta} rows, {dead} of them deleted, and the tail \
                 has {tail}, but there are {} records",
                state.name,
                kind.name(),
                state.records,
            )));
        }
    }
    Ok(None)
}

/// Describes the number of collections, records and facts.
pub(super) fn contents(reader: &mut Reader) -> Result<String, StoreError> {
    let snapshot = reader.snapshot()?;
    let states = snapshot.collections()?;
    let records: u64 = states.iter().map(|state| state.records).sum();
    let collections = counted(states.len() as u64, "collection");
    let content = format!("{} in {collections}", counted(records, "record"));
    Ok(match snapshot.fact_stats(None)?.facts {
        0 => content,
        facts => format!("{content}, {}", counted(facts, "fact")),
    })
}

/// Describes the models and dimensions of all collections.
pub(super) fn models(reader: &mut Reader) -> Result<String, StoreError> {
    let states = reader.snapshot()?.collections()?;
    let shown: Vec<String> = states
        .iter()
        .map(|state| {
            let dimension =
                state.dimension.map_or("no dimension yet".to_owned(), |it| it.to_string());
            let model = state.model.as_deref().unwrap_or("unknown model");
            format!("{}: {dimension}, {model}", state.name)
        })
        .collect();
    Ok(match shown.as_slice() {
        [] => "no vectors yet".to_owned(),
        shown => joined(shown),
    })
}

/// Reports jobs that are skipped because they crashed workers.
pub(super) fn quarantined_jobs(reader: &mut Reader) -> Result<Finding, StoreError> {
    let jobs = reader.snapshot()?.poisons()?;
    if jobs.is_empty() {
        return Ok(Finding::ok("no quarantined jobs"));
    }
    let count = counted(jobs.len(), "quarantined job");
    let roles: std::collections::BTreeSet<String> = jobs.into_iter().map(|job| job.role).collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(", ");
    let detail = format!("{count} ({roles}); `isolith doctor --quarantine list` shows more");
    Ok(Finding::new(Health::Warn, detail))
}
