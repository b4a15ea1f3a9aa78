//! BM25 over weighted fields: one formula for segments and for the tail.
//!
//! A term's score in a record is `idf · (k1 + 1) · x / (k1 + x)`, where `x` adds up
//! `weight · tf / (1 − b + b · length / mean length)` over the fields. With the body
//! alone that is BM25 as usual. Lengths are rounded as segments round them, and sums
//! run in the order of terms and fields, so that a record scores the same to the last
//! bit wherever it is.

use isolith_text::{Analyzer, query_terms};
use serde::{Deserialize, Serialize};
use tantivy::fieldnorm::FieldNormReader;

use super::fields::{FIELDS, PerField, TermCounts, field};

/// What is asked for: terms, and what their fields are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Keywords {
    /// Each term once; see [`query_terms`].
    pub terms: Vec<String>,
    /// What an occurrence is worth.
    pub weights: Weights,
}

impl Keywords {
    /// A question, with the usual weights of its analyzer. `file_name` is for code: see
    /// [`Weights::code`].
    pub fn of(analyzer: Analyzer, text: &str, file_name: f32) -> Self {
        let weights = match analyzer {
            Analyzer::Code => Weights::code(file_name),
            Analyzer::Prose => Weights::PROSE,
        };
        Self { terms: query_terms(analyzer, text), weights }
    }
}

/// What an occurrence of a term is worth, by field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// How slowly further occurrences stop to count.
    pub k1: f32,
    /// In the order of [`PerField`]: see [`field`].
    pub fields: PerField<FieldWeight>,
}

/// What an occurrence of a term in one field is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FieldWeight {
    /// Compared with other fields; 0 leaves the field out.
    pub weight: f32,
    /// How much the field's length counts, from 0 to 1.
    pub b: f32,
    /// Whether further occurrences count nothing.
    pub once: bool,
}

impl Weights {
    /// BM25 over the body.
    pub const PROSE: Self = Self {
        k1: 1.2,
        fields: Named { body: FieldWeight::new(1.0, 0.75), ..Named::NOTHING }.in_order(),
    };

    /// What ranked memories best: labels, and dates in words, count beside the text.
    pub const MEMORY: Self = Self {
        k1: 1.2,
        fields: Named {
            body: FieldWeight::new(1.0, 0.5),
            symbols: FieldWeight::once(0.7),
            folders: FieldWeight::once(0.7),
            ..Named::NOTHING
        }
        .in_order(),
    };

    /// What ranked code best: names and paths count beside the body. `file_name` is what a
    /// word in the name of the file is worth; it is set with the other weights of file names,
    /// in `CodeWeights` of `isolith-search`.
    pub const fn code(file_name: f32) -> Self {
        let fields = Named {
            body: FieldWeight::new(1.0, 0.5),
            symbols: FieldWeight::new(1.0, 0.0),
            stem: FieldWeight::new(file_name, 0.0),
            folders: FieldWeight::once(1.0),
        };
        Self { k1: 1.2, fields: fields.in_order() }
    }
}

impl FieldWeight {
    /// Leaves the field out.
    pub const NOTHING: Self = Self::new(0.0, 0.0);

    const fn new(weight: f32, b: f32) -> Self {
        Self { weight, b, once: false }
    }

    const fn once(weight: f32) -> Self {
        Self { weight, b: 0.0, once: true }
    }
}

/// The weights of all fields, by name.
struct Named {
    body: FieldWeight,
    symbols: FieldWeight,
    /// Of the file's name.
    stem: FieldWeight,
    folders: FieldWeight,
}

impl Named {
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

/// Counts that scores are relative to. They add up over base, delta and tail; nothing
/// is lost in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Records.
    pub records: u64,
    /// Terms in each field of all records.
    pub tokens: PerField<u64>,
    /// For each term of the query: records that have it in each field.
    pub having: Vec<PerField<u64>>,
}

impl Statistics {
    /// Of nothing, for a query.
    pub fn none(keywords: &Keywords) -> Self {
        Self {
            records: 0,
            tokens: PerField::default(),
            having: vec![PerField::default(); keywords.terms.len()],
        }
    }

    /// Adds what another part counted for the same query.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        add_fields(&mut self.tokens, other.tokens);
        for (own, other) in self.having.iter_mut().zip(&other.having) {
            add_fields(own, *other);
        }
    }

    /// Adds one record of the tail.
    pub fn add_record(&mut self, keywords: &Keywords, counts: &TermCounts) {
        self.records += 1;
        add_fields(&mut self.tokens, counts.lengths().map(u64::from));
        for (having, term) in self.having.iter_mut().zip(&keywords.terms) {
            add_fields(having, counts.get(term).map(|count| u64::from(count > 0)));
        }
    }
}

/// How many terms some of `all` records have, if their lengths are what they are on average.
pub fn tokens_among(tokens: PerField<u64>, some: u64, all: u64) -> PerField<u64> {
    let share = some as f64 / all.max(1) as f64;
    tokens.map(|tokens| (tokens as f64 * share) as u64)
}

fn add_fields(own: &mut PerField<u64>, other: PerField<u64>) {
    for (own, other) in own.iter_mut().zip(other) {
        *own += other;
    }
}

/// The formula, with all numbers of one query worked out.
#[derive(Debug, Clone)]
pub struct Ranking {
    keywords: Keywords,
    /// For each term, idf · (k1 + 1).
    gains: Vec<f32>,
    fields: PerField<FieldScale>,
}

/// What one occurrence in a field adds to `x`, by the rounded length of the field.
#[derive(Debug, Clone)]
pub(super) struct FieldScale {
    by_length: Box<[f32; 256]>,
    once: bool,
    counts: bool,
}

impl Ranking {
    /// Works the numbers out.
    pub fn new(keywords: &Keywords, statistics: &Statistics) -> Self {
        let Weights { k1, fields } = keywords.weights;
        let gain = |having: &PerField<u64>| {
            // A record that has the term in two fields is one record: the most frequent
            // field is the best guess that can be added up.
            let weighted = having.iter().zip(&fields).filter(|(_, field)| field.weight > 0.0);
            let records = weighted.map(|(having, _)| *having).max().unwrap_or(0);
            idf(statistics.records, records) * (k1 + 1.0)
        };
        Self {
            keywords: keywords.clone(),
            gains: statistics.having.iter().map(gain).collect(),
            fields: std::array::from_fn(|field| {
                FieldScale::new(fields[field], statistics.records, statistics.tokens[field])
            }),
        }
    }

    /// What was asked for.
    pub fn keywords(&self) -> &Keywords {
        &self.keywords
    }

    /// The most that each term can add to a score, in the order of the keywords' terms: how
    /// telling it is among the records that were counted.
    pub fn gains(&self) -> &[f32] {
        &self.gains
    }

    /// The score of a record outside of segments. 0 if it has none of the terms.
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

    /// What a term adds to the score of a record.
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

    /// What so many occurrences in a field of that rounded length add to `x`.
    #[inline]
    pub(super) fn occurrences(&self, count: u32, rounded_length: u8) -> f32 {
        let count = if self.once { count.min(1) } else { count };
        count as f32 * self.by_length[usize::from(rounded_length)]
    }

    /// Whether the field is worth anything.
    pub(super) fn counts(&self) -> bool {
        self.counts
    }
}

/// How telling a term is, as in Lucene: never negative.
fn idf(records: u64, having: u64) -> f32 {
    let without = records.saturating_sub(having) as f64;
    let having = having as f64;
    (1.0 + (without + 0.5) / (having + 0.5)).ln() as f32
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
    fn the_body_alone_is_bm25() {
        let records = documents(&["cat cat dog", "dog bird", "bird bird bird fish ant"]);
        let keywords = Keywords::of(Analyzer::Prose, "cat dog", 2.0);
        let ranking = Ranking::new(&keywords, &statistics(&keywords, &records));
        let bm25 = |tf: f64, length: f64, having: f64| {
            let idf = (1.0 + (3.0 - having + 0.5) / (having + 0.5)).ln();
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
    fn names_and_paths_count_in_code() {
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
    fn scores_are_finite_whatever_is_counted() {
        let keywords = Keywords::of(Analyzer::Code, "cat dog", 2.0);
        let record = TermCounts::of(Analyzer::Code, &TextFields::body("cat"));
        let mut odd = Statistics::none(&keywords);
        assert!(Ranking::new(&keywords, &odd).score(&record).is_finite());
        odd.having[0] = [u64::MAX; 4];
        odd.tokens = [u64::MAX; 4];
        assert!(Ranking::new(&keywords, &odd).score(&record) >= 0.0);
        odd.having.clear();
        assert_eq!(Ranking::new(&keywords, &odd).score(&record), 0.0);
    }

    #[test]
    fn parts_add_up() {
        let records = documents(&["cat cat dog", "dog bird", "cat"]);
        let keywords = Keywords::of(Analyzer::Prose, "cat bird", 2.0);
        let mut sum = statistics(&keywords, &records[..1]);
        sum.add(&statistics(&keywords, &records[1..]));
        assert_eq!(sum, statistics(&keywords, &records));
        assert_eq!(sum.having, [[2, 0, 0, 0], [1, 0, 0, 0]]);
    }
}
