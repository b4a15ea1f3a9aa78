//! The code that answers a question: candidates by words and by meaning, ranked by
//! file and chunk.

use std::collections::{BTreeMap, HashMap};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use isolate::Context;
use isolith_embed::{Model, model_name};
use isolith_protocol::{
    ChunkFilter as StoredFilter, CodeFound, CodeScope, CollectionState, FileState, FoundChunk,
    SearchCode, Searched, StoreError, StoredChunk,
};
use isolith_search::{
    Candidate, Definition, FileFacts, Mode, Phrase, Question, Ranked, Role, rank, roles,
};
use isolith_segment::exact::floats;
use isolith_segment::text::{Analyzer, FieldWeight, Keywords as Words, field};
use isolith_store::Snapshot;
use isolith_types::{Degraded, Hint};

use crate::keywords::Keywords;
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::{Nearest, dot};

/// Chunks that are looked at on either side before files are ranked.
const CANDIDATES: u32 = 200;

/// Chunks that are looked at for the definitions of one name.
const DEFINING: u32 = 200;

/// Chunks in which the query's words are looked for as they stand: those with at least this
/// share of the best keyword score, and at most so many.
const PHRASE_SCORE: f32 = 0.4;
const PHRASE_CHUNKS: usize = 48;

/// The share of a question's square that has to be left once it is set apart; below, it
/// is what rounding left.
const LEAST_APART: f32 = 1e-6;

pub(crate) struct CodeSearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) model: Model,
    pub(crate) context: &'a Context<'a>,
}

/// Chunks by row, as the truth has them, and their files.
#[derive(Default)]
struct Loaded {
    chunks: HashMap<u64, StoredChunk>,
    files: Vec<FileState>,
    /// The place of a file's number in `files`.
    places: HashMap<u64, u32>,
}

/// What found each row: words, meaning, or neither if it is there for its name.
struct Scores(BTreeMap<u64, (f32, f32)>);

impl Scores {
    fn of(
        by_words: &[(u64, f32)],
        by_meaning: &[(u64, f32)],
        by_name: impl Iterator<Item = u64>,
    ) -> Self {
        let mut scores: BTreeMap<u64, (f32, f32)> = BTreeMap::new();
        by_words.iter().for_each(|(row, score)| scores.entry(*row).or_default().0 = *score);
        by_meaning.iter().for_each(|(row, score)| scores.entry(*row).or_default().1 = *score);
        for row in by_name {
            scores.entry(row).or_default();
        }
        Self(scores)
    }
}

impl CodeSearch<'_, '_> {
    pub(crate) fn run(&mut self, query: &SearchCode) -> Result<CodeFound, StoreError> {
        let Some(state) = self.snapshot.code_state()?.filter(|state| state.records > 0) else {
            let (hits, roots, searched) = (Vec::new(), Vec::new(), Searched::default());
            return Ok(CodeFound { hits, degraded: None, searched, indexed: false, roots });
        };
        let mut searched = Searched { collection: state.id, ..Searched::default() };
        let (mode, other_model) = usable_mode(&state, query)?;
        let rows = self.rows(&state, &query.filter, &mut searched)?;
        let question = Question::of(&query.text);
        let by_words = match mode {
            Mode::Vector => Vec::new(),
            _ => self.by_words(&state, query, rows.as_deref(), &mut searched)?,
        };
        let by_meaning = match mode {
            Mode::Keyword => Vec::new(),
            _ => self.by_meaning(&state, query, rows.as_deref(), &mut searched)?,
        };
        let defining = self.defining(&state, &question, rows.as_deref(), &mut searched)?;
        let mut loaded = Loaded::default();
        let found = by_words.iter().chain(&by_meaning).map(|(row, _)| *row);
        loaded.load(self.snapshot, found.chain(defining.iter().map(|(row, _)| *row)))?;
        let definitions = loaded.definitions(&defining, &question);
        let defining = definitions.iter().map(|(row, _)| *row);
        let found = Scores::of(&by_words, &by_meaning, defining);
        let mut candidates = loaded.candidates(&found, query.filter.except.as_ref());
        self.compare_phrase(&query.text, &by_words, &mut candidates)?;
        let definitions: Vec<Definition> = definitions.into_iter().map(|(_, it)| it).collect();
        let facts: Vec<FileFacts> = loaded.files.iter().map(facts).collect();
        let limit = query.limit as usize;
        let ranked =
            rank(&question, &facts, &candidates, &definitions, &query.weights, mode, limit);
        let rows: Vec<u64> = ranked.iter().map(|it| candidates[it.candidate].row).collect();
        let texts = self.snapshot.chunks(&rows, true)?;
        let hits = ranked.into_iter().zip(texts);
        let hits = hits.filter_map(|(ranked, chunk)| loaded.hit(ranked, chunk?)).collect();
        let degraded = searched.degraded().map(|why| Degraded { why, hint: None }).or(other_model);
        let roots = self.snapshot.root_places()?;
        Ok(CodeFound { hits, degraded, searched, indexed: true, roots })
    }

    /// The rows that a filter leaves; none if it leaves all.
    fn rows(
        &mut self,
        state: &CollectionState,
        filter: &CodeScope,
        searched: &mut Searched,
    ) -> Result<Option<Vec<u64>>, StoreError> {
        if !filter.picks() {
            return Ok(None);
        }
        let globs = globs(&filter.paths)?;
        let stored = StoredFilter {
            roots: filter.roots.clone(),
            languages: filter.languages.clone(),
            kinds: filter.kinds.clone(),
            changed_since: filter.since,
        };
        let tests = filter.tests;
        let mut rows = self.snapshot.code_rows(&stored, &|path, _generated| {
            globs.as_ref().is_none_or(|globs| globs.is_match(path))
                && tests.is_none_or(|tests| roles(path).has(Role::Test) == tests)
        })?;
        if let Some(name) = &filter.symbol {
            let defining = self.rows_defining(state, name, searched)?;
            rows.retain(|row| defining.binary_search(row).is_ok());
        }
        Ok(Some(rows))
    }

    /// Row and score of the chunks that fit the words best.
    fn by_words(
        &mut self,
        state: &CollectionState,
        query: &SearchCode,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        let words = Words::of(Analyzer::Code, &query.text, query.weights.stem_keywords);
        let want = CANDIDATES.max(query.limit);
        let best = self.keywords().best(state, words, want, rows, searched)?;
        Ok(best.into_ranked())
    }

    /// Row and score of the chunks nearest in meaning to what sets the question apart:
    /// how much nearer they are than chunks are on average.
    fn by_meaning(
        &mut self,
        state: &CollectionState,
        query: &SearchCode,
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
        let mut nearest = Nearest {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        };
        let mut usual = 0.0;
        if let Some(mean) = nearest.mean(state, searched)? {
            set_apart(&mut vector, &mean, query.weights.common);
            usual = dot(&mean, &vector) / dot(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
        }
        let want = CANDIDATES.max(query.limit);
        let best = nearest.best(state, vector, want, rows, searched)?;
        let nearer = |(row, distance): (u64, f32)| (row, (1.0 - distance - usual).max(0.0));
        Ok(best.into_ranked().into_iter().map(nearer).collect())
    }

    /// Looks for the query's words as they stand, in the chunks that have most of them.
    fn compare_phrase(
        &self,
        query: &str,
        by_words: &[(u64, f32)],
        candidates: &mut [Candidate<'_>],
    ) -> Result<(), StoreError> {
        let phrase = Phrase::of(query);
        let Some(&(_, highest)) = by_words.first().filter(|_| !phrase.is_empty()) else {
            return Ok(());
        };
        let near = by_words.iter().take_while(|(_, score)| *score >= highest * PHRASE_SCORE);
        let rows: Vec<u64> = near.map(|(row, _)| *row).take(PHRASE_CHUNKS).collect();
        let mut shares: HashMap<u64, f32> = HashMap::with_capacity(rows.len());
        for chunk in self.snapshot.chunks(&rows, true)?.into_iter().flatten() {
            shares.insert(chunk.row, phrase.share_in(chunk.text.as_deref().unwrap_or_default()));
        }
        for candidate in candidates {
            candidate.phrase = shares.get(&candidate.row).copied().unwrap_or(0.0);
        }
        Ok(())
    }

    /// Rows that may define a name that the question has, with the name's place.
    fn defining(
        &mut self,
        state: &CollectionState,
        question: &Question,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, usize)>, StoreError> {
        let mut found = Vec::new();
        for (at, name) in question.identifiers().iter().enumerate() {
            let best = self.keywords().best(state, names(name), DEFINING, rows, searched)?;
            found.extend(best.into_ranked().into_iter().map(|(row, _)| (row, at)));
        }
        Ok(found)
    }

    /// The rows of chunks that define a name, ascending.
    fn rows_defining(
        &mut self,
        state: &CollectionState,
        name: &str,
        searched: &mut Searched,
    ) -> Result<Vec<u64>, StoreError> {
        let every = u32::try_from(state.records).unwrap_or(u32::MAX);
        let best = self.keywords().best(state, names(name), every, None, searched)?;
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

    fn keywords(&mut self) -> Keywords<'_, '_> {
        Keywords {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        }
    }
}

/// A name as it is looked for among definitions.
fn names(name: &str) -> Words {
    let mut words = Words::of(Analyzer::Code, name, 0.0);
    for at in [field::BODY, field::STEM, field::FOLDERS] {
        words.weights.fields[at] = FieldWeight::NOTHING;
    }
    words
}

/// What can rank, and what is to be said if that is less than was asked for.
fn usable_mode(
    state: &CollectionState,
    query: &SearchCode,
) -> Result<(Mode, Option<Degraded>), StoreError> {
    let known = state.model.as_deref().unwrap_or("unknown");
    match query.mode {
        _ if known == model_name() => Ok((query.mode, None)),
        Mode::Keyword => Ok((Mode::Keyword, None)),
        Mode::Hybrid if query.vector.is_none() => {
            let why = format!("the index was made with the model {known}: ranked by words alone");
            Ok((Mode::Keyword, Some(Degraded { why, hint: Some(Hint::ReembedIndex) })))
        }
        _ => Err(StoreError::ModelMismatch {
            name: state.name.clone(),
            found: known.to_owned(),
            asked: model_name().to_owned(),
        }),
    }
}

impl Loaded {
    fn load(
        &mut self,
        snapshot: &Snapshot<'_>,
        rows: impl Iterator<Item = u64>,
    ) -> Result<(), StoreError> {
        let mut rows: Vec<u64> = rows.collect();
        rows.sort_unstable();
        rows.dedup();
        let chunks = snapshot.chunks(&rows, false)?;
        let mut ids: Vec<u64> = chunks.iter().flatten().map(|chunk| chunk.file).collect();
        ids.sort_unstable();
        ids.dedup();
        for file in snapshot.files_by_id(&ids)?.into_iter().flatten() {
            self.places.insert(file.id, self.files.len() as u32);
            self.files.push(file);
        }
        let of_files = chunks.into_iter().flatten();
        let of_files = of_files.filter(|chunk| self.places.contains_key(&chunk.file));
        self.chunks = of_files.map(|chunk| (chunk.row, chunk)).collect();
        Ok(())
    }

    fn candidates(
        &self,
        scores: &Scores,
        except: Option<&(u64, String, u32)>,
    ) -> Vec<Candidate<'_>> {
        let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(scores.0.len());
        for (&row, &(keywords, vector)) in &scores.0 {
            let Some(chunk) = self.chunks.get(&row) else { continue };
            let file = self.places[&chunk.file];
            if except.is_some_and(|except| self.is(chunk, file, except)) {
                continue;
            }
            candidates.push(Candidate {
                row,
                file,
                keywords,
                vector,
                phrase: 0.0,
                start_line: chunk.start_line,
                symbols: &chunk.symbols,
            });
        }
        candidates
    }

    /// Whether this is the chunk at a line of a file.
    fn is(&self, chunk: &StoredChunk, file: u32, place: &(u64, String, u32)) -> bool {
        let file = &self.files[file as usize];
        let (root, path, line) = place;
        file.root == *root
            && file.path == *path
            && (chunk.start_line..=chunk.end_line).contains(line)
    }

    /// The chunks that do define a name of the question.
    fn definitions(
        &self,
        defining: &[(u64, usize)],
        question: &Question,
    ) -> Vec<(u64, Definition)> {
        let mut definitions = Vec::new();
        for (row, identifier) in defining {
            let Some(chunk) = self.chunks.get(row) else { continue };
            let name = &question.identifiers()[*identifier];
            let named =
                chunk.symbols.iter().filter(|symbol| symbol.name.eq_ignore_ascii_case(name));
            let file = self.places[&chunk.file];
            definitions.extend(named.map(|symbol| {
                (*row, Definition { file, identifier: *identifier, kind: symbol.kind })
            }));
        }
        definitions
    }

    fn hit(&self, ranked: Ranked, chunk: StoredChunk) -> Option<FoundChunk> {
        let file = &self.files[*self.places.get(&chunk.file)? as usize];
        Some(FoundChunk {
            root: file.root,
            path: file.path.clone(),
            language: file.language.clone(),
            version: file.version,
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            kind: chunk.kind,
            symbol: ranked.symbol.and_then(|at| chunk.symbols.get(at).cloned()),
            parent: chunk.parent,
            signature: chunk.signature,
            text: chunk.text.unwrap_or_default(),
            score: ranked.score,
            why: ranked.why,
        })
    }
}

fn facts(file: &FileState) -> FileFacts {
    FileFacts { path: file.path.clone(), generated: file.generated }
}

/// As in ignore rules, a pattern without a slash means names at any depth, and one with a slash
/// at its beginning is relative to the root.
fn globs(patterns: &[String]) -> Result<Option<GlobSet>, StoreError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let bad = |error: globset::Error| StoreError::Invalid(format!("the path pattern: {error}"));
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let is_anchored = pattern.starts_with('/');
        let pattern = pattern.trim_start_matches("./").trim_matches('/');
        let anywhere = format!("**/{pattern}");
        let full = if is_anchored || pattern.contains('/') { pattern } else { &anywhere };
        for pattern in [full, &format!("{full}/**")] {
            set.add(GlobBuilder::new(pattern).literal_separator(true).build().map_err(bad)?);
        }
    }
    set.build().map(Some).map_err(bad)
}

/// Takes a share of what all chunks have in common out of a question: chunks are like each
/// other for being code of one project, which says nothing of what is asked. A question
/// that is about nothing else stays as it is.
fn set_apart(question: &mut [f32], mean: &[f32], share: f32) {
    if question.len() != mean.len() {
        return;
    }
    let along = share.clamp(0.0, 1.0) * dot(question, mean) / dot(mean, mean);
    let apart = |(value, mean): (&f32, &f32)| value - along * mean;
    let rest: Vec<f32> = question.iter().zip(mean).map(apart).collect();
    if dot(&rest, &rest) > LEAST_APART * dot(question, question) {
        question.copy_from_slice(&rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_lose_what_all_chunks_share() {
        let mean = [0.5, 0.0, 0.0];
        for (share, expected) in
            [(0.0, [0.6, 0.8, 0.0]), (0.5, [0.3, 0.8, 0.0]), (1.0, [0.0, 0.8, 0.0])]
        {
            let mut question = [0.6, 0.8, 0.0];
            set_apart(&mut question, &mean, share);
            let near = question.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(near, "{share}: {question:?}");
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
    fn questions_that_would_lose_all_stay() {
        for (question, mean) in [([1.0, 0.0], [0.3, 0.0]), ([0.6, 0.8], [0.0, 0.0])] {
            let mut set = question;
            set_apart(&mut set, &mean, 1.0);
            assert_eq!(set, question);
        }
    }
}
