//! Finds every match of a text or a regular expression in the code index.
//!
//! Matches are counted in the texts that source segments hold, and in those of files that changed
//! since. The hits that are shown are matched again, in texts from the database: a damaged
//! segment cannot invent one.

mod counter;
mod enclosing;
mod matcher;
mod multi_line;
mod required;
mod shown;

use std::ops::ControlFlow;
use std::rc::Rc;

use isolate::Context;
use isolith_embed::Model;
use isolith_fault as fault;
use isolith_protocol::{
    CodeScope, CollectionState, FindMatches, MatchCounts, MatchesFound, RootPlace, Searched,
    StoreError,
};
use isolith_segment::{SegmentError, SourceSegment};
use isolith_store::{Scope, Snapshot};
use isolith_types::{Degraded, FastSet};

use crate::code::{CodeSearch, stored_filter};
use crate::segments::{LiveSegment, Segments};
use crate::tail::Tails;
use counter::{Chunks, Counter, EachText, MatchingFile, Searchable};
use matcher::Matcher;
pub(crate) use required::{RequiredRows, RequiredText};
use shown::Shown;

pub(crate) struct MatchSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) model: Model,
    pub(crate) context: &'a Context<'a>,
}

impl MatchSearch<'_, '_> {
    pub(crate) fn run(&mut self, query: &FindMatches) -> Result<MatchesFound, StoreError> {
        let matcher = Matcher::new(&query.pattern)?;
        let mut found = MatchesFound {
            hits: Vec::new(),
            counts: MatchCounts::default(),
            degraded: None,
            searched: Searched::default(),
            unsegmented: false,
            indexed: false,
            roots: self.snapshot.root_places()?,
        };
        let Some(state) = self.snapshot.code_state()?.filter(|state| state.records > 0) else {
            return Ok(found);
        };
        found.indexed = true;
        found.unsegmented = state.lacks_sources();
        found.searched.collection = state.id;
        let searchable = self.searchable(&state, &query.filter, &mut found.searched)?;
        let context = self.context;
        let new = || Counter::new(&matcher, &searchable, context);
        let files = self.visit(&state, new, &mut found.searched)?.found;
        for MatchingFile { counts, .. } in &files {
            found.counts.matches += counts.matches;
            found.counts.lines += counts.lines;
            found.counts.files += 1;
        }
        let files = in_order(files, &found.roots, query.limit as usize);
        let snapshot = self.snapshot;
        let mut shown = Shown { snapshot, matcher: &matcher, searchable: &searchable, query };
        found.hits = shown.hits(&files)?;
        found.degraded = found.searched.degraded().map(|why| Degraded { why, hint: None });
        Ok(found)
    }

    /// The files and chunks that a filter matches.
    fn searchable(
        &mut self,
        state: &CollectionState,
        filter: &CodeScope,
        searched: &mut Searched,
    ) -> Result<Searchable, StoreError> {
        if !filter.picks() {
            return Ok(Searchable::default());
        }
        if filter.kinds.is_empty() && filter.symbol.is_none() {
            let (stored, paths) = stored_filter(filter)?;
            let files = self.snapshot.code_files(&stored, &|path, _| paths(path))?;
            return Ok(Searchable { files: Some(files), rows: None });
        }
        let Self { snapshot, segments, tails, model, context } = self;
        let mut search = CodeSearch { snapshot, segments, tails, model: *model, context };
        let rows = search.rows(state, filter, searched)?;
        // The chunks that define a symbol are found by keywords.
        if searched.unranked {
            return Err(StoreError::Deadline { operation: "look for a symbol".to_owned() });
        }
        Ok(Searchable { files: None, rows: rows.map(Rc::unwrap_or_clone) })
    }

    /// Passes the texts of all files to a visitor made by `new`.
    fn visit<V: EachText>(
        &mut self,
        state: &CollectionState,
        new: impl Fn() -> V,
        searched: &mut Searched,
    ) -> Result<V, StoreError> {
        let live = match state.lacks_sources() {
            false => self.segments.sources(self.snapshot, state, self.context, searched)?,
            true => None,
        };
        if let Some(live) = live.filter(|_| state.generation.is_some()) {
            fault::point("source.search", self.context);
            let mut visitor = new();
            match self.visit_with(&live, state, &mut visitor)? {
                Ok(()) => return Ok(visitor),
                Err((file, error)) => self.segments.fail(&file, &error, searched),
            }
        }
        let mut visitor = new();
        let mut outcome = Ok(());
        self.snapshot.for_each_file_text(state.id, Scope::All, &mut |file| {
            outcome = visitor.add_stored(file);
            flow(&outcome)
        })?;
        outcome.map(|()| visitor)
    }

    /// Reads segments, and the database where these are outdated. The inner error is that of a
    /// segment, with its file.
    fn visit_with(
        &self,
        live: &[LiveSegment<SourceSegment>],
        state: &CollectionState,
        visitor: &mut impl EachText,
    ) -> Result<Result<(), (String, SegmentError)>, StoreError> {
        let mut stored = self.snapshot.files_changed_after(state.id, state.complete_to())?;
        // Files whose current text is known: a delta replaces files of its base.
        let mut known: FastSet<u64> = stored.iter().copied().collect();
        let mut replaced = Vec::new();
        for segment in live.iter().rev() {
            let LiveSegment { file, segment, deleted } = segment;
            for position in 0..segment.files() {
                let entry = match segment.file(position) {
                    Ok(entry) => entry,
                    Err(error) => return Ok(Err((file.clone(), error))),
                };
                if deleted.contains(position) {
                    replaced.push(entry.id);
                } else if known.insert(entry.id) && visitor.wants(entry.id) {
                    match segment.text(position) {
                        Ok(text) => visitor.add(
                            (entry.id, entry.root, entry.path),
                            text,
                            Chunks::Segment { rows: entry.rows, starts: entry.starts },
                        )?,
                        Err(error) => return Ok(Err((file.clone(), error))),
                    }
                }
            }
        }
        // Files are replaced as a whole, so those that are not known by now are gone. Looking is
        // cheaper than relying on it.
        stored.extend(replaced.into_iter().filter(|id| !known.contains(id)));
        stored.sort_unstable();
        stored.dedup();
        let mut outcome = Ok(());
        self.snapshot.file_texts(&stored, &mut |file| {
            outcome = visitor.add_stored(file);
            flow(&outcome)
        })?;
        outcome.map(Ok)
    }
}

fn flow(outcome: &Result<(), StoreError>) -> ControlFlow<()> {
    if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// The first files by root and path.
fn in_order(mut files: Vec<MatchingFile>, roots: &[RootPlace], limit: usize) -> Vec<MatchingFile> {
    let place = |file: &MatchingFile| roots.iter().position(|root| root.id == file.root);
    let compare = |one: &MatchingFile, other: &MatchingFile| {
        place(one).cmp(&place(other)).then_with(|| one.path.cmp(&other.path))
    };
    // Each file has at least one hit.
    if limit < files.len() && limit > 0 {
        files.select_nth_unstable_by(limit - 1, compare);
        files.truncate(limit);
    }
    files.sort_unstable_by(compare);
    files
}

#[cfg(test)]
mod tests;
