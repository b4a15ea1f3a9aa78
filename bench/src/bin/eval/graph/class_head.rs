//! Finds base classes in the head of a class.

use std::collections::BTreeSet;

use super::scip::Occurrence;

/// Maximum length of a head.
const MAX_HEAD_CHARS: usize = 2_000;

/// The positions of base classes in the head of a class, as lines and columns from 0. Empty if the
/// definition is not a class.
pub(super) fn bases(path: &str, lines: &[String], class: &Occurrence) -> BTreeSet<(usize, usize)> {
    let mut locations = BTreeSet::new();
    let before: String = line(lines, class.line).iter().take(class.start).collect();
    let word = before.split_whitespace().last().unwrap_or_default();
    if !matches!(word, "class" | "interface") {
        return locations;
    }
    let python = path.ends_with(".py");
    let mut state = HeadParser { depth: 0, inside: false, word: String::new(), value: false };
    let mut at = (class.line, class.end);
    for _ in 0..MAX_HEAD_CHARS {
        let Some(c) = line(lines, at.0).get(at.1).copied() else {
            at = (at.0 + 1, 0);
            state.word.clear();
            if at.0 >= lines.len() {
                break;
            }
            continue;
        };
        let starts_word = state.word.is_empty() && (c.is_alphabetic() || c == '_' || c == '$');
        if starts_word && state.is_base(python) {
            locations.insert(at);
        }
        if c == '=' && state.is_base(python) {
            // The word before it was the name of a keyword argument.
            locations.pop_last();
        }
        if state.take(c, python) {
            break;
        }
        at.1 += 1;
    }
    locations.retain(|(row, column)| {
        let rest: String = line(lines, *row).iter().skip(*column).collect();
        !["extends ", "implements "].iter().any(|word| rest.starts_with(word))
    });
    locations
}

fn line(lines: &[String], index: usize) -> Vec<char> {
    lines.get(index).map(|line| line.chars().collect()).unwrap_or_default()
}

struct HeadParser {
    /// Number of open brackets.
    depth: usize,
    /// Whether `extends` or `implements` was read.
    inside: bool,
    /// The current word.
    word: String,
    /// Whether the value of a keyword argument follows, as in `metaclass=Meta`.
    value: bool,
}

impl HeadParser {
    fn is_base(&self, python: bool) -> bool {
        if python { self.depth == 1 && !self.value } else { self.depth == 0 && self.inside }
    }

    /// Processes a character. Returns whether the head ends with it.
    fn take(&mut self, c: char, python: bool) -> bool {
        if c.is_alphanumeric() || matches!(c, '_' | '$') {
            self.word.push(c);
            return false;
        }
        if self.depth == 0 && matches!(self.word.as_str(), "extends" | "implements") {
            self.inside = true;
        }
        self.word.clear();
        match c {
            '{' if self.depth == 0 => return true,
            ':' if self.depth == 0 && python => return true,
            '(' | '[' | '<' | '{' => self.depth += 1,
            ')' | ']' | '>' | '}' => self.depth = self.depth.saturating_sub(1),
            '=' => self.value = true,
            ',' => self.value = false,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_classes_are_found() {
        let table = [
            ("a.py", "class A(B, c.D, E[F], metaclass=M): x", "A", vec!["B", "c", "D", "E"]),
            ("a.py", "x = A", "A", vec![]),
            (
                "a.ts",
                "class A<T extends X> extends B<Y> implements C, d.E {",
                "A",
                vec!["B", "C", "d", "E"],
            ),
            ("a.ts", "export interface A extends B {", "A", vec!["B"]),
        ];
        for (path, text, name, expected) in table {
            let start = text.find(name).unwrap();
            let (symbol, end) = (String::new(), start + name.len());
            let class = Occurrence { line: 0, start, end, symbol, defines: true };
            let locations = bases(path, &[text.to_owned()], &class);
            let word = |at: &(usize, usize)| {
                let rest = &text[at.1..];
                rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
            };
            assert_eq!(locations.iter().map(word).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
