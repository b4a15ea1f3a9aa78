//! English stems.

use tantivy::tokenizer::{RawTokenizer, Stemmer, TokenFilter, TokenStream, Tokenizer};

/// How many stems are remembered: enough for most of a text, little enough for the cache.
const REMEMBERED: usize = 4096;

type English = <Stemmer as TokenFilter>::Tokenizer<RawTokenizer>;

/// The Snowball stem of a folded word. Words of other scripts are their own stems.
pub fn stem(word: &str) -> String {
    Stems::default().of(word).to_owned()
}

/// Makes stems, and remembers those it made last: most words of a text came before.
#[derive(Clone)]
pub(super) struct Stems {
    english: English,
    /// A word has one place, by its hash; it takes it from whichever was there.
    known: Vec<Known>,
}

#[derive(Clone, Default)]
struct Known {
    word: String,
    stem: String,
}

impl Default for Stems {
    fn default() -> Self {
        Self { english: Stemmer::default().transform(RawTokenizer::default()), known: Vec::new() }
    }
}

impl Stems {
    /// The stem of a folded word.
    pub(super) fn of<'w>(&'w mut self, word: &'w str) -> &'w str {
        if !has_stem(word) {
            return word;
        }
        if self.known.is_empty() {
            self.known.resize_with(REMEMBERED, Known::default);
        }
        let known = &mut self.known[hash(word) % REMEMBERED];
        if known.word != word {
            let mut stream = self.english.token_stream(word);
            stream.advance();
            known.word.clear();
            known.word.push_str(word);
            known.stem.clear();
            known.stem.push_str(&stream.token().text);
        }
        if known.stem.is_empty() { word } else { &known.stem }
    }
}

/// FNV-1a, which is quick for words.
fn hash(word: &str) -> usize {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as usize
}

/// Snowball leaves short words alone, and knows nothing of digits and other scripts.
fn has_stem(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_stems() {
        for (word, expected) in [
            ("connections", "connect"),
            ("running", "run"),
            ("is", "is"),
            ("dog's", "dog"),
            ("utf8s", "utf8s"),
            ("бегущий", "бегущий"),
            ("", ""),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn words_that_share_a_place_keep_their_stems() {
        let mut stems = Stems::default();
        let words: Vec<String> = (0..3 * REMEMBERED)
            .map(|n| n.to_string().bytes().map(|digit| char::from(b'g' + digit - b'0')).collect())
            .map(|name: String| name + "connections")
            .collect();
        for word in words.iter().chain(&words) {
            assert_eq!(stems.of(word), &word[..word.len() - "ions".len()]);
        }
        assert_eq!(stems.known.len(), REMEMBERED);
    }
}
