//! Code search: candidates by keywords, vectors and definitions, ranked by `isolith-search`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use isolate::Context;
use isolith_embed::{Model, model_name};
use isolith_protocol::{
    ChunkFilter as StoredFilter, CodeFound, CodeScope, CollectionState, FileState, FoundChunk,
    SearchCode, Searched, StoreError, StoredChunk,
};
use isolith_search::{
    CandidateFile, ChunkCandidate, CodeQuery, FileRole, Fit, IdentifierDefinition, Phrase,
    RankedChunk, SearchMode, Stemmer, file_roles, is_exact_match, rank_chunks,
};
use isolith_segment::exact::floats;
use isolith_segment::text::{Analyzer, FieldWeight, Keywords, field};
use isolith_store::Snapshot;
use isolith_types::{Degraded, FastMap, Hint};

use crate::chunks::{ChunkReader, FoundFacts, FoundFile, LoadedChunks};
use crate::keywords::KeywordSearch;
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::{VectorSearch, dot};

/// Minimum number of candidates by keywords, and by vectors. The evidence of a report is spread
/// over more chunks.
const MIN_CANDIDATES: u32 = 200;
const MIN_REPORT_CANDIDATES: u32 = 1000;

/// Maximum number of chunks that may define one identifier.
pub(crate) const MAX_DEFINING: u32 = 200;

/// The phrase is compared with chunks that have at least this share of the best keyword score.
const MIN_PHRASE_SCORE: f32 = 0.4;
const MAX_PHRASE_CHUNKS: usize = 48;

/// The least scores of a chunk that contains what the query requires, so that it is a hit even if
/// nothing else about it matches.
const MIN_REQUIRED: f32 = 1e-3;

/// Minimum share of a query vector's squared length without the mean; less is a rounding error.
const MIN_REMAINDER: f32 = 1e-6;

pub(crate) struct CodeSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) model: Model,
    pub(crate) context: &'a Context<'a>,
}

/// Keyword and vector score of each row; both 0 for rows found only by a definition.
fn merge_scores(
    by_keywords: &[(u64, f32)],
    by_vectors: &[(u64, f32)],
    defining: impl Iterator<Item = u64>,
) -> BTreeMap<u64, (f32, f32)> {
    let mut scores: BTreeMap<u64, (f32, f32)> = BTreeMap::new();
    by_keywords.iter().for_each(|(row, score)| scores.entry(*row).or_default().0 = *score);
    by_vectors.iter().for_each(|(row, score)| scores.entry(*row).or_default().1 = *score);
    for row in defining {
        scores.entry(row).or_default();
    }
    scores
}

impl CodeSearch<'_, '_> {
    /// Finds and ranks chunks: those of `only`, if given, in ascending order, of which each is an
    /// answer. Otherwise those that the filter matches.
    pub(crate) fn run(
        &mut self,
        query: &SearchCode,
        only: Option<&[u64]>,
    ) -> Result<CodeFound, StoreError> {
        let Some(state) = self.snapshot.code_state()?.filter(|state| state.records > 0) else {
            return Ok(CodeFound { weak: true, ..CodeFound::default() });
        };
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let (mode, other_model) = usable_mode(&state, query)?;
        let filtered = match only {
            Some(_) => None,
            None => self.rows(&state, &query.filter, &mut searched)?,
        };
        let rows = only.or_else(|| filtered.as_ref().map(|rows| rows.as_slice()));
        let (query, code_query) = match mode.uses_keywords() {
            true => self.analyze(&state, query, &mut searched)?,
            false => (Cow::Borrowed(query), CodeQuery::parse(&query.text)),
        };
        let query = &*query;
        let candidates = candidate_limit(query, &code_query);
        let (by_keywords, keyword_fit) = match mode.uses_keywords() {
            true => self.by_keywords(&state, query, candidates, rows, &mut searched)?,
            false => (Vec::new(), 0.0),
        };
        let by_vectors = match mode.uses_vectors() {
            true => self.by_vectors(&state, query, candidates, rows, &mut searched)?,
            false => Vec::new(),
        };
        let mut defining = self.defining(&state, &code_query, rows, &mut searched)?;
        let named = self.named_rows(&code_query, &mut defining, rows)?;
        let Self { snapshot, segments, context, .. } = self;
        let mut chunks = ChunkReader::open(snapshot, segments, &state, context, &mut searched)?;
        let found = by_keywords.iter().chain(&by_vectors).map(|(row, _)| *row);
        let rest = only.into_iter().flatten().copied().take(query.limit as usize);
        let found = found.chain(defining.iter().map(|(row, _)| *row)).chain(rest.clone());
        let loaded = chunks.load(found, segments, &mut searched)?;
        let definitions = loaded.definitions(&defining, &code_query);
        let defining = definitions.iter().map(|(row, _)| *row);
        let scores = merge_scores(&by_keywords, &by_vectors, defining.chain(rest));
        let mut candidates = loaded.candidates(&scores, query.filter.except.as_ref());
        compare_phrase(&chunks, &query.text, &by_keywords, &mut candidates)?;
        loaded.qualify(&mut candidates, &code_query, &named);
        if only.is_some() {
            candidates.iter_mut().for_each(raise_required);
        }
        let definitions: Vec<IdentifierDefinition> =
            definitions.into_iter().map(|(_, it)| it).collect();
        let files: Vec<CandidateFile> = loaded.files.iter().map(candidate_file).collect();
        let (weights, limit) = (&query.weights, query.limit as usize);
        let mut ranked =
            rank_chunks(&code_query, &files, &candidates, &definitions, weights, mode, limit);
        let fit = Fit {
            keywords: keyword_fit,
            vectors: by_vectors.first().map_or(0.0, |(_, similarity)| *similarity),
            exact: only.is_some() || candidates.iter().any(|it| is_exact_match(&code_query, it)),
        };
        fit.scale(&mut ranked, &code_query, mode);
        let weak = ranked.is_empty() || fit.is_weak(&code_query, mode);
        let row = |candidate: usize| candidates[candidate].row;
        let hits = loaded.hits(self.snapshot, &code_query, ranked, row)?;
        let degraded = searched.degraded().map(|why| Degraded { why, hint: None }).or(other_model);
        let roots = self.snapshot.root_places()?;
        let found = CodeFound { hits, degraded, weak, searched, roots, ..CodeFound::default() };
        Ok(CodeFound { indexed: true, ..found })
    }

    /// The rows that match a filter; `None` if it matches all.
    pub(crate) fn rows(
        &mut self,
        state: &CollectionState,
        filter: &CodeScope,
        searched: &mut Searched,
    ) -> Result<Option<Rc<Vec<u64>>>, StoreError> {
        if !filter.picks() {
            return Ok(None);
        }
        let snapshot = self.snapshot;
        let read = || {
            let (stored, paths) = stored_filter(filter)?;
            snapshot.code_rows(&stored, &|path, _generated| paths(path))
        };
        // The ages of files also change without their chunks, and symbols are looked up by
        // keywords.
        if filter.since.is_none() && filter.symbol.is_none() {
            let filter = CodeScope { except: None, ..filter.clone() };
            return self.tails.scope(state, &filter, read).map(Some);
        }
        let mut rows = read()?;
        if let Some(name) = &filter.symbol {
            let defining = self.rows_defining(state, name, searched)?;
            rows.retain(|row| defining.binary_search(row).is_ok());
        }
        Ok(Some(Rc::new(rows)))
    }

    /// Rows and scores of the chunks that match the query's keywords best, and the highest score
    /// relative to the highest possible one.
    fn by_keywords(
        &mut self,
        state: &CollectionState,
        query: &SearchCode,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<(Vec<(u64, f32)>, f32), StoreError> {
        let keywords = Keywords::of(Analyzer::Code, &query.text, query.weights.stem_keywords);
        let (best, ranking) =
            self.keyword_search().best_with_ranking(state, keywords, limit, rows, searched)?;
        let best = best.into_ranked();
        let possible: f32 = ranking.iter().flat_map(|ranking| ranking.gains()).sum();
        let highest = best.first().map_or(0.0, |(_, score)| *score);
        Ok((best, if possible > 0.0 { highest / possible } else { 0.0 }))
    }

    /// Rows of the chunks nearest to the query vector without the mean, and their similarity minus
    /// that of the mean.
    fn by_vectors(
        &mut self,
        state: &CollectionState,
        query: &SearchCode,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        let mut vector: Vec<f32> = match &query.vector {
            Some(vector) => floats(vector).collect(),
            None => match self.model.embed(&query.text) {
                Some(vector) => vector.to_vec(),
                None => return Ok(Vec::new()),
            },
        };
        let mut search = VectorSearch {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        };
        let mut baseline = 0.0;
        if let Some(mean) = search.mean(state, searched)? {
            remove_mean(&mut vector, &mean, query.weights.common);
            baseline = dot(&mean, &vector) / dot(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
        }
        let best = search.best(state, vector, limit, rows, searched)?;
        let score = |(row, distance): (u64, f32)| (row, (1.0 - distance - baseline).max(0.0));
        Ok(best.into_ranked().into_iter().map(score).collect())
    }

    /// Rows of chunks that may define an identifier of the query, and the identifier's index.
    fn defining(
        &mut self,
        state: &CollectionState,
        query: &CodeQuery,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, usize)>, StoreError> {
        let mut found = Vec::new();
        for (index, name) in query.identifiers().iter().enumerate() {
            let best = self.keyword_search().best(
                state,
                definition_keywords(name),
                MAX_DEFINING,
                rows,
                searched,
            )?;
            found.extend(best.into_ranked().into_iter().map(|(row, _)| (row, index)));
        }
        Ok(found)
    }

    /// The rows of chunks that define a symbol, ascending.
    fn rows_defining(
        &mut self,
        state: &CollectionState,
        name: &str,
        searched: &mut Searched,
    ) -> Result<Vec<u64>, StoreError> {
        let limit = u32::try_from(state.records).unwrap_or(u32::MAX);
        let best =
            self.keyword_search().best(state, definition_keywords(name), limit, None, searched)?;
        let rows: Vec<u64> = best.into_ranked().into_iter().map(|(row, _)| row).collect();
        let chunks = self.snapshot.chunks(&rows, false)?;
        let defines = |chunk: &StoredChunk| {
            chunk.symbols.iter().any(|symbol| symbol.name.eq_ignore_ascii_case(name))
        };
        let mut rows: Vec<u64> =
            chunks.into_iter().flatten().filter(defines).map(|chunk| chunk.row).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    pub(crate) fn keyword_search(&mut self) -> KeywordSearch<'_, '_> {
        KeywordSearch {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        }
    }
}

/// Makes a chunk that contains what the query requires a hit, even if nothing else matches.
fn raise_required(candidate: &mut ChunkCandidate<'_>) {
    candidate.phrase = candidate.phrase.max(MIN_REQUIRED);
    candidate.vector = candidate.vector.max(MIN_REQUIRED);
}

/// Sets the phrase scores of the candidates with the highest keyword scores.
fn compare_phrase(
    chunks: &ChunkReader<'_, '_>,
    query: &str,
    by_keywords: &[(u64, f32)],
    candidates: &mut [ChunkCandidate<'_>],
) -> Result<(), StoreError> {
    let phrase = Phrase::parse(query);
    let Some(&(_, highest)) = by_keywords.first().filter(|_| !phrase.is_empty()) else {
        return Ok(());
    };
    let best = by_keywords.iter().take_while(|(_, score)| *score >= highest * MIN_PHRASE_SCORE);
    let rows: Vec<u64> = best.map(|(row, _)| *row).take(MAX_PHRASE_CHUNKS).collect();
    let mut shares: FastMap<u64, f32> = FastMap::default();
    chunks.for_each_text(&rows, &mut |row, text| {
        shares.insert(row, phrase.share_in(text));
    })?;
    for candidate in candidates {
        candidate.phrase = shares.get(&candidate.row).copied().unwrap_or(0.0);
    }
    Ok(())
}

/// A filter as the database takes it, and which paths it matches.
pub(crate) fn stored_filter(
    filter: &CodeScope,
) -> Result<(StoredFilter, impl Fn(&str) -> bool), StoreError> {
    let globs = globs(&filter.paths)?;
    let tests = filter.tests;
    let stored = StoredFilter {
        roots: filter.roots.clone(),
        languages: filter.languages.clone(),
        kinds: filter.kinds.clone(),
        changed_since: filter.since,
    };
    let matches_path = move |path: &str| {
        globs.as_ref().is_none_or(|globs| globs.is_match(path))
            && tests.is_none_or(|tests| file_roles(path).contains(FileRole::Test) == tests)
    };
    Ok((stored, matches_path))
}

/// Keywords that match defined symbols only.
pub(crate) fn definition_keywords(name: &str) -> Keywords {
    let mut keywords = Keywords::of(Analyzer::Code, name, 0.0);
    for at in [field::BODY, field::STEM, field::FOLDERS] {
        keywords.weights.fields[at] = FieldWeight::NOTHING;
    }
    keywords
}

/// Falls back to keywords if the index has vectors of another model, and says so.
fn usable_mode(
    state: &CollectionState,
    query: &SearchCode,
) -> Result<(SearchMode, Option<Degraded>), StoreError> {
    let known = state.model.as_deref().unwrap_or("unknown");
    match query.mode {
        _ if known == model_name() => Ok((query.mode, None)),
        SearchMode::Keyword => Ok((SearchMode::Keyword, None)),
        SearchMode::Hybrid if query.vector.is_none() => {
            let why = format!("the index was built with model {known}: ranked by keywords only");
            Ok((SearchMode::Keyword, Some(Degraded { why, hint: Some(Hint::ReembedIndex) })))
        }
        _ => Err(StoreError::ModelMismatch {
            name: state.name.clone(),
            found: known.to_owned(),
            asked: model_name().to_owned(),
        }),
    }
}

impl LoadedChunks {
    fn candidates(
        &self,
        scores: &BTreeMap<u64, (f32, f32)>,
        except: Option<&(u64, String, u32)>,
    ) -> Vec<ChunkCandidate<'_>> {
        let mut candidates: Vec<ChunkCandidate<'_>> = Vec::with_capacity(scores.len());
        for (&row, &(keywords, vector)) in scores {
            let Some(chunk) = self.chunks.get(&row) else { continue };
            let file = chunk.file;
            if except.is_some_and(|except| self.is_at(chunk, except)) {
                continue;
            }
            candidates.push(ChunkCandidate {
                row,
                file,
                keywords,
                vector,
                phrase: 0.0,
                qualified: 0.0,
                start_line: chunk.start_line,
                symbols: &chunk.symbols,
                parent: chunk.parent.as_deref(),
            });
        }
        candidates
    }

    /// Sets how much of the query's qualified name the definitions of it in candidates have:
    /// according to the graph, or to the chunk, if the graph does not know the definition.
    fn qualify(
        &self,
        candidates: &mut [ChunkCandidate<'_>],
        query: &CodeQuery,
        named: &HashMap<u64, f32>,
    ) {
        if !query.is_qualified() {
            return;
        }
        let defines = |it: &&mut ChunkCandidate<'_>| {
            it.symbols.iter().any(|symbol| query.is_named(&symbol.name))
        };
        for candidate in candidates.iter_mut().filter(defines) {
            let parent = candidate.parent.unwrap_or_default();
            let path = &self.files[candidate.file as usize].path;
            let share = query.qualification(path, &format!("{parent}."));
            candidate.qualified = named.get(&candidate.row).map_or(share, |known| known.max(share));
        }
    }

    /// Whether a chunk contains a position: root, path and line.
    fn is_at(&self, chunk: &FoundFacts, position: &(u64, String, u32)) -> bool {
        let file = &self.files[chunk.file as usize];
        let (root, path, line) = position;
        file.root == *root
            && file.path == *path
            && (chunk.start_line..=chunk.end_line).contains(line)
    }

    /// The definitions in the chunks found, with their rows.
    fn definitions(
        &self,
        defining: &[(u64, usize)],
        query: &CodeQuery,
    ) -> Vec<(u64, IdentifierDefinition)> {
        let mut definitions = Vec::new();
        for (row, identifier) in defining {
            let Some(chunk) = self.chunks.get(row) else { continue };
            let name = &query.identifiers()[*identifier];
            let named =
                chunk.symbols.iter().filter(|symbol| symbol.name.eq_ignore_ascii_case(name));
            let file = chunk.file;
            definitions.extend(named.map(|symbol| {
                (*row, IdentifierDefinition { file, identifier: *identifier, kind: symbol.kind })
            }));
        }
        definitions
    }

    /// What is shown of ranked chunks, from the database.
    fn hits(
        &self,
        snapshot: &Snapshot<'_>,
        query: &CodeQuery,
        ranked: Vec<RankedChunk>,
        row: impl Fn(usize) -> u64,
    ) -> Result<Vec<FoundChunk>, StoreError> {
        let rows: Vec<u64> = ranked.iter().map(|it| row(it.candidate)).collect();
        let chunks = snapshot.chunks(&rows, true)?;
        let ids = chunks.iter().map(|it| it.as_ref().map_or(0, |chunk| chunk.file));
        let files = snapshot.files_by_id(&ids.collect::<Vec<u64>>())?;
        let stored = chunks.into_iter().zip(files);
        let mut stemmer = Stemmer::new();
        let hit = |(ranked, (chunk, file)): (RankedChunk, (Option<StoredChunk>, _))| {
            // Only what the database has in the same version counts.
            let chunk = chunk.filter(|it| self.chunks[&it.row].change == it.change)?;
            let text = chunk.text.as_deref().unwrap_or_default();
            let symbol = query.best_symbol(text, chunk.start_line, &chunk.symbols, &mut stemmer);
            Some(self.hit(symbol, ranked, chunk, file?, &row))
        };
        Ok(ranked.into_iter().zip(stored).filter_map(hit).collect())
    }

    /// `symbol` is the index of the symbol to be shown.
    fn hit(
        &self,
        symbol: Option<usize>,
        ranked: RankedChunk,
        chunk: StoredChunk,
        file: FileState,
        row: impl Fn(usize) -> u64,
    ) -> FoundChunk {
        FoundChunk {
            root: file.root,
            path: file.path,
            language: file.language,
            version: file.version,
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            kind: chunk.kind,
            symbol: symbol.and_then(|at| chunk.symbols.into_iter().nth(at)),
            parent: chunk.parent,
            signature: chunk.signature,
            text: chunk.text.unwrap_or_default(),
            score: ranked.score,
            why: ranked.explanation,
            also: ranked.also.into_iter().map(|it| self.chunks[&row(it)].place()).collect(),
        }
    }
}

fn candidate_limit(query: &SearchCode, code_query: &CodeQuery) -> u32 {
    let min = if code_query.is_report() { MIN_REPORT_CANDIDATES } else { MIN_CANDIDATES };
    min.max(query.limit)
}

fn candidate_file(file: &FoundFile) -> CandidateFile {
    CandidateFile { path: file.path.clone(), generated: file.generated }
}

/// As in ignore rules, a pattern without a slash matches names at any depth, and one that begins
/// with a slash is relative to the root.
fn globs(patterns: &[String]) -> Result<Option<GlobSet>, StoreError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let invalid =
        |error: globset::Error| StoreError::Invalid(format!("invalid path pattern: {error}"));
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let is_anchored = pattern.starts_with('/');
        let pattern = pattern.trim_start_matches("./").trim_matches('/');
        let anywhere = format!("**/{pattern}");
        let full = if is_anchored || pattern.contains('/') { pattern } else { &anywhere };
        for pattern in [full, &format!("{full}/**")] {
            set.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(invalid)?);
        }
    }
    set.build().map(Some).map_err(invalid)
}

/// Removes a share of the mean chunk vector's direction from a query vector: it is common to all
/// code of the project and says nothing about the query. A vector that would vanish is kept.
fn remove_mean(query: &mut [f32], mean: &[f32], share: f32) {
    if query.len() != mean.len() {
        return;
    }
    let along = share.clamp(0.0, 1.0) * dot(query, mean) / dot(mean, mean);
    let remove = |(value, mean): (&f32, &f32)| value - along * mean;
    let rest: Vec<f32> = query.iter().zip(mean).map(remove).collect();
    if dot(&rest, &rest) > MIN_REMAINDER * dot(query, query) {
        query.copy_from_slice(&rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_removed_by_share() {
        let mean = [0.5, 0.0, 0.0];
        for (share, expected) in
            [(0.0, [0.6, 0.8, 0.0]), (0.5, [0.3, 0.8, 0.0]), (1.0, [0.0, 0.8, 0.0])]
        {
            let mut query = [0.6, 0.8, 0.0];
            remove_mean(&mut query, &mean, share);
            let close = query.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "{share}: {query:?}");
        }
    }

    #[test]
    fn patterns_match_as_in_ignore_rules() {
        let matches = |pattern: &str, path: &str| {
            globs(&[pattern.to_owned()]).unwrap().unwrap().is_match(path)
        };
        for (pattern, path, expected) in [
            ("src", "src/a.rs", true),
            ("src", "lib/src/a.rs", true),
            ("/src", "src/a.rs", true),
            ("/src", "lib/src/a.rs", false),
            ("lib/src", "lib/src/a.rs", true),
            ("*.rs", "lib/a.rs", true),
            ("/*.rs", "lib/a.rs", false),
            ("/app/[[]id[]]", "app/[id]/a.ts", true),
            ("/app/[[]id[]]", "app/i/a.ts", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn vectors_that_would_vanish_are_kept() {
        for (original, mean) in [([1.0, 0.0], [0.3, 0.0]), ([0.6, 0.8], [0.0, 0.0])] {
            let mut query = original;
            remove_mean(&mut query, &mean, 1.0);
            assert_eq!(query, original);
        }
    }
}
