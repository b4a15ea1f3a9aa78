//! Splits text into names, words and stems.

use isolith_text::{Analyzer, Tokenizer};

/// Splits a text into names: runs of letters, digits and underscores.
pub(crate) fn split_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_name_char(c)).filter(|name| !name.is_empty())
}

pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits a name into lower-case words at underscores and at camel-case boundaries; the last of
/// several capitals begins a word if a lower-case letter follows it.
pub(crate) fn split_words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = name.chars().peekable();
    let mut last = '_';
    while let Some(c) = chars.next() {
        let before_lowercase = chars.peek().is_some_and(|next| next.is_lowercase());
        let is_boundary = c.is_uppercase() && (!last.is_uppercase() || before_lowercase);
        if !word.is_empty() && (is_boundary || !c.is_alphanumeric()) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Stems words as the text index does. Reuse it: it caches stems.
pub struct Stemmer(Tokenizer);

impl Default for Stemmer {
    fn default() -> Self {
        Self::new()
    }
}

impl Stemmer {
    /// A stemmer with an empty cache.
    pub fn new() -> Self {
        Self(Tokenizer::new(Analyzer::Code))
    }

    /// Calls `visit` with each term of a text.
    pub(crate) fn for_each_term(&mut self, text: &str, visit: &mut dyn FnMut(&str)) {
        self.0.for_each(text, &mut |term, _| visit(term));
    }

    /// The stem of a word. The index splits a word with digits; this joins the parts again.
    pub(crate) fn stem(&mut self, word: &str) -> String {
        if let Some(stem) = self.0.term_of_word(word) {
            return stem.to_owned();
        }
        let mut stem = String::with_capacity(word.len());
        let mut last = None;
        self.0.for_each(word, &mut |term, position| {
            // A term at the same position as the previous one repeats all parts as a whole.
            if last != Some(position) {
                stem.push_str(term);
            }
            last = Some(position);
        });
        stem
    }

    /// Two joined forms of words: the concatenation of their stems, and the stem of their
    /// concatenation. Equal names share one of them, however they are split into words.
    pub(crate) fn joined(&mut self, words: &[String]) -> [String; 2] {
        [words.iter().map(|word| self.stem(word)).collect(), self.stem(&words.concat())]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stems_begin_like_their_words(name in "[a-zA-Z][a-zA-Z0-9_éß\u{301}-]{0,20}|[a-z]{1,6}") {
            let first = name[..1].to_lowercase();
            for joined in Stemmer::new().joined(&split_words(&name)) {
                prop_assert!(joined.starts_with(&first), "{name}: {joined}");
            }
        }
    }

    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("parseHTTPHeader", "parse http header"),
            ("RetryPolicy", "retry policy"),
            ("snake_case__name", "snake case name"),
            ("MAX_RETRIES", "max retries"),
            ("utf8Decoder", "utf8 decoder"),
            ("HTTP2Server", "http2 server"),
            ("OAuth2PasswordBearer", "o auth2 password bearer"),
            ("kebab-case.name", "kebab case name"),
            ("\u{c9}coleNormale", "\u{e9}cole normale"),
            ("__init__", "init"),
            ("_", ""),
            ("", ""),
        ] {
            assert_eq!(split_words(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn joined_and_separated_words_match() {
        let mut stemmer = Stemmer::new();
        for (left, right) in [
            ("RateLimiters", "rate_limiter"),
            ("ratelimiters", "RateLimiter"),
            ("rate_limiting", "RateLimit"),
            ("utf8_decoder", "UTF8Decoders"),
            ("FunctionK", "functionk"),
        ] {
            let [left, right] = [left, right].map(|name| stemmer.joined(&split_words(name)));
            assert!(left.iter().any(|joined| right.contains(joined)), "{left:?} {right:?}");
        }
    }
}
