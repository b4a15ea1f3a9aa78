//! English stemming.

use frostem::{Algorithm, Stemmer};

/// Number of cached stems at first: enough for a query. Most tokenizers are made for one.
const MIN_SIZE: usize = 64;

/// The maximum: enough for most words of a text, small enough for the CPU cache.
const MAX_SIZE: usize = 4096;

/// Stems words and caches the results, because most words of a text are repeated.
#[derive(Clone)]
pub(super) struct StemCache {
    english: Stemmer,
    /// A word has one slot, by its hash; it replaces the previous word there.
    slots: Vec<CachedStem>,
    /// Number of words that have been stemmed since the cache has this size.
    missed: usize,
}

#[derive(Clone, Default)]
struct CachedStem {
    word: String,
    stem: String,
}

impl Default for StemCache {
    fn default() -> Self {
        Self { english: Stemmer::new(Algorithm::English), slots: Vec::new(), missed: 0 }
    }
}

impl StemCache {
    /// The Snowball stem of a normalized word. Words in other scripts are returned unchanged.
    pub(super) fn stem<'w>(&'w mut self, word: &'w str) -> &'w str {
        if !has_stem(word) {
            return word;
        }
        if self.missed >= self.slots.len() && self.slots.len() < MAX_SIZE {
            self.grow();
        }
        let size = self.slots.len();
        let cached = &mut self.slots[hash(word) % size];
        if cached.word != word {
            self.missed = self.missed.saturating_add(1);
            cached.word.clear();
            cached.word.push_str(word);
            cached.stem.clear();
            cached.stem.push_str(&self.english.stem(word));
        }
        if cached.stem.is_empty() { word } else { &cached.stem }
    }

    /// Grows in few steps, each of which forgets what was cached.
    fn grow(&mut self) {
        let size = (8 * self.slots.len()).clamp(MIN_SIZE, MAX_SIZE);
        self.slots.clear();
        self.slots.resize_with(size, CachedStem::default);
        self.missed = 0;
    }
}

/// FNV-1a, which is fast for short inputs.
fn hash(word: &str) -> usize {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as usize
}

/// Snowball does not change short words, or words with digits or other scripts.
fn has_stem(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stemmed() {
        for (word, expected) in [
            ("connections", "connect"),
            ("running", "run"),
            ("is", "is"),
            ("dog's", "dog"),
            ("utf8s", "utf8s"),
            ("бегущий", "бегущий"),
            ("", ""),
        ] {
            assert_eq!(StemCache::default().stem(word), expected, "{word}");
        }
    }

    #[test]
    fn words_that_share_a_slot_keep_their_stems() {
        let mut stems = StemCache::default();
        let words: Vec<String> = (0..3 * MAX_SIZE)
            .map(|n| n.to_string().bytes().map(|digit| char::from(b'g' + digit - b'0')).collect())
            .map(|name: String| name + "connections")
            .collect();
        for word in words.iter().chain(&words) {
            assert_eq!(stems.stem(word), &word[..word.len() - "ions".len()]);
        }
        assert_eq!(stems.slots.len(), MAX_SIZE);
    }

    #[test]
    fn the_cache_stays_small_for_few_words() {
        let mut stems = StemCache::default();
        for word in ["connections", "running", "is", "tested"].repeat(1000) {
            stems.stem(word);
        }
        assert_eq!(stems.slots.len(), MIN_SIZE);
    }
}
