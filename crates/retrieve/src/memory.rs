//! Memory search: candidate drawers by keywords and vectors, and the neighbors of the best.

use std::collections::{BTreeMap, HashMap, HashSet};

use isolate::Context;
use isolith_embed::{Likeness, Model, model_name};
use isolith_protocol::{
    CollectionState, MemoryFound, SearchMemory, Searched, StoreError, StoredPassage,
};
use isolith_search::{DrawerCandidate, MemoryFit, RankedDrawer, SearchMode, rank_drawers};
use isolith_segment::exact::floats;
use isolith_segment::text::{Analyzer, Bm25Weights, Keywords, Ranking, Tokenizer, query_terms};
use isolith_store::Snapshot;
use isolith_types::DrawerHit;

use crate::keywords::KeywordSearch;
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::{VectorSearch, dot};

/// Minimum number of candidate passages by keywords, and by vectors.
const MIN_CANDIDATES: u32 = 120;

/// Maximum number of passages that coherence is measured on.
const MAX_SAMPLE: usize = 48;

/// Coherence is 0 if measured on fewer pairs.
const MIN_PAIRS: usize = 4;

/// The neighbors of this many best drawers become candidates, up to this distance.
const LEADERS: usize = 16;
const NEIGHBOR_DISTANCE: u32 = 2;

/// Maximum size of the hits; the first is always returned.
const MAX_REPLY_BYTES: usize = 8 << 20;

pub(crate) struct MemorySearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) model: Model,
    pub(crate) context: &'a Context<'a>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PassageScores {
    keywords: f32,
    vector: f32,
}

/// The passages found by keywords and vectors.
struct FoundPassages {
    scores: BTreeMap<u64, PassageScores>,
    /// Rows found by vectors, nearest first.
    nearest: Vec<u64>,
    /// Compares words of passages with those of the query.
    likeness: Option<Likeness>,
}

impl MemorySearch<'_, '_> {
    pub(crate) fn run(&mut self, query: &SearchMemory) -> Result<MemoryFound, StoreError> {
        let mut searched = Searched::default();
        let Some(state) = self.snapshot.memory_state()?.filter(|state| state.records > 0) else {
            let (hits, fit) = (Vec::new(), MemoryFit::default());
            return Ok(MemoryFound { hits, fit, weak: true, degraded: None, searched });
        };
        searched.collection = state.id;
        let (mode, other_model) = usable_mode(&state, query.mode)?;
        let rows = match query.filter.is_empty() {
            true => None,
            false => Some(self.snapshot.rows_of_drawers(&query.filter)?),
        };
        let found = self.find_passages(&state, query, mode, rows.as_deref(), &mut searched)?;
        let FoundPassages { scores, nearest, mut likeness } = found;
        let found: Vec<u64> = scores.keys().copied().collect();
        let passages = self.snapshot.passages(&found, true)?;
        let sample =
            nearest.iter().take(MAX_SAMPLE).filter_map(|row| found.binary_search(row).ok());
        let coherence = self.coherence(sample.filter_map(|at| passages[at].as_ref()))?;
        let mut drawers = DrawerCandidates::default();
        drawers.add(passages, &scores, likeness.as_mut());
        if coherence > 0.0 {
            let neighbors = self.neighbors(&drawers, query, rows.as_deref())?;
            drawers.add(self.snapshot.passages(&neighbors, true)?, &scores, likeness.as_mut());
        }
        let limit = query.limit as usize;
        let ranked = rank_drawers(&drawers.candidates, coherence, &query.weights, mode, limit);
        let hits = self.hits(ranked, &mut drawers)?;
        let fit = MemoryFit::of(&drawers.candidates, coherence, &query.weights);
        let weak = hits.is_empty() || fit.is_weak(mode);
        let degraded = searched.degraded().or(other_model);
        Ok(MemoryFound { hits, fit, weak, degraded, searched })
    }

    fn find_passages(
        &mut self,
        state: &CollectionState,
        query: &SearchMemory,
        mode: SearchMode,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<FoundPassages, StoreError> {
        let limit = MIN_CANDIDATES.max(query.limit);
        let mut scores: BTreeMap<u64, PassageScores> = BTreeMap::new();
        let mut ranking = None;
        if mode.uses_keywords() {
            let terms = query_terms(Analyzer::Prose, &query.text);
            let keywords = Keywords { terms, weights: Bm25Weights::MEMORY };
            let mut search = KeywordSearch {
                snapshot: self.snapshot,
                segments: self.segments,
                tails: self.tails,
                context: self.context,
            };
            let best;
            (best, ranking) =
                search.best_with_local_statistics(state, keywords, limit, rows, searched)?;
            let full = ranking.as_ref().map_or(0.0, full_score);
            for (row, score) in best.into_ranked().into_iter().filter(|_| full > 0.0) {
                scores.entry(row).or_default().keywords = score / full;
            }
        }
        let mut nearest = Vec::new();
        if mode.uses_vectors() {
            for (row, score) in self.by_vectors(state, &query.text, limit, rows, searched)? {
                scores.entry(row).or_default().vector = score;
                nearest.push(row);
            }
        }
        let likeness = (mode == SearchMode::Hybrid)
            .then(|| self.model.likeness(word_weights(&query.text, ranking.as_ref())));
        Ok(FoundPassages { scores, nearest, likeness })
    }

    /// Rows of the nearest passages, and their similarity minus that of the mean vector.
    fn by_vectors(
        &mut self,
        state: &CollectionState,
        text: &str,
        limit: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        let Some(vector) = self.model.embed(text) else { return Ok(Vec::new()) };
        let mut search = VectorSearch {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        };
        let mean = search.mean(state, searched)?;
        let baseline = mean.map_or(0.0, |mean| dot(&mean, &vector));
        let best = search.best(state, vector.to_vec(), limit, rows, searched)?;
        let score = |(row, distance): (u64, f32)| (row, (1.0 - distance - baseline).max(0.0));
        Ok(best.into_ranked().into_iter().map(score).collect())
    }

    /// The coherence of the memory, measured on a sample; see [`rank_drawers`].
    fn coherence<'p>(
        &self,
        sample: impl Iterator<Item = &'p StoredPassage>,
    ) -> Result<f32, StoreError> {
        let mut pairs = Vec::new();
        for passage in sample {
            let next = self.snapshot.next_passage(passage)?;
            pairs.extend(next.map(|next| (passage.row, next)));
        }
        if pairs.len() < MIN_PAIRS {
            return Ok(0.0);
        }
        let vectors = |rows: Vec<u64>| {
            let mut vectors = vec![Vec::new(); rows.len()];
            self.snapshot
                .vectors(&rows, &mut |at, _, bytes| vectors[at] = floats(bytes).collect())?;
            Ok::<_, StoreError>(vectors)
        };
        let (own, next) = pairs.into_iter().unzip();
        Ok(coherence(&vectors(own)?, &vectors(next)?))
    }

    /// The rows of passages next to the best drawers that are not candidates yet.
    fn neighbors(
        &self,
        drawers: &DrawerCandidates,
        query: &SearchMemory,
        rows: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        let leaders = rank_drawers(&drawers.candidates, 0.0, &query.weights, query.mode, LEADERS);
        let mut neighbors = Vec::new();
        for leader in leaders {
            let passage = &drawers.passages[leader.candidate];
            for row in self.snapshot.passages_beside(passage, NEIGHBOR_DISTANCE)? {
                let allowed = rows.is_none_or(|rows| rows.binary_search(&row).is_ok());
                if allowed && !drawers.has(row) {
                    neighbors.push(row);
                }
            }
        }
        neighbors.sort_unstable();
        neighbors.dedup();
        Ok(neighbors)
    }

    fn hits(
        &self,
        ranked: Vec<RankedDrawer>,
        drawers: &mut DrawerCandidates,
    ) -> Result<Vec<DrawerHit>, StoreError> {
        let number = |ranked: &RankedDrawer| drawers.passages[ranked.candidate].drawer;
        let numbers: Vec<u64> = ranked.iter().map(number).collect();
        let mut hits = Vec::with_capacity(ranked.len());
        let mut bytes = 0;
        for (ranked, number) in ranked.into_iter().zip(numbers) {
            let drawer = self.snapshot.drawers_by_number(&[number])?.pop().flatten();
            let Some(drawer) = drawer else { continue };
            let passage = drawers.passages[ranked.candidate].text.take().unwrap_or_default();
            bytes += drawer.text.len() + passage.len();
            if bytes > MAX_REPLY_BYTES && !hits.is_empty() {
                break;
            }
            hits.push(DrawerHit { drawer, passage, score: ranked.score, why: ranked.why });
        }
        Ok(hits)
    }
}

/// Candidate drawers, each with its best passage.
#[derive(Default)]
struct DrawerCandidates {
    candidates: Vec<DrawerCandidate>,
    /// The best passage of each candidate.
    passages: Vec<StoredPassage>,
    rows: HashSet<u64>,
    /// Indexes of candidates, by drawer number.
    indexes: HashMap<u64, usize>,
    rooms: HashMap<(String, String), u64>,
}

impl DrawerCandidates {
    fn has(&self, row: u64) -> bool {
        self.rows.contains(&row)
    }

    fn add(
        &mut self,
        passages: Vec<Option<StoredPassage>>,
        scores: &BTreeMap<u64, PassageScores>,
        mut likeness: Option<&mut Likeness>,
    ) {
        for passage in passages.into_iter().flatten() {
            let scores = scores.get(&passage.row).copied().unwrap_or_default();
            let PassageScores { keywords, vector } = scores;
            let text = passage.text.as_deref().unwrap_or_default();
            let likeness = likeness.as_mut().map_or(0.0, |likeness| likeness.of(text));
            self.rows.insert(passage.row);
            let Some(&index) = self.indexes.get(&passage.drawer) else {
                let rooms = self.rooms.len() as u64;
                let room = (passage.wing.clone(), passage.room.clone());
                let room = *self.rooms.entry(room).or_insert(rooms);
                let position = passage.position;
                self.indexes.insert(passage.drawer, self.passages.len());
                let candidate = DrawerCandidate { room, position, keywords, vector, likeness };
                self.candidates.push(candidate);
                self.passages.push(passage);
                continue;
            };
            // A drawer gets the best of each score over its passages.
            let known = &mut self.candidates[index];
            let better =
                keywords + vector + likeness > known.keywords + known.vector + known.likeness;
            known.keywords = known.keywords.max(keywords);
            known.vector = known.vector.max(vector);
            known.likeness = known.likeness.max(likeness);
            if better {
                self.passages[index] = passage;
            }
        }
    }
}

/// The approximate score of a text that contains every term of the query once.
fn full_score(ranking: &Ranking) -> f32 {
    let k1 = ranking.keywords().weights.k1;
    ranking.gains().iter().sum::<f32>() / (k1 + 1.0)
}

/// The words of a query with their term weights: 0 for stop words, 1 for all without a ranking.
fn word_weights<'t>(text: &'t str, ranking: Option<&Ranking>) -> Vec<(&'t str, f32)> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let Some(ranking) = ranking else { return words.map(|word| (word, 1.0)).collect() };
    let terms = ranking.keywords().terms.iter().map(String::as_str);
    let gains: HashMap<&str, f32> = terms.zip(ranking.gains().iter().copied()).collect();
    let mut tokenizer = Tokenizer::new(Analyzer::Prose);
    let mut seen = HashSet::new();
    let mut weights = Vec::new();
    for word in words.filter(|word| seen.insert(*word)) {
        let mut weight: f32 = 0.0;
        tokenizer.for_each(word, &mut |term, _| {
            weight = weight.max(gains.get(term).copied().unwrap_or(0.0));
        });
        weights.push((word, weight));
    }
    weights
}

/// The mean cosine of vectors with their own neighbors, minus that with the others' neighbors.
fn coherence(own: &[Vec<f32>], next: &[Vec<f32>]) -> f32 {
    let count = own.len() as f32;
    let paired: f32 = own.iter().zip(next).map(|(own, next)| dot(own, next)).sum();
    let sum = |vectors: &[Vec<f32>]| {
        let mut sum = vec![0.0; vectors.first().map_or(0, Vec::len)];
        for vector in vectors {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        }
        sum
    };
    let others = dot(&sum(own), &sum(next)) - paired;
    paired / count - others / (count * (count - 1.0))
}

/// Falls back to keywords if memory has vectors of another model, and says so.
fn usable_mode(
    state: &CollectionState,
    mode: SearchMode,
) -> Result<(SearchMode, Option<String>), StoreError> {
    let known = state.model.as_deref().unwrap_or("unknown");
    match mode {
        _ if known == model_name() => Ok((mode, None)),
        SearchMode::Keyword => Ok((mode, None)),
        SearchMode::Hybrid => {
            let degraded =
                format!("memory was embedded with model {known}: ranked by keywords only");
            Ok((SearchMode::Keyword, Some(degraded)))
        }
        SearchMode::Vector => Err(StoreError::ModelMismatch {
            name: state.name.clone(),
            found: known.to_owned(),
            asked: model_name().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_neighbors_give_positive_coherence() {
        let vectors = [vec![1.0, 0.0], vec![0.0, 1.0], vec![-1.0, 0.0]];
        assert!(coherence(&vectors, &vectors) > 0.9);
        let rotated = [vectors[1].clone(), vectors[2].clone(), vectors[0].clone()];
        assert!(coherence(&vectors, &rotated) < 0.0);
    }

    #[test]
    fn words_have_equal_weights_without_a_ranking() {
        let all = word_weights("Where does Caroline's dog sleep?", None);
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|(_, weight)| *weight == 1.0));
    }
}
