//! The drawers that answer a question: candidates by words and by meaning, and what
//! stands beside the best of them.

use std::collections::{BTreeMap, HashMap};

use isolate::Context;
use isolith_embed::{Likeness, Model, model_name};
use isolith_protocol::{
    CollectionState, MemoryFound, SearchMemory, Searched, StoreError, StoredPassage,
};
use isolith_search::{DrawerCandidate, Mode, RankedDrawer, rank_drawers};
use isolith_segment::exact::floats;
use isolith_segment::text::{
    Analyzer, Bm25Weights, Keywords as Words, Ranking, Tokenizer, query_terms,
};
use isolith_store::Snapshot;
use isolith_types::DrawerHit;

use crate::keywords::Keywords;
use crate::segments::Segments;
use crate::tail::Tails;
use crate::vectors::{Nearest, dot};

/// Passages that are looked at on either side.
const CANDIDATES: u32 = 120;

/// Drawers whose neighbours tell whether neighbours are alike.
const SAMPLE: usize = 48;

/// Fewer pairs than this tell nothing.
const FEWEST_PAIRS: usize = 4;

/// This many of the best drawers have their neighbours looked at, so far away.
const LEADERS: usize = 16;
const REACH: u32 = 2;

/// An answer takes no more room than this, but for its first hit.
const MOST_BYTES: usize = 8 << 20;

pub(crate) struct MemorySearch<'a, 's> {
    pub(crate) snapshot: &'a Snapshot<'s>,
    pub(crate) segments: &'a mut Segments,
    pub(crate) tails: &'a mut Tails,
    pub(crate) model: Model,
    pub(crate) context: &'a Context<'a>,
}

/// How well a passage fits.
#[derive(Debug, Clone, Copy, Default)]
struct Fit {
    keywords: f32,
    vector: f32,
}

/// Passages by words and meaning, and what compares further ones.
struct Fitting {
    by_row: BTreeMap<u64, Fit>,
    /// The nearest in meaning, the nearest first.
    nearest: Vec<u64>,
    likeness: Option<Likeness>,
}

impl MemorySearch<'_, '_> {
    pub(crate) fn run(&mut self, query: &SearchMemory) -> Result<MemoryFound, StoreError> {
        let mut searched = Searched::default();
        let Some(state) = self.snapshot.memory_state()?.filter(|state| state.records > 0) else {
            return Ok(MemoryFound { hits: Vec::new(), degraded: None, searched });
        };
        searched.collection = state.id;
        let (mode, other_model) = usable_mode(&state, query.mode)?;
        let rows = match query.filter.is_empty() {
            true => None,
            false => Some(self.snapshot.rows_of_drawers(&query.filter)?),
        };
        let fitting = self.fitting(&state, query, mode, rows.as_deref(), &mut searched)?;
        let Fitting { by_row, nearest, mut likeness } = fitting;
        let found: Vec<u64> = by_row.keys().copied().collect();
        let passages = self.snapshot.passages(&found, true)?;
        let sample = nearest.iter().take(SAMPLE).filter_map(|row| found.binary_search(row).ok());
        let coherence = self.coherence(sample.filter_map(|at| passages[at].as_ref()))?;
        let mut drawers = Drawers::default();
        drawers.add(passages, &by_row, likeness.as_mut());
        if coherence > 0.0 {
            let beside = self.beside(&drawers, query, rows.as_deref())?;
            drawers.add(self.snapshot.passages(&beside, true)?, &by_row, likeness.as_mut());
        }
        let limit = query.limit as usize;
        let ranked = rank_drawers(&drawers.candidates, coherence, &query.weights, mode, limit);
        let hits = self.hits(ranked, &mut drawers)?;
        Ok(MemoryFound { hits, degraded: searched.degraded().or(other_model), searched })
    }

    /// The passages that fit best by words and by meaning.
    fn fitting(
        &mut self,
        state: &CollectionState,
        query: &SearchMemory,
        mode: Mode,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Fitting, StoreError> {
        let want = CANDIDATES.max(query.limit);
        let mut by_row: BTreeMap<u64, Fit> = BTreeMap::new();
        let mut ranking = None;
        if mode.has_keywords() {
            let terms = query_terms(Analyzer::Prose, &query.text);
            let words = Words { terms, weights: Bm25Weights::MEMORY };
            let mut keywords = Keywords {
                snapshot: self.snapshot,
                segments: self.segments,
                tails: self.tails,
                context: self.context,
            };
            let (best, formula) = keywords.best_apart(state, words, want, rows, searched)?;
            let all = formula.as_ref().map_or(0.0, all_words);
            for (row, score) in best.into_ranked().into_iter().filter(|_| all > 0.0) {
                by_row.entry(row).or_default().keywords = score / all;
            }
            ranking = formula;
        }
        let mut nearest = Vec::new();
        if mode.has_vectors() {
            for (row, nearer) in self.by_meaning(state, &query.text, want, rows, searched)? {
                by_row.entry(row).or_default().vector = nearer;
                nearest.push(row);
            }
        }
        let likeness = (mode == Mode::Hybrid).then(|| {
            let worth = worth_of_words(&query.text, ranking.as_ref());
            self.model.likeness(worth.iter().map(|(word, worth)| (*word, *worth)))
        });
        Ok(Fitting { by_row, nearest, likeness })
    }

    /// Row of the nearest passages, and how much nearer they are than passages are on
    /// average.
    fn by_meaning(
        &mut self,
        state: &CollectionState,
        text: &str,
        want: u32,
        rows: Option<&[u64]>,
        searched: &mut Searched,
    ) -> Result<Vec<(u64, f32)>, StoreError> {
        let Some(vector) = self.model.embed(text) else { return Ok(Vec::new()) };
        let mut nearest = Nearest {
            snapshot: self.snapshot,
            segments: self.segments,
            tails: self.tails,
            context: self.context,
        };
        let mean = nearest.mean(state, searched)?;
        let usual = mean.map_or(0.0, |mean| dot(&mean, &vector));
        let best = nearest.best(state, vector.to_vec(), want, rows, searched)?;
        let nearer = |(row, distance): (u64, f32)| (row, (1.0 - distance - usual).max(0.0));
        Ok(best.into_ranked().into_iter().map(nearer).collect())
    }

    /// How much more alike passages are to what stands next to them than to others.
    fn coherence<'p>(
        &self,
        sample: impl Iterator<Item = &'p StoredPassage>,
    ) -> Result<f32, StoreError> {
        let mut pairs = Vec::new();
        for passage in sample {
            let next = self.snapshot.next_passage(passage)?;
            pairs.extend(next.map(|next| (passage.row, next)));
        }
        if pairs.len() < FEWEST_PAIRS {
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

    /// The rows that stand beside the best drawers and were not found by themselves.
    fn beside(
        &self,
        drawers: &Drawers,
        query: &SearchMemory,
        rows: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        let leaders = rank_drawers(&drawers.candidates, 0.0, &query.weights, query.mode, LEADERS);
        let mut beside = Vec::new();
        for leader in leaders {
            let passage = &drawers.passages[leader.candidate];
            for row in self.snapshot.passages_beside(passage, REACH)? {
                let allowed = rows.is_none_or(|rows| rows.binary_search(&row).is_ok());
                if allowed && !drawers.has(row) {
                    beside.push(row);
                }
            }
        }
        beside.sort_unstable();
        beside.dedup();
        Ok(beside)
    }

    fn hits(
        &self,
        ranked: Vec<RankedDrawer>,
        drawers: &mut Drawers,
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
            if bytes > MOST_BYTES && !hits.is_empty() {
                break;
            }
            hits.push(DrawerHit { drawer, passage, score: ranked.score, why: ranked.why });
        }
        Ok(hits)
    }
}

/// Drawers that may be what is looked for, each with the passage that fits best.
#[derive(Default)]
struct Drawers {
    candidates: Vec<DrawerCandidate>,
    /// As many as candidates.
    passages: Vec<StoredPassage>,
    rows: HashMap<u64, usize>,
    places: HashMap<u64, usize>,
    rooms: HashMap<(String, String), u64>,
}

impl Drawers {
    fn has(&self, row: u64) -> bool {
        self.rows.contains_key(&row)
    }

    fn add(
        &mut self,
        passages: Vec<Option<StoredPassage>>,
        fits: &BTreeMap<u64, Fit>,
        mut likeness: Option<&mut Likeness>,
    ) {
        for passage in passages.into_iter().flatten() {
            let Fit { keywords, vector } = fits.get(&passage.row).copied().unwrap_or_default();
            let text = passage.text.as_deref().unwrap_or_default();
            let likeness = likeness.as_mut().map_or(0.0, |likeness| likeness.of(text));
            let place = self.places.get(&passage.drawer).copied();
            self.rows.insert(passage.row, place.unwrap_or(self.passages.len()));
            let Some(place) = place else {
                let rooms = self.rooms.len() as u64;
                let room = (passage.wing.clone(), passage.room.clone());
                let room = *self.rooms.entry(room).or_insert(rooms);
                let position = passage.position;
                self.places.insert(passage.drawer, self.passages.len());
                self.candidates.push(DrawerCandidate {
                    room,
                    position,
                    keywords,
                    vector,
                    likeness,
                });
                self.passages.push(passage);
                continue;
            };
            // A drawer is as good as the best of its passages in each respect.
            let known = &mut self.candidates[place];
            let better =
                keywords + vector + likeness > known.keywords + known.vector + known.likeness;
            known.keywords = known.keywords.max(keywords);
            known.vector = known.vector.max(vector);
            known.likeness = known.likeness.max(likeness);
            if better {
                self.passages[place] = passage;
            }
        }
    }
}

/// The score of a text that has every word of the question once, about.
fn all_words(ranking: &Ranking) -> f32 {
    let k1 = ranking.keywords().weights.k1;
    ranking.gains().iter().sum::<f32>() / (k1 + 1.0)
}

/// The words of a question, and what each tells about texts that have it: nothing if it
/// is a stop word, all the same if nothing is known of them.
fn worth_of_words<'t>(text: &'t str, ranking: Option<&Ranking>) -> Vec<(&'t str, f32)> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let Some(ranking) = ranking else { return words.map(|word| (word, 1.0)).collect() };
    let terms = ranking.keywords().terms.iter().map(String::as_str);
    let gains: HashMap<&str, f32> = terms.zip(ranking.gains().iter().copied()).collect();
    let mut tokenizer = Tokenizer::new(Analyzer::Prose);
    let mut seen = std::collections::HashSet::new();
    let once = words.filter(|word| seen.insert(*word));
    once.map(|word| {
        let mut worth: f32 = 0.0;
        tokenizer.each(word, &mut |term, _| {
            worth = worth.max(gains.get(term).copied().unwrap_or(0.0));
        });
        (word, worth)
    })
    .collect()
}

/// The mean cosine of vectors with those beside them, less that with the others' ones.
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

/// What can rank, and what is to be said if that is less than was asked for.
fn usable_mode(state: &CollectionState, mode: Mode) -> Result<(Mode, Option<String>), StoreError> {
    let known = state.model.as_deref().unwrap_or("unknown");
    match mode {
        _ if known == model_name() => Ok((mode, None)),
        Mode::Keyword => Ok((mode, None)),
        Mode::Hybrid => {
            let degraded = format!("memory was made with the model {known}: ranked by words alone");
            Ok((Mode::Keyword, Some(degraded)))
        }
        Mode::Vector => Err(StoreError::ModelMismatch {
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
    fn neighbours_that_are_alike_are_told_from_others() {
        let talk = [vec![1.0, 0.0], vec![0.0, 1.0], vec![-1.0, 0.0]];
        assert!(coherence(&talk, &talk) > 0.9);
        let turned = [talk[1].clone(), talk[2].clone(), talk[0].clone()];
        assert!(coherence(&talk, &turned) < 0.0);
    }

    #[test]
    fn words_are_worth_what_they_tell() {
        let all = worth_of_words("Where does Caroline's dog sleep?", None);
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|(_, worth)| *worth == 1.0));
    }
}
