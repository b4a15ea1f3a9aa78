//! Finds the chunks that contain all quoted parts of a query.

use std::ops::ControlFlow;

use isolith_protocol::{CodeScope, CollectionState, Pattern, PatternSyntax, Searched, StoreError};

use super::MatchSearch;
use super::counter::{Chunks, Clock, EachText, Searchable};
use super::matcher::Matcher;

/// Texts that hits must contain, in upper or lower case.
pub(crate) struct RequiredText {
    parts: Vec<String>,
    matchers: Vec<Matcher>,
}

/// The chunks that contain required texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RequiredRows {
    /// The rows of the chunks that contain all parts. If there is none, of the chunks that contain
    /// a part, in files that contain all of them. Ascending.
    pub(crate) rows: Vec<u64>,
    /// The parts that nothing contains; all of them if no file contains them together.
    pub(crate) missing: Vec<String>,
}

impl RequiredText {
    /// # Errors
    /// If a part is empty or too large.
    pub(crate) fn new(parts: Vec<String>) -> Result<Self, StoreError> {
        let matcher = |text: &String| {
            let (text, syntax) = (text.clone(), PatternSyntax::Literal);
            Matcher::new(&Pattern { text, syntax, ignore_case: true })
        };
        let matchers = parts.iter().map(matcher).collect::<Result<_, _>>()?;
        Ok(Self { parts, matchers })
    }

    /// Whether a text contains one of the parts.
    pub(crate) fn is_partly_in(&self, text: &str) -> bool {
        let is_in = |matcher: &Matcher| {
            matcher.for_each(text.as_bytes(), &mut |_| ControlFlow::Break(())).is_break()
        };
        self.matchers.iter().any(is_in)
    }
}

impl MatchSearch<'_, '_> {
    /// The chunks in `filter` that contain required texts.
    ///
    /// # Errors
    /// [`StoreError::Deadline`], for an invalid filter, or if the truth cannot be read.
    pub(crate) fn rows_with(
        &mut self,
        state: &CollectionState,
        required: &RequiredText,
        filter: &CodeScope,
        searched: &mut Searched,
    ) -> Result<RequiredRows, StoreError> {
        let searchable = self.searchable(state, filter, searched)?;
        let context = self.context;
        let new = || Collector {
            required,
            searchable: &searchable,
            clock: Clock::new(context),
            found: vec![false; required.parts.len()],
            together: Vec::new(),
            apart: Vec::new(),
        };
        let Collector { found, together, apart, .. } = self.visit(state, new, searched)?;
        let mut rows = if together.is_empty() { apart } else { together };
        rows.sort_unstable();
        rows.dedup();
        let apart = rows.is_empty() && found.iter().all(|found| *found);
        let missing = required.parts.iter().zip(found).filter(|(_, found)| apart || !found);
        Ok(RequiredRows { rows, missing: missing.map(|(part, _)| part.clone()).collect() })
    }
}

/// Collects the rows of chunks.
struct Collector<'a> {
    required: &'a RequiredText,
    searchable: &'a Searchable,
    clock: Clock<'a>,
    /// Which parts were found.
    found: Vec<bool>,
    /// Rows with all parts.
    together: Vec<u64>,
    /// Rows with a part, in files with all of them.
    apart: Vec<u64>,
}

impl EachText for Collector<'_> {
    fn wants(&self, id: u64) -> bool {
        self.searchable.has_file(id)
    }

    fn add(
        &mut self,
        _: (u64, u64, &str),
        text: &[u8],
        chunks: Chunks<'_>,
    ) -> Result<(), StoreError> {
        self.clock.check(text.len())?;
        let mut together: Vec<u64> = Vec::new();
        let mut apart: Vec<u64> = Vec::new();
        let mut in_all = true;
        for (at, matcher) in self.required.matchers.iter().enumerate() {
            let rows = self.rows(matcher, text, &chunks);
            self.found[at] |= !rows.is_empty();
            in_all &= !rows.is_empty();
            match at {
                0 => together.clone_from(&rows),
                _ => together.retain(|row| rows.binary_search(row).is_ok()),
            }
            apart.extend(rows);
        }
        if in_all {
            self.together.extend(together);
            self.apart.extend(apart);
        }
        Ok(())
    }
}

impl Collector<'_> {
    /// The rows of the chunks in which a match begins, ascending: those of a file ascend.
    fn rows(&self, matcher: &Matcher, text: &[u8], chunks: &Chunks<'_>) -> Vec<u64> {
        let mut rows: Vec<u64> = Vec::new();
        let _ = matcher.for_each(text, &mut |found| {
            if let Some(row) = self.searchable.chunk_at(chunks, found.span.start)
                && rows.last() != Some(&row)
            {
                rows.push(row);
            }
            ControlFlow::Continue(())
        });
        rows.sort_unstable();
        rows
    }
}
