//! Names and texts as words and stems.

use isolith_text::{Analyzer, Tokenizer};

/// Cuts a text into names: letters, digits and underscores.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_of_name(c)).filter(|name| !name.is_empty())
}

/// Whether a name can have such a character.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Cuts a name into its words, in lower case: at underscores, before a capital that
/// follows another letter, and before the last of several capitals if a small letter
/// follows it.
pub(crate) fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = name.chars().peekable();
    let mut last = '_';
    while let Some(c) = chars.next() {
        let follows = chars.peek().is_some_and(|next| next.is_lowercase());
        let turns = c.is_uppercase() && (!last.is_uppercase() || follows);
        if !word.is_empty() && (turns || !c.is_alphanumeric()) {
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

/// Makes stems as the text index does.
pub(crate) struct Stemmer(Tokenizer);

impl Stemmer {
    pub(crate) fn new() -> Self {
        Self(Tokenizer::new(Analyzer::Code))
    }

    /// The stem of a word. One with digits is several to the index; it stays one here.
    pub(crate) fn stem(&mut self, word: &str) -> String {
        let mut stem = String::with_capacity(word.len());
        let mut last = None;
        self.0.each(word, &mut |term, position| {
            // A term at the position of the one before it stands for all parts at once.
            if last != Some(position) {
                stem.push_str(term);
            }
            last = Some(position);
        });
        stem
    }

    /// Two ways to write words as one: their stems together, and the stem of all of
    /// them together. Equal words have one of them in common, wherever they were cut.
    pub(crate) fn joined(&mut self, words: &[String]) -> [String; 2] {
        [words.iter().map(|word| self.stem(word)).collect(), self.stem(&words.concat())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
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
            assert_eq!(words_of(name).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn words_written_together_or_apart_are_equal() {
        let mut stemmer = Stemmer::new();
        for (left, right) in [
            ("RateLimiters", "rate_limiter"),
            ("ratelimiters", "RateLimiter"),
            ("rate_limiting", "RateLimit"),
            ("utf8_decoder", "UTF8Decoders"),
            ("FunctionK", "functionk"),
        ] {
            let [left, right] = [left, right].map(|name| stemmer.joined(&words_of(name)));
            assert!(left.iter().any(|way| right.contains(way)), "{left:?} {right:?}");
        }
    }
}
