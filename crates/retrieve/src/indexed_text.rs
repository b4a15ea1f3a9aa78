//! Reads the text that is indexed for keyword search.

use std::ops::ControlFlow;

use isolith_protocol::{CollectionState, StoreError};
use isolith_segment::text::{Analyzer, TextFields};
use isolith_store::{Scope, Snapshot};
use isolith_types::CollectionKind;

/// Called with the row, change number and text fields of a record.
pub type TextVisitor<'a> = dyn FnMut(u64, u64, &TextFields<'_>) -> ControlFlow<()> + 'a;

/// The analyzer for a collection's text.
pub fn analyzer(state: &CollectionState) -> Analyzer {
    match state.kind {
        CollectionKind::Records | CollectionKind::Memory => Analyzer::Prose,
        CollectionKind::Code => Analyzer::Code,
    }
}

/// Calls `each` for the records in `scope`, by ascending row, until it breaks.
pub fn for_each_text(
    snapshot: &Snapshot<'_>,
    state: &CollectionState,
    scope: Scope,
    each: &mut TextVisitor<'_>,
) -> Result<(), StoreError> {
    match state.kind {
        CollectionKind::Records => {
            snapshot.for_each_document(state.id, scope, &mut |row, change, document| {
                each(row, change, &TextFields::body(document.unwrap_or_default()))
            })
        }
        CollectionKind::Code => {
            snapshot.for_each_chunk(state.id, scope, &mut |row, change, chunk| {
                let fields = TextFields::of_chunk(chunk.body, chunk.symbols, chunk.path);
                each(row, change, &fields)
            })
        }
        CollectionKind::Memory => {
            snapshot.for_each_passage(state.id, scope, &mut |row, change, passage| {
                let fields = TextFields::of_passage(passage.body, passage.labels, passage.date);
                each(row, change, &fields)
            })
        }
    }
}
