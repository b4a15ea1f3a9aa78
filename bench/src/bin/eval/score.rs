//! File-level NDCG@10.

/// Number of hits that are scored.
pub(crate) const DEPTH: usize = 10;

/// NDCG of the targets in a ranking: 1 if they come first, 0 if none is found.
pub(crate) fn ndcg(hits: &[String], targets: &[String]) -> f64 {
    let hits = &hits[..hits.len().min(DEPTH)];
    let rank = |target: &String| hits.iter().position(|hit| same_file(hit, target));
    let mut ranks: Vec<usize> = targets.iter().filter_map(rank).collect();
    ranks.sort_unstable();
    // Two targets that match the same hit count once.
    ranks.dedup();
    gain(ranks.into_iter()) / gain(0..targets.len().min(DEPTH))
}

fn gain(ranks: impl Iterator<Item = usize>) -> f64 {
    ranks.map(|rank| 1.0 / (rank as f64 + 2.0).log2()).sum()
}

/// Whether one of the paths ends with the other, in whole components.
fn same_file(a: &str, b: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let (a, b) = (parts(a), parts(b));
    let shared = a.len().min(b.len());
    shared > 0 && a[a.len() - shared..] == b[b.len() - shared..]
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(hits: &[&str], targets: &[&str]) -> f64 {
        let owned =
            |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        ndcg(&owned(hits), &owned(targets))
    }

    #[test]
    fn the_best_order_scores_one() {
        assert_eq!(score(&["a.rs", "b.rs"], &["b.rs", "a.rs"]), 1.0);
        assert_eq!(score(&["x.rs"], &["a.rs"]), 0.0);
        assert!((score(&["x.rs", "a.rs"], &["a.rs"]) - 0.6309).abs() < 1e-4);
    }

    #[test]
    fn paths_match_by_their_ends() {
        assert_eq!(score(&["src/lib/a.rs"], &["lib/a.rs"]), 1.0);
        assert_eq!(score(&["a.rs"], &["lib/a.rs"]), 1.0);
        assert_eq!(score(&["ba.rs"], &["a.rs"]), 0.0);
    }

    #[test]
    fn only_the_first_ten_count() {
        let many = ["x"; 10].into_iter().chain(["a.rs"]).collect::<Vec<_>>();
        assert_eq!(score(&many, &["a.rs"]), 0.0);
    }
}
