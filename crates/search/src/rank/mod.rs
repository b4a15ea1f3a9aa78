//! From candidates to hits.

mod files;

use std::cmp::Ordering;

use isolith_types::{Symbol, SymbolKind};

use crate::paths::{PathRoles, Role, roles, stem};
use crate::words::Stemmer;
use crate::{Defined, Mode, Penalty, Question, Weights, Why};

use files::{Shares, file_shares};

/// A chunk that was found by keywords, by vectors, by both, or for what it defines.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Its number in the store.
    pub row: u64,
    /// Which of the files it is in.
    pub file: u32,
    /// Its keyword score as it came; 0 if keywords did not find it.
    pub keywords: f32,
    /// How much nearer to the question it is than the average chunk; 0 if it is not.
    pub vector: f32,
    /// How much of the query's words it has in one run, from 0 to 1; see [`Phrase::share_in`].
    ///
    /// [`Phrase::share_in`]: crate::Phrase::share_in
    pub phrase: f32,
    /// Its first line.
    pub start_line: u32,
    /// What it defines.
    pub symbols: &'c [Symbol],
}

/// A file that has candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFacts {
    /// Relative to its root, with slashes.
    pub path: String,
    /// Whether it says of itself that a program wrote it.
    pub generated: bool,
}

/// A file that defines a name of the question. All files that do are needed, so that a
/// name that is defined everywhere counts little; those without candidates are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Which file, of those that were given. One that is not among them only counts.
    pub file: u32,
    /// Which of [`Question::identifiers`].
    pub identifier: usize,
    /// What it is defined as.
    pub kind: SymbolKind,
}

/// A hit.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Which candidate.
    pub candidate: usize,
    /// Its score: that of its file for the first chunk of a file, its own for others, but
    /// never higher than the hit's before it.
    pub score: f32,
    /// Which of the chunk's symbols has most to do with the question.
    pub symbol: Option<usize>,
    /// How the score came about.
    pub why: Why,
}

/// Ranks candidates: first the best chunk of each file, files in order, then the other
/// chunks. What is equal goes by path and line; what nothing speaks for is left out.
pub fn rank(
    question: &Question,
    files: &[FileFacts],
    candidates: &[Candidate<'_>],
    definitions: &[Definition],
    weights: &Weights,
    mode: Mode,
    limit: usize,
) -> Vec<Ranked> {
    let mut ranking = Ranking {
        question,
        files,
        candidates,
        shares: file_shares(files.len(), candidates, weights, mode),
        defined: defined(question, files.len(), definitions, weights, mode),
        exact: candidates.iter().map(|it| exact(question, it, weights, mode)).collect(),
        weights,
        mode,
        stemmer: Stemmer::new(),
    };
    let (mut hits, rest) = ranking.best_of_each_file();
    hits.truncate(limit);
    if hits.len() < limit {
        ranking.append_rest(&mut hits, rest, limit);
    }
    for hit in &mut hits {
        hit.symbol = ranking.best_symbol(candidates[hit.candidate].symbols);
    }
    hits
}

struct Ranking<'a> {
    question: &'a Question,
    files: &'a [FileFacts],
    candidates: &'a [Candidate<'a>],
    shares: Shares,
    /// What each file defines of the question.
    defined: Vec<Vec<Defined>>,
    /// What each candidate gets for having the query's own words.
    exact: Vec<f32>,
    weights: &'a Weights,
    mode: Mode,
    stemmer: Stemmer,
}

impl Ranking<'_> {
    /// The best chunk of each file, in order, and the others with their own reasons.
    fn best_of_each_file(&mut self) -> (Vec<Ranked>, Vec<Ranked>) {
        let reasons: Vec<Why> = (0..self.files.len()).map(|file| self.why_file(file)).collect();
        let mut chunks: Vec<Ranked> = Vec::with_capacity(self.candidates.len());
        for (candidate, facts) in self.candidates.iter().enumerate() {
            if let Some(file) = reasons.get(facts.file as usize) {
                let why = self.why_chunk(candidate, file);
                let score = why.score();
                chunks.push(Ranked { candidate, score, symbol: None, why });
            }
        }
        chunks.sort_by(|a, b| self.order(a, b));
        let mut seen = vec![false; self.files.len()];
        let (mut best, rest): (Vec<_>, Vec<_>) = chunks.into_iter().partition(|chunk| {
            !std::mem::replace(&mut seen[self.candidates[chunk.candidate].file as usize], true)
        });
        for hit in &mut best {
            hit.why = reasons[self.candidates[hit.candidate].file as usize].clone();
            hit.why.exact = self.exact[hit.candidate];
            hit.score = hit.why.score();
        }
        best.retain(|hit| hit.score > 0.0);
        best.sort_by(|a, b| self.order(a, b));
        (best, rest)
    }

    /// The others follow by their own scores, none of them above what is shown already.
    fn append_rest(&self, hits: &mut Vec<Ranked>, rest: Vec<Ranked>, limit: usize) {
        let ceiling = hits.last().map_or(0.0, |hit| hit.score);
        let missing = limit - hits.len();
        let rest = rest.into_iter().filter(|hit| hit.score > 0.0).take(missing);
        hits.extend(rest.map(|hit| Ranked { score: hit.score.min(ceiling), ..hit }));
    }

    fn why_file(&mut self, file: usize) -> Why {
        let FileFacts { path, generated } = &self.files[file];
        let mut roles = roles(path);
        if *generated {
            roles.insert(Role::Generated);
        }
        let most = self.weights.stem_words as usize;
        let named =
            self.mode.has_keywords() && self.question.has_run(stem(path), most, &mut self.stemmer);
        Why {
            keywords: self.shares.keywords[file],
            vectors: self.shares.vectors[file],
            stem: if named { sound(self.weights.stem) } else { 0.0 },
            exact: 0.0,
            definitions: self.defined[file].clone(),
            penalties: self.penalties(path, roles),
        }
    }

    /// A chunk by itself: its own shares, the names that it defines itself, and what is
    /// said of its file.
    fn why_chunk(&self, candidate: usize, file: &Why) -> Why {
        let symbols = self.candidates[candidate].symbols;
        let defines = |defined: &&Defined| {
            symbols.iter().any(|symbol| symbol.name.eq_ignore_ascii_case(&defined.name))
        };
        Why {
            keywords: self.shares.chunk_keywords[candidate],
            vectors: self.shares.chunk_vectors[candidate],
            stem: file.stem,
            exact: self.exact[candidate],
            definitions: file.definitions.iter().filter(defines).cloned().collect(),
            penalties: file.penalties.clone(),
        }
    }

    /// One factor for each group of roles, the strongest, unless the question asks for
    /// one of the file's roles in it.
    fn penalties(&self, path: &str, roles: PathRoles) -> Vec<Penalty> {
        if roles.is_empty() || self.question.names_file(path) {
            return Vec::new();
        }
        let asked = self.question.asked();
        let strongest = |group: &&[Role]| {
            let has = || group.iter().copied().filter(|&role| roles.has(role));
            if has().any(|role| asked.has(role)) {
                return None;
            }
            has()
                .map(|role| Penalty { role, factor: sound(self.weights.factor(role)) })
                .min_by(|a, b| a.factor.total_cmp(&b.factor))
        };
        let all = GROUPS.iter().filter_map(strongest);
        all.filter(|penalty| penalty.factor != 1.0).collect()
    }

    fn best_symbol(&mut self, symbols: &[Symbol]) -> Option<usize> {
        let mut best = None;
        let mut highest = -1.0;
        for (index, symbol) in symbols.iter().enumerate() {
            let likeness = self.question.likeness(&symbol.name, &mut self.stemmer);
            if likeness > highest {
                (best, highest) = (Some(index), likeness);
            }
        }
        best
    }

    fn order(&self, a: &Ranked, b: &Ranked) -> Ordering {
        let place = |hit: &Ranked| {
            let candidate = &self.candidates[hit.candidate];
            let path = self.files[candidate.file as usize].path.as_str();
            (path, candidate.file, candidate.start_line, candidate.row, hit.candidate)
        };
        b.score.total_cmp(&a.score).then_with(|| place(a).cmp(&place(b)))
    }
}

/// What a type that has the wanted name is worth, compared with a function.
const TYPE_FIRST: f32 = 1.2;

/// What nearly all of a phrase is worth, compared with all of it.
const PARTIAL_PHRASE: f32 = 0.3;

/// Roles that are penalised together, once.
const GROUPS: [&[Role]; 3] = [
    &[Role::Test, Role::Example, Role::Benchmark, Role::Docs, Role::Data],
    &[Role::Compat],
    &[Role::Vendored, Role::Generated, Role::Entry],
];

/// What each file gets for the names of the question that it defines: the more files do,
/// the less. Headings define nothing. A file that defines a name twice gets the better of both.
fn defined(
    question: &Question,
    files: usize,
    definitions: &[Definition],
    weights: &Weights,
    mode: Mode,
) -> Vec<Vec<Defined>> {
    let mut defined = vec![Vec::new(); files];
    if !mode.has_keywords() {
        return defined;
    }
    for (identifier, name) in question.identifiers().iter().enumerate() {
        let mut boosts: Vec<(u32, f32)> = definitions
            .iter()
            .filter(|it| it.identifier == identifier && it.kind != SymbolKind::Heading)
            .map(|definition| (definition.file, definition_boost(definition.kind, weights)))
            .collect();
        boosts.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        boosts.dedup_by_key(|boost| boost.0);
        let share = (boosts.len() as f32).sqrt();
        for (file, boost) in boosts {
            if boost > 0.0
                && let Some(defined) = defined.get_mut(file as usize)
            {
                defined.push(Defined { name: name.clone(), boost: boost / share });
            }
        }
    }
    defined
}

/// What a chunk gets for defining the one name that is looked for, or for having the words of
/// the query in their order. Part of a phrase says much less than all of it.
fn exact(question: &Question, chunk: &Candidate<'_>, weights: &Weights, mode: Mode) -> f32 {
    if !mode.has_keywords() {
        return 0.0;
    }
    if let Some(name) = question.wanted_name() {
        let named = |symbol: &&Symbol| symbol.name == name && symbol.kind != SymbolKind::Heading;
        // A class comes before its constructors, which have its name.
        let boost = |symbol: &Symbol| if symbol.kind.is_type() { TYPE_FIRST } else { 1.0 };
        let best = chunk.symbols.iter().filter(named).map(boost).reduce(f32::max);
        if let Some(best) = best {
            return sound(weights.exact_definition) * best;
        }
    }
    let share = if chunk.phrase < 1.0 { chunk.phrase * PARTIAL_PHRASE } else { 1.0 };
    sound(weights.exact) * share
}

fn definition_boost(kind: SymbolKind, weights: &Weights) -> f32 {
    if kind.is_type() { sound(weights.type_definition) } else { sound(weights.other_definition) }
}

/// A number that can be added and compared, whatever came.
fn sound(number: f32) -> f32 {
    if number.is_finite() { number.clamp(0.0, 1e6) } else { 0.0 }
}

#[cfg(test)]
mod tests;
