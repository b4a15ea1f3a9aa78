//! From a question to the terms that are looked up.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::stem::Stems;
use super::{Analyzer, Tokenizer};

/// Terms of one query. A longer text is as well described by its first ones.
pub const MAX_QUERY_TERMS: usize = 512;

/// The terms of a question: each once, in the order of their first occurrence, without
/// English stop words unless it has nothing else.
pub fn query_terms(analyzer: Analyzer, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut stops = Vec::new();
    let mut seen = HashSet::new();
    let mut tokenizer = Tokenizer::new(analyzer);
    let mut found = tokenizer.terms(text);
    while terms.len() < MAX_QUERY_TERMS && found.advance() {
        let (term, _) = found.current();
        if seen.contains(term) {
            continue;
        }
        seen.insert(term.to_owned());
        if STOP_STEMS.contains(term) {
            stops.push(term.to_owned());
        } else {
            terms.push(term.to_owned());
        }
    }
    if terms.is_empty() { stops } else { terms }
}

static STOP_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let mut stems = Stems::default();
    STOP_WORDS.split_whitespace().map(|word| stems.of(word).to_owned()).collect()
});

/// Words that say how something is asked, not what. The remains of contractions are
/// among them, as program text is split at apostrophes.
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
    fn stop_words_go_and_terms_count_once() {
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
    fn a_book_is_a_query_of_limited_length() {
        let book: String = (0..100_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(query_terms(Analyzer::Prose, &book).len(), MAX_QUERY_TERMS);
    }
}
