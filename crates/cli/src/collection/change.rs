//! Commands that change or delete records and collections.

use std::fmt::Write as _;

use isolith_engine::{
    CollectionState, Engine, Patch, RecordsUpdated, Selection, Which, is_built_in,
};
use isolith_types::{Code, CollectionKind, Failure, Metadata, counted};
use serde_json::json;

use crate::output::Output;
use crate::session::Session;

/// Changes of records.
pub(crate) struct RecordChange {
    /// The records.
    pub(crate) ids: Vec<String>,
    /// Merged into their metadata.
    pub(crate) metadata: Option<Metadata>,
    /// Replaces their documents.
    pub(crate) document: Option<String>,
}

/// Changes records. If the collection embeds its documents, a new one gets a new vector.
pub(super) async fn update_records(
    engine: &Engine,
    state: &CollectionState,
    name: &str,
    change: RecordChange,
) -> Result<(serde_json::Value, String), Failure> {
    let RecordChange { ids, metadata, document } = change;
    let vector = match &document {
        Some(text) if is_built_in(state.model.as_deref()) => {
            let vector = engine.embed(&[text]).await?.pop().flatten();
            let wordless = || Failure::new(Code::BadInput, "the document has no words to embed");
            Some(vector.ok_or_else(wordless)?)
        }
        _ => None,
    };
    let document = document.map(Some);
    let patch = |id| Patch {
        id,
        document: document.clone(),
        metadata: metadata.clone(),
        vector: vector.clone(),
    };
    let patches: Vec<Patch> = ids.into_iter().map(patch).collect();
    let done = engine.update(&state.name, patches, None).await?.done.reply;
    let RecordsUpdated { updated, unchanged, missing } = done;
    if updated + unchanged == 0 {
        let message = format!("{name} has no such {}", if missing == 1 { "id" } else { "ids" });
        return Err(Failure::new(Code::NotFound, message)
            .with_hint(format!("isolith collection get {name} lists the records")));
    }
    let mut text = format!("updated {} of {name}", counted(updated, "record"));
    let _ = match unchanged {
        0 => writeln!(text),
        _ => writeln!(text, ", {unchanged} unchanged"),
    };
    if missing > 0 {
        let _ = writeln!(text, "{} not found", counted(missing, "id"));
    }
    let document = json!({
        "collection": name, "updated": updated, "unchanged": unchanged, "missing": missing,
    });
    Ok((document, text))
}

/// Asks whether to delete a collection with records. Returns whether to go on.
pub(super) fn confirm_deletion(
    session: &mut Session,
    state: &CollectionState,
    name: &str,
    output: &Output,
) -> Result<bool, Failure> {
    // Those of code and memory are refused anyway.
    if state.records == 0 || state.kind != CollectionKind::Records {
        return Ok(true);
    }
    let question = format!("Delete {name} with {}?", counted(state.records, "record"));
    match session.ask(&question, output)? {
        Some(true) => Ok(true),
        Some(false) => {
            output.note("nothing was deleted");
            Ok(false)
        }
        None => Err(Failure::new(Code::Usage, format!("confirmation needed: {question}"))
            .with_hint("run it again with --yes to delete the collection")),
    }
}

/// Deletes a collection and its records.
pub(super) async fn delete(
    engine: &Engine,
    state: &CollectionState,
    name: &str,
) -> Result<(serde_json::Value, String), Failure> {
    let written = engine.delete_collection(&state.name).await?;
    let records = written.done.reply.deleted;
    let text = format!("deleted {name} with {}\n", counted(records, "record"));
    Ok((json!({ "collection": name, "deleted": records }), text))
}

/// Deletes some records.
pub(super) async fn delete_records(
    engine: &Engine,
    state: &CollectionState,
    name: &str,
    which: Selection,
) -> Result<(serde_json::Value, String), Failure> {
    let which = match which {
        Selection::Ids(ids) => Which::Ids(ids),
        Selection::Matching(filter) => Which::Matching(filter),
        Selection::All => {
            return Err(Failure::new(Code::Usage, "no records given: use --id or --where"));
        }
    };
    let outcome = engine.delete(&state.name, which, None).await?.done.reply;
    let mut text = format!("deleted {} from {name}\n", counted(outcome.deleted, "record"));
    if outcome.missing > 0 {
        let _ = writeln!(text, "{} not found", counted(outcome.missing, "id"));
    }
    let document =
        json!({ "collection": name, "deleted": outcome.deleted, "missing": outcome.missing });
    Ok((document, text))
}
