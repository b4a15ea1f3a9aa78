//! Searches whose hits must contain the quoted parts of the query.

use std::ops::ControlFlow;

use isolith_protocol::{CodeFound, CollectionState, FoundChunk, SearchCode, Searched, StoreError};
use isolith_search::{Phrase, QuotedQuery, SearchMode};
use isolith_types::Degraded;

use crate::code::CodeSearch;
use crate::matches::{MatchSearch, RequiredRows, RequiredText};

impl CodeSearch<'_, '_> {
    /// Finds and ranks chunks. If the query has quoted parts, only chunks that contain them.
    pub(crate) fn search(&mut self, query: &SearchCode) -> Result<CodeFound, StoreError> {
        let QuotedQuery { text, required } = QuotedQuery::parse(&query.text);
        if required.is_empty() {
            return self.run(query, None);
        }
        let Some(state) = self.snapshot.code_state()?.filter(|state| state.records > 0) else {
            return self.run(query, None);
        };
        let quoted = required.clone();
        let required = RequiredText::new(required)?;
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let RequiredRows { rows, missing } =
            self.rows_with(&state, &required, query, &mut searched)?;
        let mut found = match rows.is_empty() {
            true => CodeFound {
                weak: true,
                missing,
                indexed: true,
                roots: self.snapshot.root_places()?,
                ..CodeFound::default()
            },
            false => {
                let query = SearchCode { text: text.into_owned(), ..query.clone() };
                self.run(&self.with_usable_mode(query), Some(&rows))?
            }
        };
        self.keep_confirmed(&mut found, &required)?;
        add(&mut found, searched);
        Ok(self.as_printed(query, &quoted, &found)?.unwrap_or(found))
    }

    /// What is found with the quotes as ordinary text, if that is a message with all other words of
    /// the query. In a pasted message, quoted parts are values: `column "user_id" does not exist`.
    fn as_printed(
        &mut self,
        query: &SearchCode,
        quoted: &[String],
        found: &CodeFound,
    ) -> Result<Option<CodeFound>, StoreError> {
        let message = Phrase::parse(&query.text);
        let others = message.share_without(quoted);
        let first_is_message = |found: &CodeFound| {
            found.hits.first().is_some_and(|hit| message.share_in(&hit.text) >= others)
        };
        if others == 0.0 || first_is_message(found) {
            return Ok(None);
        }
        let printed = self.run(query, None)?;
        Ok(first_is_message(&printed).then_some(printed))
    }

    fn rows_with(
        &mut self,
        state: &CollectionState,
        required: &RequiredText,
        query: &SearchCode,
        searched: &mut Searched,
    ) -> Result<RequiredRows, StoreError> {
        let Self { snapshot, segments, tails, model, context } = self;
        MatchSearch { snapshot, segments, tails, model: *model, context }.rows_with(
            state,
            required,
            &query.filter,
            searched,
        )
    }

    /// Without words there is no vector to rank by.
    fn with_usable_mode(&self, query: SearchCode) -> SearchCode {
        let has_vector = query.vector.is_some() || self.model.embed(&query.text).is_some();
        let mode = if has_vector { query.mode } else { SearchMode::Keyword };
        SearchCode { mode, ..query }
    }

    /// Keeps the hits that contain a part according to the database, too: a damaged segment cannot
    /// invent one.
    fn keep_confirmed(
        &self,
        found: &mut CodeFound,
        required: &RequiredText,
    ) -> Result<(), StoreError> {
        let mut kept = Vec::with_capacity(found.hits.len());
        for mut hit in std::mem::take(&mut found.hits) {
            if required.is_partly_in(&hit.text) || self.is_in_file(&hit, required)? {
                hit.why.quoted = true;
                kept.push(hit);
            }
        }
        found.hits = kept;
        found.weak |= found.hits.is_empty();
        Ok(())
    }

    /// Whether the file of a hit contains a part: one that ends in the next chunk, or in white
    /// space after the chunk.
    fn is_in_file(&self, hit: &FoundChunk, required: &RequiredText) -> Result<bool, StoreError> {
        let Some((file, _)) = self.snapshot.chunks_of_file(hit.root, &hit.path)? else {
            return Ok(false);
        };
        let mut is_in = false;
        self.snapshot.file_texts(&[file.id], &mut |file| {
            is_in = required.is_partly_in(&file.text);
            ControlFlow::Break(())
        })?;
        Ok(is_in)
    }
}

/// Adds what the search for required texts found out about the segments.
fn add(found: &mut CodeFound, searched: Searched) {
    if let Some(why) = searched.degraded() {
        found.degraded.get_or_insert(Degraded { why, hint: None });
    }
    let Searched { collection, generation, quarantined, unranked, avoided, damaged } = searched;
    let all = &mut found.searched;
    all.collection = collection;
    all.generation = all.generation.max(generation);
    all.quarantined |= quarantined;
    all.unranked |= unranked;
    all.avoided.extend(avoided);
    all.damaged.extend(damaged);
}
