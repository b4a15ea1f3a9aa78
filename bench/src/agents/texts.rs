//! Notes and questions, the same ones in every run.

use fastrand::Rng;
use serde_json::{Value, json};

use super::drawer_of;

/// Words that people use when they talk about their work and days.
const PROSE: &str = include_str!("../../RESULTS.md");

pub(super) struct Texts {
    words: Vec<&'static str>,
    chance: Rng,
}

impl Texts {
    pub(super) fn new(seed: u64) -> Self {
        let words = PROSE.split(|letter: char| !letter.is_alphabetic());
        let mut words: Vec<&str> = words.filter(|word| word.len() > 2).collect();
        words.sort_unstable();
        words.dedup();
        Self { words, chance: Rng::with_seed(seed) }
    }

    pub(super) fn sentence(&mut self) -> String {
        let length = self.chance.usize(8..40);
        self.some(length)
    }

    pub(super) fn question(&mut self) -> String {
        let length = self.chance.usize(3..9);
        format!("what about {}", self.some(length))
    }

    /// What a tool takes to remember something new.
    pub(super) fn drawer(&mut self, tool: &str) -> Value {
        let room = format!("room{}", self.chance.u32(..50));
        drawer_of(tool, &self.sentence(), &room)
    }

    /// Lines for an import.
    pub(super) fn drawers(&mut self, count: usize) -> String {
        let mut line = |at: usize| {
            let room = format!("room{}", at % 50);
            json!({ "text": self.sentence(), "wing": "bench", "room": room }).to_string() + "\n"
        };
        (0..count).map(&mut line).collect()
    }

    fn some(&mut self, length: usize) -> String {
        let Self { words, chance } = self;
        let words: Vec<&str> =
            (0..length).filter_map(|_| chance.choice(&*words)).copied().collect();
        words.join(" ")
    }
}
