//! What can be wrong with the truth itself.

use std::time::Instant;

use isolate::{Context, InWorker};
use isolith_protocol::{CollectionState, Kind, Level, StoreError};
use isolith_store::{Check as Look, Reader, Snapshot, StoreFolder, Truth};

use super::finding::{Cure, Finding, Health, Rebuild};

/// Problems that are looked for before a check is content.
const ENOUGH: usize = 50;

/// Opens the truth for one check.
pub(super) fn open(
    folder: &StoreFolder,
    context: &Context<'_>,
    token: InWorker,
) -> Result<Reader, StoreError> {
    // Answer before the front loses patience: a refusal is better than a kill.
    let until = Instant::now() + context.remaining().mul_f32(0.9);
    let reader = Truth::open_reader_until(folder, until, token)?;
    reader.set_deadline(until);
    Ok(reader)
}

/// What an error of the truth says about the store.
pub(super) fn finding_of(error: &StoreError) -> Finding {
    match error {
        StoreError::Corrupt { .. } => {
            Finding::new(Health::Corrupt, error.to_string()).with(Cure::Salvage)
        }
        // The check of the log says more.
        StoreError::Behind { .. } => {
            Finding::new(Health::Corrupt, error.to_string()).with(Cure::RecoverLog)
        }
        _ => Finding::new(Health::Failed, error.to_string()),
    }
}

/// Looks at the truth in several ways; `content` is said if nothing is wrong.
pub(super) fn look(
    reader: &mut Reader,
    looks: &[Look],
    content: impl Into<String>,
    cure: Cure,
) -> Result<Finding, StoreError> {
    let mut problems = Vec::new();
    for look in looks {
        let found = reader.check(*look, ENOUGH)?;
        problems.extend(found.into_iter().map(|problem| problem.detail));
    }
    if problems.is_empty() {
        return Ok(Finding::ok(content));
    }
    Ok(Finding::of_problems(Health::Corrupt, &problems).with(cure))
}

/// Whether segments, tombstones and tail add up to the records.
pub(super) fn generations(reader: &mut Reader) -> Result<Finding, StoreError> {
    let snapshot = reader.snapshot()?;
    let mut wrong = Vec::new();
    let mut cures = Vec::new();
    let mut folded = 0;
    for state in snapshot.collections()? {
        folded += u64::from(state.generation.is_some());
        if let Some(problem) = miscount(&snapshot, &state)? {
            wrong.push(problem);
            cures.push(Cure::Rebuild(Rebuild {
                generation: state.generation_number(),
                id: state.id,
                collection: state.name,
                damaged: Vec::new(),
            }));
        }
    }
    if wrong.is_empty() {
        return Ok(Finding::ok(format!("{folded} generations hold what they should")));
    }
    Ok(Finding { cures, ..Finding::of_problems(Health::Corrupt, &wrong) })
}

fn miscount(
    snapshot: &Snapshot<'_>,
    state: &CollectionState,
) -> Result<Option<String>, StoreError> {
    let Some(generation) = &state.generation else { return Ok(None) };
    let complete_to = generation.complete_to;
    let tail = snapshot.tail(state.id, complete_to)?.len() as u64;
    // Versions that came after the fold are in no segment, dead or alive.
    let tombstones = snapshot.tombstones(state.id)?;
    let dead = tombstones.iter().filter(|(_, change)| *change <= complete_to).count() as u64;
    for kind in [Kind::Vector, Kind::Text] {
        let rows = |level| generation.segment(level, kind).map(|segment| segment.rows);
        let Some(base) = rows(Level::Base) else { continue };
        let delta = rows(Level::Delta).unwrap_or(0);
        if base + delta + tail != state.records + dead {
            return Ok(Some(format!(
                "{}: {} segments hold {base} + {delta} rows, {dead} of them dead, and {tail} are in \
                 the tail, but there are {} records",
                state.name,
                kind.name(),
                state.records,
            )));
        }
    }
    Ok(None)
}

/// How many collections, records and facts there are, for people.
pub(super) fn contents(reader: &mut Reader) -> Result<String, StoreError> {
    let snapshot = reader.snapshot()?;
    let states = snapshot.collections()?;
    let records: u64 = states.iter().map(|state| state.records).sum();
    let collections = counted(states.len() as u64, "collection");
    let content = format!("{} in {collections}", counted(records, "record"));
    Ok(match snapshot.fact_stats()?.facts {
        0 => content,
        facts => format!("{content}, {}", counted(facts, "fact")),
    })
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The models and dimensions of all collections, for people.
pub(super) fn models(reader: &mut Reader) -> Result<String, StoreError> {
    let states = reader.snapshot()?.collections()?;
    let shown: Vec<String> = states
        .iter()
        .map(|state| {
            let dimension =
                state.dimension.map_or("no dimension yet".to_owned(), |it| it.to_string());
            let model = state.model.as_deref().unwrap_or("model unknown");
            format!("{}: {dimension}, {model}", state.name)
        })
        .collect();
    Ok(match shown.as_slice() {
        [] => "no vectors yet".to_owned(),
        shown => super::finding::joined(shown),
    })
}

/// Jobs that are skipped because they killed workers.
pub(super) fn quarantined_jobs(reader: &mut Reader) -> Result<Finding, StoreError> {
    let jobs = reader.snapshot()?.poisons()?;
    if jobs.is_empty() {
        return Ok(Finding::ok("no job is in quarantine"));
    }
    let count = jobs.len();
    let roles: std::collections::BTreeSet<String> = jobs.into_iter().map(|job| job.role).collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(", ");
    let detail = format!(
        "{count} jobs are skipped ({roles}); `isolith doctor --quarantine list` shows them"
    );
    Ok(Finding::new(Health::Warn, detail))
}
