//! Notes and questions, the same in every run of a build.

use fastrand::Rng;
use serde_json::{Value, json};

use super::drawer_arguments;

/// A source of English words. Editing the file changes the texts.
const CORPUS: &str = include_str!("../../RESULTS.md");

pub(super) struct Texts {
    words: Vec<&'static str>,
    rng: Rng,
}

impl Texts {
    pub(super) fn new(seed: u64) -> Self {
        let words = CORPUS.split(|letter: char| !letter.is_alphabetic());
        let mut words: Vec<&str> = words.filter(|word| word.len() > 2).collect();
        words.sort_unstable();
        words.dedup();
        Self { words, rng: Rng::with_seed(seed) }
    }

    pub(super) fn sentence(&mut self) -> String {
        let length = self.rng.usize(8..40);
        self.words(length)
    }

    pub(super) fn question(&mut self) -> String {
        let length = self.rng.usize(3..9);
        format!("what about {}", self.words(length))
    }

    /// The arguments of `tool` for a new drawer.
    pub(super) fn drawer(&mut self, tool: &str) -> Value {
        let room = format!("room{}", self.rng.u32(..50));
        drawer_arguments(tool, &self.sentence(), &room)
    }

    /// Drawers as JSON lines, for an import.
    pub(super) fn drawers(&mut self, count: usize) -> String {
        let mut line = |at: usize| {
            let room = format!("room{}", at % 50);
            json!({ "text": self.sentence(), "wing": "bench", "room": room }).to_string() + "\n"
        };
        (0..count).map(&mut line).collect()
    }

    fn words(&mut self, length: usize) -> String {
        let Self { words, rng } = self;
        let words: Vec<&str> = (0..length).filter_map(|_| rng.choice(&*words)).copied().collect();
        words.join(" ")
    }
}
