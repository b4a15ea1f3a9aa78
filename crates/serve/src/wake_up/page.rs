//! Fills a text with lines, within a budget of tokens.

use std::collections::BTreeSet;

pub(super) use crate::text::tokens;

pub(super) struct Page {
    text: String,
    budget: u32,
    used: u32,
    left_out: u32,
    /// Lines that are there already.
    seen: BTreeSet<String>,
}

impl Page {
    pub(super) fn new(budget: u32) -> Self {
        Self { text: String::new(), budget, used: 0, left_out: 0, seen: BTreeSet::new() }
    }

    /// Adds a part, which may take this percentage of the budget and of what is left of it.
    pub(super) fn add(&mut self, title: &str, percent: u32, lines: Vec<String>) {
        let title = format!("{title}:\n");
        let share = (self.budget * percent / 100).min(self.budget - self.used);
        let mut cost = tokens(&title);
        let mut part = String::new();
        for line in lines {
            if self.seen.contains(&line) {
                continue;
            }
            let shown = format!("- {line}\n");
            let more = tokens(&shown);
            if cost + more > share {
                self.left_out += 1;
                continue;
            }
            cost += more;
            part.push_str(&shown);
            self.seen.insert(line);
        }
        if !part.is_empty() {
            self.used += cost;
            self.text.push_str(&title);
            self.text.push_str(&part);
        }
    }

    /// The text, and how many lines did not fit.
    pub(super) fn finish(self) -> (String, u32) {
        (self.text, self.left_out)
    }
}
