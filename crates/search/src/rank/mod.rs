//! Ranks chunks for a code search.

mod scores;
mod variants;

use std::cmp::Ordering;
use std::collections::HashMap;

use isolith_types::{Symbol, SymbolKind};

use crate::identifiers::{Stemmer, is_name_char};
use crate::paths::{FileRole, FileRoles, PathRoles, stem, superseded};
use crate::{CodeQuery, CodeWeights, DefinitionBoost, Explanation, Penalty, SearchMode};

use scores::Scores;

/// A chunk found by keywords, by vectors, or because it defines an identifier of the query.
#[derive(Debug, Clone, Copy)]
pub struct ChunkCandidate<'c> {
    /// The row of its record.
    pub row: u64,
    /// Index of its file.
    pub file: u32,
    /// Keyword score, not normalized; 0 if keywords did not find it.
    pub keywords: f32,
    /// Similarity of its vector to the query's, minus that of the mean vector; at least 0.
    pub vector: f32,
    /// Share of the query that it contains as a phrase; see [`Phrase`](crate::Phrase).
    pub phrase: f32,
    /// Share of the query's qualified name that a definition in it has; see
    /// [`CodeQuery::qualification`].
    pub qualified: f32,
    /// Number of its first line.
    pub start_line: u32,
    /// The symbols it defines.
    pub symbols: &'c [Symbol],
    /// The name of the enclosing definition.
    pub parent: Option<&'c str>,
}

/// A file that contains candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CandidateFile {
    /// Path relative to the root, with slashes.
    pub path: String,
    /// Whether its text says that it is generated.
    pub generated: bool,
}

/// A definition of an identifier of the query. The ranking needs all of them: the more files
/// define an identifier, the less each definition counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentifierDefinition {
    /// Index of the file; one beyond the end only counts as another definition.
    pub file: u32,
    /// Index in [`CodeQuery::identifiers`].
    pub identifier: usize,
    /// The kind of the defined symbol.
    pub kind: SymbolKind,
}

/// A ranked chunk.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedChunk {
    /// Index of the candidate.
    pub candidate: usize,
    /// The score of the file for its best chunk, the chunk's own score for others; never higher
    /// than that of the previous hit.
    pub score: f32,
    /// The parts of the score.
    pub explanation: Explanation,
    /// Indexes of further candidates in the same file, best first, that are not hits themselves.
    /// Only the best chunk of a file has any.
    pub also: Vec<usize>,
}

/// Maximum number of further places of a hit.
const MAX_ALSO: usize = 3;

/// Returns the best chunk of each file, best file first, followed by the other chunks. Equal
/// scores are ordered by path and line; candidates with a score of 0 are dropped.
pub fn rank_chunks(
    query: &CodeQuery,
    files: &[CandidateFile],
    candidates: &[ChunkCandidate<'_>],
    definitions: &[IdentifierDefinition],
    weights: &CodeWeights,
    mode: SearchMode,
    limit: usize,
) -> Vec<RankedChunk> {
    let mut ranking = Ranking {
        query,
        files,
        candidates,
        scores: Scores::new(files.len(), candidates, weights, mode),
        definitions: definition_boosts(query, files.len(), definitions, weights, mode),
        exact: candidates.iter().map(|it| exact_boost(query, it, weights, mode)).collect(),
        weights,
        mode,
        stemmer: Stemmer::new(),
    };
    let (mut hits, mut rest) = ranking.best_of_each_file();
    hits.truncate(limit);
    if hits.len() < limit {
        let others = rest.split_off(rest.len().min(limit - hits.len()));
        ranking.append(&mut hits, std::mem::replace(&mut rest, others));
    }
    ranking.add_further_places(&mut hits, &rest);
    hits
}

struct Ranking<'a> {
    query: &'a CodeQuery,
    files: &'a [CandidateFile],
    candidates: &'a [ChunkCandidate<'a>],
    scores: Scores,
    /// The definition boosts of each file.
    definitions: Vec<Vec<DefinitionBoost>>,
    /// The exact match boost of each candidate.
    exact: Vec<f32>,
    weights: &'a CodeWeights,
    mode: SearchMode,
    stemmer: Stemmer,
}

impl Ranking<'_> {
    /// The best chunk of each file with the score of the file, and the other chunks, both sorted.
    fn best_of_each_file(&mut self) -> (Vec<RankedChunk>, Vec<RankedChunk>) {
        let files = self.explain_files();
        let mut chunks: Vec<RankedChunk> = Vec::with_capacity(self.candidates.len());
        for (candidate, chunk) in self.candidates.iter().enumerate() {
            if let Some(file) = files.get(chunk.file as usize) {
                let explanation = self.explain_chunk(candidate, file);
                let parent = self.parent_boost(chunk);
                let score =
                    explanation.score() + if explanation.score() > 0.0 { parent } else { 0.0 };
                let also = Vec::new();
                chunks.push(RankedChunk { candidate, score, explanation, also });
            }
        }
        chunks.retain(|chunk| chunk.score > 0.0);
        chunks.sort_by(|a, b| self.order(a, b));
        let mut seen = vec![false; self.files.len()];
        let (mut best, rest): (Vec<_>, Vec<_>) = chunks.into_iter().partition(|chunk| {
            !std::mem::replace(&mut seen[self.candidates[chunk.candidate].file as usize], true)
        });
        for hit in &mut best {
            hit.explanation = files[self.candidates[hit.candidate].file as usize].clone();
            hit.explanation.exact = self.exact[hit.candidate];
            hit.score = hit.explanation.score();
        }
        best.sort_by(|a, b| self.order(a, b));
        (best, rest)
    }

    /// Appends other chunks by their own scores, capped by the lowest score so far.
    fn append(&self, hits: &mut Vec<RankedChunk>, others: Vec<RankedChunk>) {
        let ceiling = hits.last().map_or(0.0, |hit| hit.score);
        hits.extend(
            others.into_iter().map(|hit| RankedChunk { score: hit.score.min(ceiling), ..hit }),
        );
    }

    /// Attaches the chunks that are not hits to the hit of their file.
    fn add_further_places(&self, hits: &mut [RankedChunk], others: &[RankedChunk]) {
        let file = |hit: &RankedChunk| self.candidates[hit.candidate].file;
        let mut hit_of_file: HashMap<u32, &mut RankedChunk> = HashMap::with_capacity(hits.len());
        for hit in hits {
            hit_of_file.entry(file(hit)).or_insert(hit);
        }
        for other in others {
            if let Some(hit) = hit_of_file.get_mut(&file(other))
                && hit.also.len() < MAX_ALSO
            {
                hit.also.push(other.candidate);
            }
        }
    }

    fn explain_files(&mut self) -> Vec<Explanation> {
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let versions = superseded(&paths);
        let mut roles = PathRoles::default();
        let mut files: Vec<Explanation> = (versions.into_iter().enumerate())
            .map(|(file, older_version)| {
                self.explain_file(file, roles.of(paths[file]), older_version)
            })
            .collect();
        self.lower_variants(&paths, &mut files);
        files
    }

    /// `roles` are those of the path; `older_version` is the name of the file's version, if a newer
    /// one exists.
    fn explain_file(
        &mut self,
        file: usize,
        mut roles: FileRoles,
        older_version: Option<&str>,
    ) -> Explanation {
        let CandidateFile { path, generated } = &self.files[file];
        if *generated {
            roles.insert(FileRole::Generated);
        }
        if older_version.is_some_and(|version| !self.query.mentions_name(version)) {
            roles.insert(FileRole::Superseded);
        }
        let max_words = self.weights.stem_words as usize;
        let stem_matches = self.mode.uses_keywords()
            && self.query.matches_stem(stem(path), max_words, &mut self.stemmer);
        let stem_boost = match self.query.is_report() {
            true => self.weights.report_stem,
            false => self.weights.stem,
        };
        let is_mentioned = self.mode.uses_keywords() && self.query.mentions_path(path);
        Explanation {
            keywords: self.scores.file_keywords[file],
            vectors: self.scores.file_vectors[file],
            stem: if stem_matches { sanitized(stem_boost) } else { 0.0 },
            path: if is_mentioned { sanitized(self.weights.path) } else { 0.0 },
            exact: 0.0,
            definitions: self.definitions[file].clone(),
            penalties: self.penalties(path, roles),
            quoted: false,
        }
    }

    /// The score of a single chunk: its own keywords, vector and definitions, and the stem boost
    /// and penalties of its file.
    fn explain_chunk(&self, candidate: usize, file: &Explanation) -> Explanation {
        let symbols = self.candidates[candidate].symbols;
        let defines = |definition: &&DefinitionBoost| {
            symbols.iter().any(|symbol| symbol.name.eq_ignore_ascii_case(&definition.name))
        };
        Explanation {
            keywords: self.scores.chunk_keywords[candidate],
            vectors: self.scores.chunk_vectors[candidate] * self.chunk_vector_factor(),
            stem: file.stem,
            path: file.path,
            exact: self.exact[candidate],
            definitions: file.definitions.iter().filter(defines).cloned().collect(),
            penalties: file.penalties.clone(),
            quoted: false,
        }
    }

    /// A report is about one topic, and its vector says little about the parts of a file.
    fn chunk_vector_factor(&self) -> f32 {
        match self.query.is_report() && self.mode.uses_keywords() {
            true => sanitized(self.weights.report_vectors),
            false => 1.0,
        }
    }

    /// A query that is nothing but a symbol asks for its definition, not for what is inside.
    fn parent_boost(&self, chunk: &ChunkCandidate<'_>) -> f32 {
        let is_mentioned = self.mode.uses_keywords()
            && self.query.symbol_name().is_none()
            && chunk.parent.is_some_and(|parent| self.query.mentions_name(parent));
        if is_mentioned { sanitized(self.weights.parent) } else { 0.0 }
    }

    /// The strongest penalty of each group of roles, unless the query asks for one of the file's
    /// roles in that group.
    fn penalties(&self, path: &str, roles: FileRoles) -> Vec<Penalty> {
        if roles.is_empty() || self.query.mentions_file(path) {
            return Vec::new();
        }
        let requested = self.query.requested_roles();
        let strongest = |group: &&[FileRole]| {
            let present = || group.iter().copied().filter(|&role| roles.contains(role));
            if present().any(|role| requested.contains(role)) {
                return None;
            }
            present()
                .map(|role| Penalty { role, factor: sanitized(self.weights.factor(role)) })
                .min_by(|a, b| a.factor.total_cmp(&b.factor))
        };
        let all = PENALTY_GROUPS.iter().filter_map(strongest);
        all.filter(|penalty| penalty.factor != 1.0).collect()
    }

    fn order(&self, a: &RankedChunk, b: &RankedChunk) -> Ordering {
        let tie_breaker = |hit: &RankedChunk| {
            let candidate = &self.candidates[hit.candidate];
            let path = self.files[candidate.file as usize].path.as_str();
            (path, candidate.file, candidate.start_line, candidate.row, hit.candidate)
        };
        b.score.total_cmp(&a.score).then_with(|| tie_breaker(a).cmp(&tie_breaker(b)))
    }
}

/// Factor for a type that has the name searched for, relative to a function.
const EXACT_TYPE_FACTOR: f32 = 1.2;

/// Factor for a constructor that has the name searched for, relative to another function.
const CONSTRUCTOR_FACTOR: f32 = 0.2;

/// Factor for a partial phrase match.
const PARTIAL_PHRASE_FACTOR: f32 = 0.3;

/// Only one role of each group is penalized.
const PENALTY_GROUPS: [&[FileRole]; 3] = [
    &[FileRole::Test, FileRole::Example, FileRole::Benchmark, FileRole::Docs, FileRole::Data],
    &[FileRole::Compat, FileRole::Superseded],
    &[FileRole::Vendored, FileRole::Generated, FileRole::Entry],
];

/// The boosts of each file for the identifiers that it defines; headings do not count. A file that
/// defines an identifier twice gets the higher boost. The more identifiers a query has, the less
/// each of them counts.
fn definition_boosts(
    query: &CodeQuery,
    files: usize,
    definitions: &[IdentifierDefinition],
    weights: &CodeWeights,
    mode: SearchMode,
) -> Vec<Vec<DefinitionBoost>> {
    let mut all = vec![Vec::new(); files];
    if !mode.uses_keywords() {
        return all;
    }
    let identifiers = query.identifiers().len() as f32;
    for (identifier, name) in query.identifiers().iter().enumerate() {
        let mut boosts: Vec<(u32, f32)> = definitions
            .iter()
            .filter(|it| it.identifier == identifier && it.kind != SymbolKind::Heading)
            .map(|definition| (definition.file, definition_boost(definition.kind, weights)))
            .collect();
        boosts.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        boosts.dedup_by_key(|boost| boost.0);
        let divisor = (boosts.len() as f32 * identifiers).sqrt();
        for (file, boost) in boosts {
            if boost > 0.0
                && let Some(file) = all.get_mut(file as usize)
            {
                let similar = query.is_similar(name);
                file.push(DefinitionBoost { name: name.clone(), boost: boost / divisor, similar });
            }
        }
    }
    all
}

/// Whether a chunk contains the whole query, or defines the symbol that is the query.
pub fn is_exact_match(query: &CodeQuery, chunk: &ChunkCandidate<'_>) -> bool {
    chunk.phrase >= 1.0 || exact_definitions(query, chunk).next().is_some()
}

/// The symbols of a chunk that the whole query names.
fn exact_definitions<'c>(
    query: &'c CodeQuery,
    chunk: &ChunkCandidate<'c>,
) -> impl Iterator<Item = &'c Symbol> {
    let is_named =
        move |symbol: &&Symbol| symbol.kind != SymbolKind::Heading && query.is_named(&symbol.name);
    chunk.symbols.iter().filter(is_named)
}

/// The boost of a chunk that defines the symbol searched for or contains the query as a phrase.
fn exact_boost(
    query: &CodeQuery,
    chunk: &ChunkCandidate<'_>,
    weights: &CodeWeights,
    mode: SearchMode,
) -> f32 {
    if !mode.uses_keywords() {
        return 0.0;
    }
    let factor =
        |symbol: &Symbol| definition_factor(symbol, chunk) * query.name_factor(&symbol.name);
    if let Some(best) = exact_definitions(query, chunk).map(factor).reduce(f32::max) {
        return sanitized(weights.exact_definition) * best * (1.0 + sanitized(chunk.qualified));
    }
    let share = if chunk.phrase < 1.0 { chunk.phrase * PARTIAL_PHRASE_FACTOR } else { 1.0 };
    sanitized(weights.exact) * share
}

/// A class ranks above its constructors, which have the same name.
fn definition_factor(symbol: &Symbol, chunk: &ChunkCandidate<'_>) -> f32 {
    let is_constructor = || {
        let last = |parent: &str| parent.rsplit(|c| !is_name_char(c)).next() == Some(&symbol.name);
        chunk.parent.is_some_and(last)
    };
    match symbol.kind.is_type() {
        true => EXACT_TYPE_FACTOR,
        false if is_constructor() => CONSTRUCTOR_FACTOR,
        false => 1.0,
    }
}

fn definition_boost(kind: SymbolKind, weights: &CodeWeights) -> f32 {
    sanitized(if kind.is_type() { weights.type_definition } else { weights.other_definition })
}

/// Weights and scores are not trusted: NaN, infinities and negative numbers become 0.
fn sanitized(number: f32) -> f32 {
    if number.is_finite() { number.clamp(0.0, 1e6) } else { 0.0 }
}

#[cfg(test)]
mod tests;
