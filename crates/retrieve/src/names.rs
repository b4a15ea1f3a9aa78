//! Definitions by name: qualified, incomplete and misspelled names of a query.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use isolith_protocol::{CollectionState, SearchCode, Searched, StoreError};
use isolith_search::{CodeQuery, FileRole, SimilarNames, file_roles};
use isolith_segment::text::{Analyzer, Keywords};

use crate::code::{CodeSearch, MAX_DEFINING, definition_keywords};

/// Maximum number of names of a query for which similar ones are looked up, and of those that are
/// used for each.
const MAX_ASKED: usize = 4;
const MAX_SIMILAR: usize = 8;

/// Maximum number of definitions of a name that are compared with a qualified one.
const MAX_NAMED: u32 = 2_000;

/// Maximum number of definitions whose chunks are looked up.
const MAX_PLACED: usize = 64;

/// Factor for a declaration without a body, relative to a definition.
const DECLARED: f32 = 0.9;

impl CodeSearch<'_, '_> {
    /// Analyzes a query. Identifiers that are not defined and occur nowhere are replaced by names
    /// that begin like them or, if there are none, differ in one typing error.
    pub(crate) fn analyze<'q>(
        &mut self,
        state: &CollectionState,
        query: &'q SearchCode,
        searched: &mut Searched,
    ) -> Result<(Cow<'q, SearchCode>, CodeQuery), StoreError> {
        let parsed = CodeQuery::parse(&query.text);
        let mut similar = Vec::new();
        for asked in parsed.completable().take(MAX_ASKED) {
            let names = self.similar_names(state, asked, searched)?;
            if !names.is_empty() {
                similar.push(SimilarNames { asked: asked.to_owned(), names });
            }
        }
        if similar.is_empty() {
            return Ok((Cow::Borrowed(query), parsed));
        }
        let (text, parsed) = CodeQuery::parse_with(&query.text, &similar);
        Ok((Cow::Owned(SearchCode { text, ..query.clone() }), parsed))
    }

    /// Names of definitions that an undefined name may mean.
    fn similar_names(
        &mut self,
        state: &CollectionState,
        asked: &str,
        searched: &mut Searched,
    ) -> Result<Vec<String>, StoreError> {
        let is_defined = !self.snapshot.definitions_named(asked, 1)?.is_empty()
            || self.is_defined_in_other_case(state, asked, searched)?;
        if is_defined {
            return Ok(Vec::new());
        }
        if self.occurs(state, asked, searched)? {
            return Ok(Vec::new());
        }
        for name in spellings(asked) {
            let found = self.snapshot.names_with_prefix(&name, MAX_SIMILAR)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        if !CodeQuery::may_be_misspelled(asked) {
            return Ok(Vec::new());
        }
        for name in spellings(asked) {
            let found = self.snapshot.names_one_error_from(&name, MAX_SIMILAR)?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// Whether a chunk defines a name, in upper or lower case. Also knows languages without a
    /// graph.
    fn is_defined_in_other_case(
        &mut self,
        state: &CollectionState,
        name: &str,
        searched: &mut Searched,
    ) -> Result<bool, StoreError> {
        let keywords = definition_keywords(name);
        let best = self.keyword_search().best(state, keywords, MAX_DEFINING, None, searched)?;
        let rows: Vec<u64> = best.into_ranked().into_iter().map(|(row, _)| row).collect();
        let chunks = self.snapshot.chunks(&rows, false)?;
        let mut symbols = chunks.iter().flatten().flat_map(|chunk| &chunk.symbols);
        Ok(symbols.any(|symbol| symbol.name.eq_ignore_ascii_case(name)))
    }

    /// Whether a name occurs anywhere; a word also does if another with the same stem does.
    fn occurs(
        &mut self,
        state: &CollectionState,
        name: &str,
        searched: &mut Searched,
    ) -> Result<bool, StoreError> {
        let mut keywords = Keywords::of(Analyzer::Code, name, 0.0);
        // The last term is the whole name.
        let whole = keywords.terms.pop();
        keywords.terms = whole.into_iter().collect();
        let best = self.keyword_search().best(state, keywords, 1, None, searched)?;
        Ok(!best.into_ranked().is_empty())
    }

    /// The rows of chunks that define the name that is the query, with the share of its
    /// qualification that the definition has. Adds them to `defining`, as found by keywords. None
    /// if the query is not a qualified name, unless so many chunks define parts of it that those
    /// may be missing which define the whole.
    pub(crate) fn named_rows(
        &mut self,
        query: &CodeQuery,
        defining: &mut Vec<(u64, usize)>,
        rows: Option<&[u64]>,
    ) -> Result<HashMap<u64, f32>, StoreError> {
        let mut found = HashMap::new();
        if !query.is_qualified() && defining.len() < MAX_DEFINING as usize {
            return Ok(found);
        }
        for name in query.symbol_names() {
            for (file, shares) in self.best_definitions(query, name)? {
                let definitions = self.snapshot.definitions(file)?;
                let chunks = self.snapshot.chunk_places(file)?;
                for definition in definitions.iter().filter(|it| it.name == name) {
                    let Some(share) = shares.get(&definition.qualified) else { continue };
                    let share = if definition.declared { share * DECLARED } else { *share };
                    let holds = |start, end| (start..=end).contains(&definition.line);
                    let chunk = chunks.iter().find(|it| holds(it.start_line, it.end_line));
                    let Some(row) = chunk.map(|chunk| chunk.row) else { continue };
                    if rows.is_none_or(|rows| rows.binary_search(&row).is_ok()) {
                        let best = found.entry(row).or_insert(share);
                        *best = share.max(*best);
                    }
                }
            }
            if let Some(at) = query.identifiers().iter().position(|it| it == name) {
                defining.extend(found.keys().map(|row| (*row, at)));
            }
        }
        defining.sort_unstable();
        defining.dedup();
        Ok(found)
    }

    /// The definitions of a name that have most of the query's qualification, by file: shares by
    /// qualified name.
    fn best_definitions(
        &self,
        query: &CodeQuery,
        name: &str,
    ) -> Result<BTreeMap<u64, HashMap<String, f32>>, StoreError> {
        let named = self.snapshot.definitions_named(name, MAX_NAMED)?;
        let mut ids: Vec<u64> = named.iter().map(|(file, _)| *file).collect();
        ids.sort_unstable();
        ids.dedup();
        let files = self.snapshot.files_by_id(&ids)?;
        let paths: HashMap<u64, &str> =
            files.iter().flatten().map(|file| (file.id, file.path.as_str())).collect();
        let mut shares: Vec<(f32, u64, String)> = named
            .into_iter()
            .filter_map(|(file, qualified)| {
                Some((query.qualification(paths.get(&file)?, &qualified), file, qualified))
            })
            .collect();
        if query.is_qualified() {
            shares.retain(|(share, ..)| *share > 0.0);
        }
        if shares.len() > MAX_PLACED {
            let is_test = |file: &u64| file_roles(paths[file]).contains(FileRole::Test);
            shares.sort_by_cached_key(|(share, file, qualified)| {
                let share = Reverse((share * 100.0) as u32);
                (share, is_test(file), qualified.matches('.').count(), *file)
            });
            shares.truncate(MAX_PLACED);
        }
        let mut by_file: BTreeMap<u64, HashMap<String, f32>> = BTreeMap::new();
        for (share, file, qualified) in shares {
            by_file.entry(file).or_default().insert(qualified, share);
        }
        Ok(by_file)
    }
}

/// A name as it was typed, and in the case that it may have been typed without.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    let mut chars = name.chars();
    if !name.contains(char::is_uppercase)
        && let Some(first) = chars.next()
    {
        all.push(first.to_uppercase().chain(chars).collect());
        all.push(name.to_uppercase());
    } else {
        all.push(name.to_lowercase());
    }
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tried_in_other_case() {
        for (name, expected) in [
            ("queryset", "queryset Queryset QUERYSET"),
            ("Query", "Query query"),
            ("_x", "_x _X"),
            ("", ""),
        ] {
            assert_eq!(spellings(name).join(" "), expected, "{name}");
        }
    }
}
