//! Fuses the rankings of a keyword search and of a vector search.
//!
//! Scores and distances are on unrelated scales, so only places count: each ranking contributes
//! the reciprocal of a record's place in it (reciprocal rank fusion).

use std::collections::HashMap;

/// Added to each place, so that the first few places count nearly the same: a record that is good
/// in both rankings beats one that is first in only one of them. The usual value.
const SMOOTHING: f32 = 60.0;

/// Relative difference up to which values are equal. Scores of records in a segment and outside of
/// one are computed in different ways.
const EQUAL: f32 = 1e-5;

/// A place in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placed {
    /// From 1; equal values share a place.
    pub place: u32,
    /// The score or the distance.
    pub value: f32,
}

/// A row in the fused ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedRow {
    /// The row.
    pub row: u64,
    /// Higher is better; 1 for a row that is first in both rankings.
    pub score: f32,
    /// Its place by keyword score, if it was ranked.
    pub keywords: Option<Placed>,
    /// Its place by distance, if it was ranked.
    pub distance: Option<Placed>,
}

/// Returns the best `limit` rows of both rankings, best first; equal ones are ordered by row. The
/// rankings are rows with scores and rows with distances, best first.
pub fn fuse(keywords: &[(u64, f32)], distances: &[(u64, f32)], limit: usize) -> Vec<FusedRow> {
    let mut rows: HashMap<u64, FusedRow> = HashMap::new();
    let new = |row| FusedRow { row, score: 0.0, keywords: None, distance: None };
    for (row, placed) in places(keywords) {
        rows.entry(row).or_insert_with(|| new(row)).keywords = Some(placed);
    }
    for (row, placed) in places(distances) {
        rows.entry(row).or_insert_with(|| new(row)).distance = Some(placed);
    }
    let mut fused: Vec<FusedRow> = rows.into_values().collect();
    for row in &mut fused {
        row.score = share(row.keywords) + share(row.distance);
    }
    fused.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.row.cmp(&b.row)));
    fused.truncate(limit);
    fused
}

impl FusedRow {
    /// What contributed to the score, for display.
    pub fn reasons(&self) -> Vec<String> {
        let reason = |name: &str, placed: Option<Placed>| {
            placed.map(|Placed { place, value }| format!("{name} {value:.2} ({})", ordinal(place)))
        };
        let reasons = [reason("keywords", self.keywords), reason("distance", self.distance)];
        reasons.into_iter().flatten().collect()
    }
}

fn places(ranking: &[(u64, f32)]) -> impl Iterator<Item = (u64, Placed)> {
    let (mut first_place, mut first_value) = (0, f32::NAN);
    (1..).zip(ranking).map(move |(place, &(row, value))| {
        let is_equal = (value - first_value).abs() <= EQUAL * first_value.abs();
        if !is_equal {
            (first_place, first_value) = (place, value);
        }
        (row, Placed { place: first_place, value })
    })
}

/// What a place contributes: a half for the first.
fn share(placed: Option<Placed>) -> f32 {
    placed.map_or(0.0, |placed| 0.5 * (SMOOTHING + 1.0) / (SMOOTHING + placed.place as f32))
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Ranking<'a> = &'a [(u64, f32)];

    #[test]
    fn rows_are_ordered_by_their_places_in_both_rankings() {
        let table: [(&str, Ranking<'_>, Ranking<'_>, &[u64]); 7] = [
            ("nothing", &[], &[], &[]),
            ("one ranking", &[(5, 9.0), (3, 1.0)], &[], &[5, 3]),
            ("the other", &[], &[(4, 0.1), (2, 0.3)], &[4, 2]),
            ("the same order", &[(1, 3.0), (2, 2.0)], &[(1, 0.1), (2, 0.2)], &[1, 2]),
            (
                "good in both beats best in one",
                &[(1, 9.0), (2, 2.0), (3, 1.0)],
                &[(4, 0.0), (3, 0.5), (2, 0.6)],
                &[2, 3, 1, 4],
            ),
            ("opposite orders are even", &[(8, 2.0), (7, 1.0)], &[(7, 0.1), (8, 0.2)], &[7, 8]),
            (
                "equal values share a place",
                &[(2, 2.000_001), (1, 2.0), (3, 1.0)],
                &[(2, 0.5), (1, 0.5)],
                &[1, 2, 3],
            ),
        ];
        for (name, keywords, distances, expected) in table {
            let fused = fuse(keywords, distances, 10);
            let rows: Vec<u64> = fused.iter().map(|it| it.row).collect();
            assert_eq!(rows, expected, "{name}");
            let few: Vec<u64> = fuse(keywords, distances, 1).iter().map(|it| it.row).collect();
            assert_eq!(few, expected[..expected.len().min(1)], "{name}");
        }
    }

    #[test]
    fn the_first_in_both_has_score_one_and_the_first_in_one_half_of_it() {
        let fused = fuse(&[(1, 7.0), (2, 3.0)], &[(1, 0.2), (3, 0.4)], 10);
        let scores: Vec<f32> = fused.iter().map(|it| it.score).collect();
        assert_eq!(scores, [1.0, 0.5 * 61.0 / 62.0, 0.5 * 61.0 / 62.0]);
        assert_eq!(fuse(&[(1, 7.0)], &[], 1)[0].score, 0.5);
    }

    #[test]
    fn reasons_name_the_value_and_the_place() {
        let fused = fuse(&[(1, 3.214), (2, 1.0)], &[(3, -0.5), (1, 0.124)], 10);
        let reasons: Vec<String> = fused.iter().map(|it| it.reasons().join(", ")).collect();
        assert_eq!(
            reasons,
            [
                "keywords 3.21 (1st), distance 0.12 (2nd)",
                "distance -0.50 (1st)",
                "keywords 1.00 (2nd)"
            ]
        );
        let ranking: Vec<(u64, f32)> = (1..=112).map(|n| (n, n as f32)).collect();
        let fused = fuse(&[], &ranking, 112);
        let places: Vec<String> = fused.iter().map(|it| it.reasons().concat()).collect();
        for (place, expected) in
            [(3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st")]
        {
            assert_eq!(places[place - 1], format!("distance {place}.00 ({expected})"));
        }
        assert!(places[110].ends_with("(111th)") && places[101].ends_with("(102nd)"));
    }
}
