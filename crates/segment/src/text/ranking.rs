//! BM25F, for segments and the tail.
//!
//! A term's score in a record is `idf · (k1 + 1) · x / (k1 + x)`, where `x` is the sum of
//! `weight · tf / (1 − b + b · length / mean length)` over the fields. With only the body, this
//! is BM25. Lengths are rounded as in segments, and sums have a fixed order, so that a record's
//! score does not depend on where it is stored.

use isolith_text::{Analyzer, query_terms};
use serde::{Deserialize, Serialize};
use tantivy::fieldnorm::FieldNormReader;

use super::fields::{FIELDS, PerField, TermCounts, field};

/// A keyword query: its terms and the weights of the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keywords {
    /// Distinct terms; see [`query_terms`].
    pub terms: Vec<String>,
    /// How occurrences count.
    pub weights: Bm25Weights,
}

impl Keywords {
    /// A query with the default weights of its analyzer. `file_name` is for code: see
    /// [`Bm25Weights::code`].
    pub fn of(analyzer: Analyzer, text: &str, file_name: f32) -> Self {
        let weights = match analyzer {
            Analyzer::Code => Bm25Weights::code(file_name),
            Analyzer::Prose => Bm25Weights::PROSE,
        };
        Self { terms: query_terms(analyzer, text), weights }
    }
}

/// The parameters of BM25F.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bm25Weights {
    /// Term frequency saturation: the higher, the more further occurrences count.
    pub k1: f32,
    /// Indexed by the constants in [`field`].
    pub fields: PerField<FieldWeight>,
}

/// How occurrences of a term in one field count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FieldWeight {
    /// The weight relative to other fields; 0 ignores the field.
    pub weight: f32,
    /// Length normalization, from 0 to 1.
    pub b: f32,
    /// Whether only the first occurrence counts.
    pub once: bool,
}

impl Bm25Weights {
    /// BM25 over the body only.
    pub const PROSE: Self = Self {
        k1: 1.2,
        fields: NamedWeights { body: FieldWeight::new(1.0, 0.75), ..NamedWeights::NOTHING }
            .in_order(),
    };

    /// For memory, chosen by evaluation: labels and dates count in addition to the text.
    pub const MEMORY: Self = Self {
        k1: 1.2,
        fields: NamedWeights {
            body: FieldWeight::new(1.0, 0.5),
            symbols: FieldWeight::once(0.7),
            folders: FieldWeight::once(0.7),
            ..NamedWeights::NOTHING
        }
        .in_order(),
    };

    /// For code, chosen by evaluation: symbols and paths count in addition to the body.
    /// `file_name` is the weight of the file name, which is defined with related weights in
    /// `isolith_search::CodeWeights`.
    pub const fn code(file_name: f32) -> Self {
        let fields = NamedWeights {
            body: FieldWeight::new(1.0, 0.5),
            symbols: FieldWeight::new(1.0, 0.0),
            stem: FieldWeight::new(file_name, 0.0),
            folders: FieldWeight::once(1.0),
        };
        Self { k1: 1.2, fields: fields.in_order() }
    }
}

impl FieldWeight {
    /// Ignores the field.
    pub const NOTHING: Self = Self::new(0.0, 0.0);

    const fn new(weight: f32, b: f32) -> Self {
        Self { weight, b, once: false }
    }

    const fn once(weight: f32) -> Self {
        Self { weight, b: 0.0, once: true }
    }
}

/// The weights of all fields, by name.
struct NamedWeights {
    body: FieldWeight,
    symbols: FieldWeight,
    stem: FieldWeight,
    folders: FieldWeight,
}

impl NamedWeights {
    const NOTHING: Self = Self {
        body: FieldWeight::NOTHING,
        symbols: FieldWeight::NOTHING,
        stem: FieldWeight::NOTHING,
        folders: FieldWeight::NOTHING,
    };

    const fn in_order(self) -> PerField<FieldWeight> {
        let mut fields = [FieldWeight::NOTHING; FIELDS];
        fields[field::BODY] = self.body;
        fields[field::SYMBOLS] = self.symbols;
        fields[field::STEM] = self.stem;
        fields[field::FOLDERS] = self.folders;
        fields
    }
}

/// Collection statistics for scoring a query. Those of base, delta and tail can be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of records.
    pub records: u64,
    /// Number of terms in each field, over all records.
    pub tokens: PerField<u64>,
    /// For each term of the query, the number of records that contain it in each field.
    pub doc_freqs: Vec<PerField<u64>>,
}

impl Statistics {
    /// The statistics of no records.
    pub fn none(keywords: &Keywords) -> Self {
        Self {
            records: 0,
            tokens: PerField::default(),
            doc_freqs: vec![PerField::default(); keywords.terms.len()],
        }
    }

    /// Adds the statistics of other records for the same query.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        add_fields(&mut self.tokens, other.tokens);
        for (own, other) in self.doc_freqs.iter_mut().zip(&other.doc_freqs) {
            add_fields(own, *other);
        }
    }

    /// Adds one record.
    pub fn add_record(&mut self, keywords: &Keywords, counts: &TermCounts) {
        self.records += 1;
        add_fields(&mut self.tokens, counts.lengths().map(u64::from));
        for (doc_freq, term) in self.doc_freqs.iter_mut().zip(&keywords.terms) {
            add_fields(doc_freq, counts.get(term).map(|count| u64::from(count > 0)));
        }
    }
}

/// Estimates the number of terms in `some` of `all` records, assuming average lengths.
pub fn tokens_among(tokens: PerField<u64>, some: u64, all: u64) -> PerField<u64> {
    let share = some as f64 / all.max(1) as f64;
    tokens.map(|tokens| (tokens as f64 * share) as u64)
}

fn add_fields(own: &mut PerField<u64>, other: PerField<u64>) {
    for (own, other) in own.iter_mut().zip(other) {
        *own += other;
    }
}

/// The scoring formula, with the constants of one query precomputed.
#[derive(Debug, Clone)]
pub struct Ranking {
    keywords: Keywords,
    /// `idf · (k1 + 1)` of each term.
    gains: Vec<f32>,
    fields: PerField<FieldScale>,
}

/// How much one occurrence in a field adds to `x`, by the rounded length of the field.
#[derive(Debug, Clone)]
pub(super) struct FieldScale {
    by_length: Box<[f32; 256]>,
    once: bool,
    counts: bool,
}

impl Ranking {
    /// Precomputes the constants.
    pub fn new(keywords: &Keywords, statistics: &Statistics) -> Self {
        let Bm25Weights { k1, fields } = keywords.weights;
        let gain = |doc_freq: &PerField<u64>| {
            // Frequencies of fields cannot be added, because records that contain the term in
            // two fields would count twice. The maximum is a close lower bound.
            let weighted = doc_freq.iter().zip(&fields).filter(|(_, field)| field.weight > 0.0);
            let records = weighted.map(|(doc_freq, _)| *doc_freq).max().unwrap_or(0);
            idf(statistics.records, records) * (k1 + 1.0)
        };
        Self {
            keywords: keywords.clone(),
            gains: statistics.doc_freqs.iter().map(gain).collect(),
            fields: std::array::from_fn(|field| {
                FieldScale::new(fields[field], statistics.records, statistics.tokens[field])
            }),
        }
    }

    /// The query.
    pub fn keywords(&self) -> &Keywords {
        &self.keywords
    }

    /// The maximum that each term can add to a score, in the order of the query's terms.
    pub fn gains(&self) -> &[f32] {
        &self.gains
    }

    /// The score of a record that is not in a segment; 0 if it contains none of the terms.
    pub fn score(&self, counts: &TermCounts) -> f32 {
        let lengths = counts.lengths().map(FieldNormReader::fieldnorm_to_id);
        let mut score = 0.0;
        for (term, text) in self.keywords.terms.iter().enumerate() {
            let mut x = 0.0;
            for (field, &count) in counts.get(text).iter().enumerate() {
                if count > 0 && self.fields[field].counts() {
                    x += self.fields[field].occurrences(count, lengths[field]);
                }
            }
            if x > 0.0 {
                score += self.term(term, x);
            }
        }
        score
    }

    /// How much a term adds to the score of a record.
    #[inline]
    pub(super) fn term(&self, term: usize, x: f32) -> f32 {
        self.gains.get(term).map_or(0.0, |gain| gain * (x / (self.keywords.weights.k1 + x)))
    }

    pub(super) fn field(&self, field: usize) -> &FieldScale {
        &self.fields[field]
    }
}

impl FieldScale {
    fn new(field: FieldWeight, records: u64, tokens: u64) -> Self {
        let mean = if tokens == 0 { 1.0 } else { tokens as f64 / records.max(1) as f64 };
        let (weight, b) = (f64::from(field.weight), f64::from(field.b));
        let scale = |length: u32| (weight / (1.0 - b + b * f64::from(length) / mean)) as f32;
        let mut by_length = [scale(0); 256];
        if b != 0.0 && weight > 0.0 {
            by_length = std::array::from_fn(|id| scale(FieldNormReader::id_to_fieldnorm(id as u8)));
        }
        Self { by_length: Box::new(by_length), once: field.once, counts: field.weight > 0.0 }
    }

    /// How much `count` occurrences in a field of this rounded length add to `x`.
    #[inline]
    pub(super) fn occurrences(&self, count: u32, rounded_length: u8) -> f32 {
        let count = if self.once { count.min(1) } else { count };
        count as f32 * self.by_length[usize::from(rounded_length)]
    }

    /// Whether the field has a weight.
    pub(super) fn counts(&self) -> bool {
        self.counts
    }
}

/// Inverse document frequency, as in Lucene: never negative.
fn idf(records: u64, doc_freq: u64) -> f32 {
    let without = records.saturating_sub(doc_freq) as f64;
    let doc_freq = doc_freq as f64;
    (1.0 + (without + 0.5) / (doc_freq + 0.5)).ln() as f32
}

#[cfg(test)]
mod tests {
    use super::super::fields::TextFields;
    use super::*;

    fn statistics(keywords: &Keywords, records: &[TermCounts]) -> Statistics {
        let mut all = Statistics::none(keywords);
        records.iter().for_each(|counts| all.add_record(keywords, counts));
        all
    }

    fn documents(texts: &[&str]) -> Vec<TermCounts> {
        let of = |text: &&str| TermCounts::of(Analyzer::Prose, &TextFields::body(text));
        texts.iter().map(of).collect()
    }

    #[test]
    fn scores_of_the_body_are_bm25() {
        let records = documents(&["cat cat dog", "dog bird", "bird bird bird fish ant"]);
        let keywords = Keywords::of(Analyzer::Prose, "cat dog", 2.0);
        let ranking = Ranking::new(&keywords, &statistics(&keywords, &records));
        let bm25 = |tf: f64, length: f64, doc_freq: f64| {
            let idf = (1.0 + (3.0 - doc_freq + 0.5) / (doc_freq + 0.5)).ln();
            idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / (10.0 / 3.0)))
        };
        for (record, expected) in records.iter().zip([
            bm25(2.0, 3.0, 1.0) + bm25(1.0, 3.0, 2.0),
            bm25(1.0, 2.0, 2.0),
            0.0,
        ]) {
            let score = f64::from(ranking.score(record));
            assert!((score - expected).abs() < 1e-6, "{score} {expected}");
        }
    }

    #[test]
    fn symbols_and_paths_count_in_code() {
        let fields = TextFields {
            body: "open close open",
            symbols: "open",
            stem: "open",
            folders: "open open",
        };
        let record = TermCounts::of(Analyzer::Code, &fields);
        let keywords = Keywords::of(Analyzer::Code, "open", 2.0);
        let ranking =
            Ranking::new(&keywords, &statistics(&keywords, std::slice::from_ref(&record)));
        let x = 2.0 + 1.0 + 2.0 + 1.0;
        let expected = (1.0f32 + 0.5 / 1.5).ln() * 2.2 * x / (1.2 + x);
        assert!((ranking.score(&record) - expected).abs() < 1e-6);
    }

    #[test]
    fn scores_are_finite_for_inconsistent_statistics() {
        let keywords = Keywords::of(Analyzer::Code, "cat dog", 2.0);
        let record = TermCounts::of(Analyzer::Code, &TextFields::body("cat"));
        let mut odd = Statistics::none(&keywords);
        assert!(Ranking::new(&keywords, &odd).score(&record).is_finite());
        odd.doc_freqs[0] = [u64::MAX; 4];
        odd.tokens = [u64::MAX; 4];
        assert!(Ranking::new(&keywords, &odd).score(&record) >= 0.0);
        odd.doc_freqs.clear();
        assert_eq!(Ranking::new(&keywords, &odd).score(&record), 0.0);
    }

    #[test]
    fn statistics_of_parts_add_up() {
        let records = documents(&["cat cat dog", "dog bird", "cat"]);
        let keywords = Keywords::of(Analyzer::Prose, "cat bird", 2.0);
        let mut sum = statistics(&keywords, &records[..1]);
        sum.add(&statistics(&keywords, &records[1..]));
        assert_eq!(sum, statistics(&keywords, &records));
        assert_eq!(sum.doc_freqs, [[2, 0, 0, 0], [1, 0, 0, 0]]);
    }
}
