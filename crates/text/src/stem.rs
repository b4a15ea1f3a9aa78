//! English stems.

use frostem::{Algorithm, Stemmer};

/// How many stems are remembered: enough for most of a text, little enough for the cache.
const REMEMBERED: usize = 4096;

/// Makes stems, and remembers those it made last: most words of a text came before.
#[derive(Clone)]
pub(super) struct Stems {
    english: Stemmer,
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
        Self { english: Stemmer::new(Algorithm::English), known: Vec::new() }
    }
}

impl Stems {
    /// The Snowball stem of a folded word. Words of other scripts are their own stems.
    pub(super) fn of<'w>(&'w mut self, word: &'w str) -> &'w str {
        if !has_stem(word) {
            return word;
        }
        if self.known.is_empty() {
            self.known.resize_with(REMEMBERED, Known::default);
        }
        let known = &mut self.known[hash(word) % REMEMBERED];
        if known.word != word {
            known.word.clear();
            known.word.push_str(word);
            known.stem.clear();
            known.stem.push_str(&self.english.stem(word));
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
            assert_eq!(Stems::default().of(word), expected, "{word}");
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
