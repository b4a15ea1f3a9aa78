//! Terms of a query.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::stem::StemCache;
use super::{Analyzer, Tokenizer};

/// Maximum number of terms of one query; further ones are ignored.
pub const MAX_QUERY_TERMS: usize = 512;

/// The distinct terms of a query in order of first occurrence. English stop words are dropped
/// unless the query has nothing else.
pub fn query_terms(analyzer: Analyzer, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut stop_words = Vec::new();
    let mut seen = HashSet::new();
    let mut tokenizer = Tokenizer::new(analyzer);
    let mut cursor = tokenizer.terms(text);
    while terms.len() < MAX_QUERY_TERMS && cursor.advance() {
        let (term, _) = cursor.current();
        if seen.contains(term) {
            continue;
        }
        seen.insert(term.to_owned());
        if STOP_STEMS.contains(term) {
            stop_words.push(term.to_owned());
        } else {
            terms.push(term.to_owned());
        }
    }
    if terms.is_empty() { stop_words } else { terms }
}

static STOP_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut stems = StemCache::default();
    STOP_WORDS.split_whitespace().map(|word| stems.stem(word).to_owned()).collect()
});

/// Includes fragments of contractions, because code is split at apostrophes.
const STOP_WORDS: &str = "
    a about above after again against all am an and any are aren't as at
    be because been before being below between both but by
    can can't cannot could couldn't
    did didn't do does doesn't doing don don't down during
    each few for from further
    had hadn't has hasn't have haven't having he he's her here here's hers herself him
    himself his how how's
    i i'd i'll i'm i've if in into is isn't it it's its itself
    just let's ll me more most mustn't my myself
    no nor not now of off on once only or other ought our ours ourselves out over own
    re s same shan't she she's should shouldn't so some such
    t than that that's the their theirs them themselves then there there's these they
    they'd they'll they're they've this those through to too
    under until up ve very
    was wasn't we we'd we'll we're we've were weren't what what's when when's where
    where's which while who who's whom why why's will with won't would wouldn't
    you you'd you'll you're you've your yours yourself yourselves";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_and_duplicates_are_dropped() {
        for (analyzer, text, expected) in [
            (
                Analyzer::Prose,
                "How do the connections connect to a connected server?",
                vec!["connect", "server"],
            ),
            (Analyzer::Prose, "To be, or not to be", vec!["to", "be", "or", "not"]),
            (Analyzer::Prose, "What's the café's Wi-Fi", vec!["cafe", "wi", "fi"]),
            (
                Analyzer::Code,
                "where is parseJSON defined, parse_json",
                vec!["pars", "json", "parsejson", "defin", "parse_json"],
            ),
            (Analyzer::Code, "don't", vec!["don", "t"]),
            (Analyzer::Code, "", vec![]),
            (Analyzer::Prose, " \0 --- ", vec![]),
        ] {
            assert_eq!(query_terms(analyzer, text), expected, "{text}");
        }
    }

    #[test]
    fn long_queries_are_truncated() {
        let text: String = (0..100_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(query_terms(Analyzer::Prose, &text).len(), MAX_QUERY_TERMS);
    }
}
