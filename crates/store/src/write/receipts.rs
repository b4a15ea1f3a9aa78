//! Exactly once: a write and its receipt are committed together.

use std::io::BufWriter;

use rusqlite::{OptionalExtension, params};

use super::request::{Action, Key, Outcome, Write};
use super::{Work, memory, perform};
use crate::error::StoreError;
use crate::facts::FactWrite;
use crate::graph::GraphAnswer;
use crate::read::{collections, facts};
use crate::sqlite::During;

/// A result takes no more room than this.
const LONGEST_RESULT: usize = 4096;

/// Does the write, or answers what it answered the first time.
pub(super) fn once(work: Work<'_>, write: &Write) -> Result<Outcome, StoreError> {
    let request = hash(&write.action)?;
    let known: Option<([u8; 16], String)> = work
        .db
        .prepare_cached("SELECT request, result FROM receipt WHERE key = ?1")
        .and_then(|mut statement| {
            statement.query_row([write.key.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()
        })
        .during(work.db, "look for a receipt")?;
    match known {
        Some((of, _)) if of != request => Err(StoreError::KeyReused),
        Some((_, result)) => repeat(work, &write.action, &result),
        None => {
            let outcome = perform(work, &write.action)?;
            keep(work, write, &request, &outcome)?;
            Ok(outcome)
        }
    }
}

/// Forgets keys whose answers have arrived. Keys that the caller chose stay.
pub(super) fn remove(work: Work<'_>, confirmed: &[Key]) -> Result<(), StoreError> {
    let remove_all = || {
        let mut remove =
            work.db.prepare_cached("DELETE FROM receipt WHERE key = ?1 AND keep = 0")?;
        confirmed.iter().try_for_each(|key| remove.execute([key.0]).map(|_| ()))
    };
    remove_all().during(work.db, "remove receipts")
}

fn hash(action: &Action) -> Result<[u8; 16], StoreError> {
    let failed = |error: &dyn std::fmt::Display| {
        StoreError::Invalid(format!("the request cannot be encoded: {error}"))
    };
    let buffered = BufWriter::with_capacity(16 << 10, blake3::Hasher::new());
    let buffered = postcard::to_io(action, buffered).map_err(|error| failed(&error))?;
    let hasher = buffered.into_inner().map_err(|error| failed(&error))?;
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(short)
}

fn keep(
    work: Work<'_>,
    write: &Write,
    request: &[u8; 16],
    outcome: &Outcome,
) -> Result<(), StoreError> {
    work.db
        .prepare_cached(
            "INSERT INTO receipt (key, request, result, keep, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut statement| {
            statement.execute(params![write.key.0, request, short(outcome), write.keep, work.now])
        })
        .during(work.db, "keep a receipt")?;
    Ok(())
}

/// The result as it is kept: without the collection and the entity, which are looked up
/// again, with no more rejected rows than fit, and without drawers or rows if they do not fit.
fn short(outcome: &Outcome) -> String {
    let mut kept = Outcome { collection: None, entity: None, ..outcome.clone() };
    loop {
        let text = serde_json::to_string(&kept).unwrap_or_default();
        if text.len() <= LONGEST_RESULT {
            return text;
        }
        if !kept.drawers.is_empty() {
            kept.drawers.clear();
            continue;
        }
        if kept.graph.as_ref().is_some_and(|answer| !answer.forgotten && answer.count > 0) {
            kept.graph = kept.graph.map(GraphAnswer::without_rows);
            continue;
        }
        if kept.rejected.is_empty() {
            return text;
        }
        kept.rejected.truncate(kept.rejected.len() / 2);
    }
}

fn repeat(work: Work<'_>, action: &Action, result: &str) -> Result<Outcome, StoreError> {
    let mut outcome: Outcome =
        serde_json::from_str(result).map_err(|error| StoreError::Corrupt {
            path: work.db.path().unwrap_or_default().into(),
            reason: format!("a receipt cannot be read: {error}"),
        })?;
    outcome.repeated = true;
    if let Action::AddDrawers { drawers, vectors, .. } = action
        && (outcome.drawers.len() + outcome.rejected.len()) < drawers.len()
    {
        outcome.drawers.clear();
        memory::again(work, drawers, vectors, &mut outcome)?;
    }
    outcome.collection = match action {
        Action::CreateCollection { spec, .. } => collections::by_name(work.db, &spec.name)?,
        Action::RenameCollection { to: name, .. }
        | Action::Put { collection: name, .. }
        | Action::Update { collection: name, .. }
        | Action::Delete { collection: name, .. } => collections::by_name(work.db, name)?,
        Action::AddRoot { .. }
        | Action::PutFiles { .. }
        | Action::MoveFile { .. }
        | Action::RemoveFiles { .. }
        | Action::ClearFiles { .. }
        | Action::SetCodeModel { .. } => collections::code(work.db)?,
        Action::AddDrawers { .. } | Action::UpdateDrawer { .. } | Action::DeleteDrawers { .. } => {
            collections::memory(work.db)?
        }
        Action::Swap(plan) => collections::by_id(work.db, plan.collection)?,
        Action::QuarantineSegments { collection, .. } => collections::by_id(work.db, *collection)?,
        _ => None,
    };
    if let Action::Facts(FactWrite::Describe(patch)) = action {
        outcome.entity = facts::entity_named(work.db, &patch.name)?;
    }
    Ok(outcome)
}
