use tantivy::fieldnorm::FieldNormReader;

use super::super::*;
use super::corpus::{Rng, TestRecord, open_segment, random_records};
use crate::Bits;

const FILE_NAME_WEIGHT: f32 = 2.0;

/// More than one window of positions.
const LARGE: usize = 5000;

const QUERIES: [&str; 8] = [
    "connection",
    "parseFile running café",
    "数据库 東京",
    "user_name HTTPServer2 word17x word900x",
    "ไทย서울 Straße don't naive привет",
    "the",
    "absent words only",
    "",
];

/// An independent implementation, in f64, of the formula in `docs/format.md`.
fn reference_scores(keywords: &Keywords, counts: &[TermCounts]) -> Vec<f64> {
    let number = counts.len() as f64;
    let weights = keywords.weights;
    let mean: Vec<f64> = (0..FIELDS)
        .map(|field| counts.iter().map(|c| f64::from(c.lengths()[field])).sum::<f64>() / number)
        .collect();
    let mut scores = vec![0.0; counts.len()];
    for term in &keywords.terms {
        let doc_freq = (0..FIELDS)
            .filter(|field| weights.fields[*field].weight > 0.0)
            .map(|field| counts.iter().filter(|c| c.get(term)[field] > 0).count())
            .max()
            .unwrap() as f64;
        let idf = (1.0 + (number - doc_freq + 0.5) / (doc_freq + 0.5)).ln();
        for (score, counts) in scores.iter_mut().zip(counts) {
            let mut x = 0.0;
            for (field, mean) in mean.iter().enumerate() {
                let FieldWeight { weight, b, once } = weights.fields[field];
                let mut tf = f64::from(counts.get(term)[field]);
                if once {
                    tf = tf.min(1.0);
                }
                let rounded = FieldNormReader::fieldnorm_to_id(counts.lengths()[field]);
                let length = f64::from(FieldNormReader::id_to_fieldnorm(rounded));
                let b = f64::from(b);
                if tf > 0.0 {
                    x += f64::from(weight) * tf / (1.0 - b + b * length / mean);
                }
            }
            let k1 = f64::from(weights.k1);
            *score += idf * (k1 + 1.0) * x / (k1 + x);
        }
    }
    scores
}

fn search(segment: &TextSegment, query: &str, limit: usize) -> Vec<TextCandidate> {
    let keywords = Keywords::of(segment.analyzer(), query, FILE_NAME_WEIGHT);
    let ranking = Ranking::new(&keywords, &segment.statistics(&keywords).unwrap());
    segment.search(&ranking, limit, None, None).unwrap()
}

#[test]
fn search_agrees_with_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    for analyzer in [Analyzer::Prose, Analyzer::Code] {
        let records = random_records(300, 1);
        let segment = open_segment(folder.path(), analyzer, &records);
        assert_eq!((segment.len(), segment.analyzer()), (300, analyzer));
        let counted: Vec<_> =
            records.iter().map(|record| TermCounts::of(analyzer, &record.fields())).collect();
        for query in QUERIES {
            let keywords = Keywords::of(analyzer, query, FILE_NAME_WEIGHT);
            let expected = reference_scores(&keywords, &counted);
            let found = search(&segment, query, usize::MAX);
            let matching = expected.iter().filter(|score| **score > 0.0).count();
            assert_eq!(found.len(), matching, "{query}");
            for pair in found.windows(2) {
                let ordered = pair[0].score > pair[1].score
                    || (pair[0].score == pair[1].score && pair[0].row < pair[1].row);
                assert!(ordered, "{query}: {pair:?}");
            }
            for candidate in &found {
                let at = records.iter().position(|record| record.row == candidate.row).unwrap();
                assert_eq!(records[at].change, candidate.change);
                let error = (f64::from(candidate.score) - expected[at]).abs() / expected[at];
                assert!(error < 1e-5, "{query}: {candidate:?} {}", expected[at]);
            }
            for limit in [0, 1, 7, 100] {
                let first = search(&segment, query, limit);
                assert_eq!(first, found[..limit.min(found.len())], "{query}");
            }
        }
    }
}

#[test]
fn base_delta_and_tail_rank_like_one_segment() {
    let folder = tempfile::tempdir().unwrap();
    for analyzer in [Analyzer::Prose, Analyzer::Code] {
        let records = random_records(450, 2);
        let whole = open_segment(folder.path(), analyzer, &records);
        let base = open_segment(folder.path(), analyzer, &records[..300]);
        let delta = open_segment(folder.path(), analyzer, &records[300..380]);
        let tail = &records[380..];
        for query in QUERIES {
            let keywords = Keywords::of(analyzer, query, FILE_NAME_WEIGHT);
            let mut tokenizer = Tokenizer::new(analyzer);
            let counted: Vec<_> = tail
                .iter()
                .map(|record| {
                    TermCounts::of_terms(&mut tokenizer, &record.fields(), &keywords.terms)
                })
                .collect();
            let mut statistics = base.statistics(&keywords).unwrap();
            statistics.add(&delta.statistics(&keywords).unwrap());
            counted.iter().for_each(|counts| statistics.add_record(&keywords, counts));
            assert_eq!(statistics, whole.statistics(&keywords).unwrap(), "{query}");

            let ranking = Ranking::new(&keywords, &statistics);
            let mut found = base.search(&ranking, usize::MAX, None, None).unwrap();
            found.extend(delta.search(&ranking, usize::MAX, None, None).unwrap());
            for (record, counts) in tail.iter().zip(&counted) {
                let score = ranking.score(counts);
                if score > 0.0 {
                    found.push(TextCandidate { row: record.row, change: record.change, score });
                }
            }
            found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
            assert_eq!(found, search(&whole, query, usize::MAX), "{query}");
        }
    }
}

#[test]
fn statistics_of_a_subset_ignore_other_records() {
    let folder = tempfile::tempdir().unwrap();
    let records = random_records(LARGE, 3);
    let segment = open_segment(folder.path(), Analyzer::Prose, &records);
    let mut positions = Bits::new(records.len());
    (0..records.len()).filter(|at| at % 7 == 3).for_each(|at| positions.insert(at));
    for query in QUERIES {
        let keywords = Keywords::of(Analyzer::Prose, query, FILE_NAME_WEIGHT);
        let mut expected = Statistics::none(&keywords);
        for record in records.iter().skip(3).step_by(7) {
            expected.add_record(&keywords, &TermCounts::of(Analyzer::Prose, &record.fields()));
        }
        let found = segment.statistics_among(&keywords, &positions).unwrap();
        assert_eq!(
            (found.records, &found.doc_freqs),
            (expected.records, &expected.doc_freqs),
            "{query}"
        );
        for (found, expected) in found.tokens.iter().zip(expected.tokens) {
            let ratio = *found as f64 / expected as f64;
            assert!((0.9..1.1).contains(&ratio), "{query}: {found} {expected}");
        }
    }
}

#[test]
fn search_skips_exactly_the_dead_and_disallowed_records() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = random_records(LARGE, 3);
    for record in &mut records {
        let body = &mut record.texts[0];
        body.truncate(body.floor_char_boundary(60));
    }
    let mut rng = Rng::new(4);
    for analyzer in [Analyzer::Prose, Analyzer::Code] {
        let segment = open_segment(folder.path(), analyzer, &records);
        // From a few positions, which are looked up, to all.
        for (allowed_of_1000, dead_of_1000) in [(1, 0), (3, 500), (100, 10), (999, 300), (1000, 0)]
        {
            let mut chosen = |of_1000: usize| -> Vec<&TestRecord> {
                records.iter().filter(|_| rng.below(1000) < of_1000).collect()
            };
            let (allowed, dead) = (chosen(allowed_of_1000), chosen(dead_of_1000));
            let allowed: Vec<u64> = allowed.iter().map(|record| record.row).collect();
            let dead: Vec<(u64, u64)> =
                dead.iter().map(|record| (record.row, record.change)).collect();
            let (mut allowed_bits, mut dead_bits) = (Bits::new(LARGE), Bits::new(LARGE));
            segment.positions_of(&allowed, &mut allowed_bits).unwrap();
            segment.versions_of(&dead, &mut dead_bits).unwrap();
            assert_eq!(allowed_bits.count(), allowed.len());
            assert_eq!(dead_bits.count(), dead.len());
            for query in QUERIES {
                let keywords = Keywords::of(analyzer, query, FILE_NAME_WEIGHT);
                let ranking = Ranking::new(&keywords, &segment.statistics(&keywords).unwrap());
                let mut expected = segment.search(&ranking, usize::MAX, None, None).unwrap();
                expected.retain(|candidate| {
                    allowed.binary_search(&candidate.row).is_ok()
                        && dead.binary_search(&(candidate.row, candidate.change)).is_err()
                });
                let (allowed, dead) = (Some(&allowed_bits), Some(&dead_bits));
                for limit in [10, usize::MAX] {
                    let found = segment.search(&ranking, limit, allowed, dead).unwrap();
                    assert_eq!(found, expected[..limit.min(expected.len())], "{query}");
                }
            }
        }
    }
}

#[test]
fn finds_positions_of_rows_and_versions() {
    let folder = tempfile::tempdir().unwrap();
    let records = random_records(200, 5);
    let segment = open_segment(folder.path(), Analyzer::Prose, &records);
    for row in 0..=records[199].row + 1 {
        let expected = records.iter().position(|record| record.row == row);
        assert_eq!(segment.position_of(row).unwrap(), expected, "{row}");
    }
    let others: Vec<_> = records.iter().map(|record| (record.row, record.change + 1)).collect();
    let mut bits = Bits::new(200);
    segment.versions_of(&others, &mut bits).unwrap();
    assert_eq!(bits.count(), 0);
    segment.positions_of(&[0, records[3].row, u64::MAX], &mut bits).unwrap();
    assert_eq!(bits.iter().collect::<Vec<_>>(), [3]);
}

#[test]
fn empty_segment() {
    let folder = tempfile::tempdir().unwrap();
    let segment = open_segment(folder.path(), Analyzer::Prose, &[]);
    assert!(segment.is_empty());
    assert!(search(&segment, "anything at all", 10).is_empty());
    assert_eq!(segment.position_of(1).unwrap(), None);
    segment.verify().unwrap();
}

#[test]
fn records_without_text_are_never_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = random_records(30, 6);
    records.iter_mut().for_each(|record| record.texts = Default::default());
    let segment = open_segment(folder.path(), Analyzer::Code, &records);
    assert_eq!(segment.len(), 30);
    assert!(search(&segment, "anything", 10).is_empty());
}

#[test]
fn finds_words_in_any_spelling_and_script() {
    let folder = tempfile::tempdir().unwrap();
    let bodies = ["Die Straße nach Łódź", "東京タワーの写真", "ภาษาไทยง่าย", "서울에서 만나요"];
    let records: Vec<_> = (1..)
        .zip(bodies)
        .map(|(row, body)| TestRecord {
            row,
            change: row,
            texts: [body.to_owned(), String::new(), String::new(), String::new()],
        })
        .collect();
    for analyzer in [Analyzer::Prose, Analyzer::Code] {
        let segment = open_segment(folder.path(), analyzer, &records);
        for (query, row) in
            [("STRASSE", 1), ("lodz", 1), ("東京", 2), ("ﾀﾜｰ", 2), ("ไทย", 3), ("서울", 4)]
        {
            let found = search(&segment, query, 10);
            assert_eq!(found.iter().map(|hit| hit.row).collect::<Vec<_>>(), [row], "{query}");
        }
    }
}
