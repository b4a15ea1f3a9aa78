//! Chooses the definition of a chunk that answers a query.

use std::collections::BTreeSet;

use isolith_types::Symbol;

use crate::CodeQuery;
use crate::identifiers::Stemmer;

/// How comment lines, attributes and decorators begin, in any language.
const COMMENT_STARTS: [&str; 11] =
    ["//", "/*", "*", "#", "@", "[", "--", ";", "%", "\"\"\"", "'''"];

impl CodeQuery {
    /// Index of the symbol that matches the query best: by its name, and by the words in its
    /// definition and in the comment above. Words that few of the definitions contain count more.
    ///
    /// `text` is the chunk that defines the symbols, and `start_line` its first line.
    pub fn best_symbol(
        &self,
        text: &str,
        start_line: u32,
        symbols: &[Symbol],
        stemmer: &mut Stemmer,
    ) -> Option<usize> {
        if symbols.len() < 2 {
            return (!symbols.is_empty()).then_some(0);
        }
        let words: Vec<BTreeSet<String>> = definitions(text, start_line, symbols)
            .into_iter()
            .map(|definition| self.words_in(&definition, stemmer))
            .collect();
        let spread = |word: &String| words.iter().filter(|words| words.contains(word)).count();
        let weight = |word: &String| 1.0 / spread(word) as f32;
        let total: f32 =
            words.iter().flatten().collect::<BTreeSet<_>>().into_iter().map(weight).sum();
        let mut best = (0, f32::MIN);
        for (index, (symbol, words)) in symbols.iter().zip(&words).enumerate() {
            let share = words.iter().map(weight).sum::<f32>() / total.max(1.0);
            let score = self.name_similarity(&symbol.name, stemmer) + share;
            if score > best.1 {
                best = (index, score);
            }
        }
        Some(best.0)
    }

    /// The words of the query that a text contains.
    fn words_in(&self, text: &str, stemmer: &mut Stemmer) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        stemmer.for_each_term(text, &mut |term| {
            if let Some(stem) = self.stems().get(term) {
                found.insert(stem.clone());
            }
        });
        found
    }
}

/// The text of each definition: from the comment above it to that of the next one.
fn definitions(text: &str, start_line: u32, symbols: &[Symbol]) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let line = |symbol: &Symbol| (symbol.line.saturating_sub(start_line) as usize).min(lines.len());
    let mut starts = vec![0];
    for pair in symbols.windows(2) {
        let (previous, mut start) = (line(&pair[0]), line(&pair[1]));
        while start > previous + 1 && is_comment(lines[start - 1]) {
            start -= 1;
        }
        starts.push(start.max(*starts.last().unwrap_or(&0)));
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(&start, end)| lines[start..end.max(start)].join("\n")).collect()
}

fn is_comment(line: &str) -> bool {
    COMMENT_STARTS.iter().any(|start| line.trim_start().starts_with(start))
}

#[cfg(test)]
mod tests {
    use isolith_types::SymbolKind;

    use super::*;

    const QUEUE: &str = "\
impl Queue {
    /// The next task of this thread.
    fn next_local(&mut self) -> Option<Task> {
        self.run_queue.pop()
    }

    /// Takes work from another thread, chosen at random.
    #[inline]
    fn steal(&mut self) -> Option<Task> {
        let other = self.random();
        self.threads[other].pop()
    }

    fn push(&mut self, task: Task) {}
}";

    fn chosen(query: &str, names: &[(&str, u32)]) -> Option<usize> {
        let symbols: Vec<Symbol> = names
            .iter()
            .map(|&(name, line)| Symbol { name: name.to_owned(), kind: SymbolKind::Function, line })
            .collect();
        CodeQuery::parse(query).best_symbol(QUEUE, 10, &symbols, &mut Stemmer::new())
    }

    #[test]
    fn words_in_a_definition_and_above_it_count() {
        let names = [("next_local", 12), ("steal", 18), ("push", 23)];
        for (query, expected) in [
            ("how does a thread take work from others", 1),
            ("choose at random", 1),
            ("pop from the run queue", 0),
            ("push", 2),
            ("`next_local`", 0),
            ("nothing of this", 0),
            ("", 0),
        ] {
            assert_eq!(chosen(query, &names), Some(expected), "{query}");
        }
        assert_eq!(chosen("steal", &[]), None);
        assert_eq!(chosen("steal", &[("push", 23)]), Some(0));
    }

    #[test]
    fn wrong_lines_are_harmless() {
        for lines in [[0, 0, 0], [90, 12, 5], [12, 12, 12], [23, 18, 12], [u32::MAX, 0, u32::MAX]] {
            let names = [("a", lines[0]), ("b", lines[1]), ("c", lines[2])];
            assert!(chosen("pop at random", &names).is_some(), "{lines:?}");
        }
    }
}
