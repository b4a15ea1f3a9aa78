//! How well the best candidates fit a query, on a scale that is the same for all queries.

use crate::{CodeQuery, RankedChunk, SearchMode};

/// Weight of the vector similarity, relative to the keyword share.
const VECTOR_WEIGHT: f32 = 0.5;

/// Below these, nothing fits well. Chosen so that few questions about a repository and most about
/// unrelated topics are below; see `bench/RESULTS.md`.
const WEAK_HYBRID: f32 = 0.36;
const WEAK_KEYWORDS: f32 = 0.22;
const WEAK_VECTORS: f32 = 0.25;

/// A report has so many terms that no chunk has a large share of them: only its vector tells.
const WEAK_REPORT: f32 = 0.2;

/// The best absolute scores among the candidates of a query.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Fit {
    /// The highest keyword score, relative to the highest possible one.
    pub keywords: f32,
    /// The highest vector similarity, minus that of the mean vector.
    pub vectors: f32,
    /// Whether a candidate contains the whole query, or defines the symbol that is the query.
    pub exact: bool,
}

impl Fit {
    /// From 0, nothing in common, to 1, as good as it gets.
    pub fn strength(&self, query: &CodeQuery, mode: SearchMode) -> f32 {
        if self.exact {
            return 1.0;
        }
        let score = match mode {
            SearchMode::Vector => self.vectors,
            SearchMode::Keyword => self.keywords,
            SearchMode::Hybrid if query.is_report() => self.vectors,
            SearchMode::Hybrid => self.keywords + VECTOR_WEIGHT * self.vectors,
        };
        if score.is_finite() { score.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Scales the scores of hits, which are relative to the best one, to this strength.
    pub fn scale(&self, hits: &mut [RankedChunk], query: &CodeQuery, mode: SearchMode) {
        let strength = self.strength(query, mode);
        for hit in hits {
            hit.explanation.scale(strength);
            hit.score *= strength;
        }
    }

    /// Whether nothing fits the query well.
    pub fn is_weak(&self, query: &CodeQuery, mode: SearchMode) -> bool {
        let threshold = match mode {
            SearchMode::Vector => WEAK_VECTORS,
            SearchMode::Keyword if query.is_report() => return false,
            SearchMode::Keyword => WEAK_KEYWORDS,
            SearchMode::Hybrid if query.is_report() => WEAK_REPORT,
            SearchMode::Hybrid => WEAK_HYBRID,
        };
        self.strength(query, mode) < threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poor_matches_are_weak() {
        let question = CodeQuery::parse("how are connections retried");
        let fit = |keywords, vectors| Fit { keywords, vectors, exact: false };
        for (fit, mode, expected) in [
            (fit(0.5, 0.5), SearchMode::Hybrid, false),
            (fit(0.1, 0.2), SearchMode::Hybrid, true),
            (fit(0.0, 0.8), SearchMode::Hybrid, false),
            (fit(0.5, 0.0), SearchMode::Keyword, false),
            (fit(0.1, 0.9), SearchMode::Keyword, true),
            (fit(0.9, 0.1), SearchMode::Vector, true),
            (fit(0.0, 0.3), SearchMode::Vector, false),
            (fit(f32::NAN, 0.0), SearchMode::Hybrid, true),
            (Fit { exact: true, ..fit(0.0, 0.0) }, SearchMode::Hybrid, false),
        ] {
            assert_eq!(fit.is_weak(&question, mode), expected, "{fit:?} {mode}");
        }
    }

    #[test]
    fn reports_are_judged_by_their_vector() {
        let text: Vec<String> = (0..40).map(|number| format!("word{number}")).collect();
        let report = CodeQuery::parse(&text.join(" "));
        assert!(report.is_report());
        let fit = Fit { keywords: 0.05, vectors: 0.3, exact: false };
        assert!(!fit.is_weak(&report, SearchMode::Hybrid));
        assert!(!fit.is_weak(&report, SearchMode::Keyword));
        let off_topic = Fit { vectors: 0.1, ..fit };
        assert!(off_topic.is_weak(&report, SearchMode::Hybrid));
    }
}
