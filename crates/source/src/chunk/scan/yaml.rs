use super::sections::{Heading, Sections};
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// Longer keys are data.
const LONGEST_KEY: usize = 80;

/// The keys of a YAML file: all of the outermost level, and those of the next one that hold more
/// than a value. Indentation alone tells them, so templates of YAML are read as well.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut sections = Sections::new(lines, &(0..lines.count()));
    let mut place = Place::default();
    for row in 0..lines.count() {
        let line = lines.row(row).trim_end();
        if line == "---" || line.starts_with("--- ") || line == "..." {
            place = Place::default();
            sections.close_at(0, row);
            sections.cut(row);
            continue;
        }
        let bare = line.trim_start_matches(' ');
        let indent = line.len() - bare.len();
        if bare.is_empty() || bare.starts_with('#') || place.is_in_scalar(indent) {
            continue;
        }
        let key = key(bare);
        let level = place.level(indent);
        if let (Some(key), Some(level)) = (&key, level) {
            let heading = Heading { name: key.name, level, row, first_row: row };
            match (key.holds, level) {
                (Holds::Value, 0) => sections.minor_heading(&heading),
                (Holds::Value, _) => {}
                (Holds::Block | Holds::Scalar, _) => sections.heading(&heading),
            }
        }
        place.enter(indent, key.as_ref());
    }
    sections.finish()
}

/// Where a line stands.
#[derive(Default)]
struct Place {
    /// The indentation of a block scalar's key: what is indented more is its text.
    scalar: Option<usize>,
    /// Whether the last outermost key holds a block.
    is_open: bool,
    /// The indentation of the next level, once known.
    inner: Option<usize>,
}

impl Place {
    fn is_in_scalar(&mut self, indent: usize) -> bool {
        if self.scalar.is_some_and(|key| indent <= key) {
            self.scalar = None;
        }
        self.scalar.is_some()
    }

    /// The level of a line: 0 and 1 are the levels that count.
    fn level(&mut self, indent: usize) -> Option<usize> {
        if indent == 0 {
            return Some(0);
        }
        let inner = self.inner.get_or_insert(indent);
        (self.is_open && *inner == indent).then_some(1)
    }

    fn enter(&mut self, indent: usize, key: Option<&Key<'_>>) {
        let holds = key.map_or(Holds::Value, |key| key.holds);
        if indent == 0 {
            self.is_open = holds == Holds::Block;
            self.inner = None;
        }
        if holds == Holds::Scalar {
            self.scalar = Some(indent);
        }
    }
}

struct Key<'t> {
    name: &'t str,
    holds: Holds,
}

/// What comes after a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Value,
    /// Lines with more indentation.
    Block,
    /// The same, but they are text: `|` or `>`.
    Scalar,
}

/// The key that a line without its indentation begins with.
fn key(line: &str) -> Option<Key<'_>> {
    let (name, rest) = match line.chars().next()? {
        quote @ ('"' | '\'') => line[1..].split_once(quote)?,
        '-' | '?' | '{' | '[' | ']' | '}' | '&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' => {
            return None;
        }
        _ => {
            let end = line.find(": ").or_else(|| line.find(":\t"));
            let end = end.or_else(|| line.ends_with(':').then(|| line.len() - 1))?;
            line.split_at(end)
        }
    };
    let rest = rest.trim_start().strip_prefix(':')?;
    let name = name.trim_end();
    let odd = name.is_empty() || name.contains(" #") || name.chars().count() > LONGEST_KEY;
    (!odd).then(|| Key { name, holds: holds(rest.trim()) })
}

fn holds(value: &str) -> Holds {
    // Anchors and tags stand before the value.
    let mut words = value.split_whitespace();
    let first = words.find(|word| !word.starts_with(['&', '!']));
    match first {
        None => Holds::Block,
        Some(word) if word.starts_with('#') => Holds::Block,
        Some(word) if word.starts_with(['|', '>']) => Holds::Scalar,
        Some(_) => Holds::Value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<(String, Option<usize>)> {
        let outline = outline(&Lines::of(text));
        outline.definitions.into_iter().map(|it| (it.name, it.parent)).collect()
    }

    fn named(expected: &[(&str, Option<usize>)]) -> Vec<(String, Option<usize>)> {
        expected.iter().map(|(name, parent)| ((*name).to_owned(), *parent)).collect()
    }

    #[test]
    fn keys_of_two_levels_are_found() {
        let text = "name: CI\n\"on\":\n  push: {}\n  schedule:\n    - cron: '0 0 * * *'\n# c\njobs: # c\n  \
                    build:\n    steps:\n      - run: x\n  test: &t\n    needs: build\n";
        let expected = [
            ("name", None),
            ("on", None),
            ("schedule", Some(1)),
            ("jobs", None),
            ("build", Some(3)),
            ("test", Some(3)),
        ];
        assert_eq!(keys(text), named(&expected));
    }

    #[test]
    fn text_and_lists_have_no_keys() {
        let text = "script: |\n  a:\n    b: c\n\n  d:\nlist:\n- one: 1\n  two:\n    x: y\n- http://a\n\
                    inline: { a: 1 }\n{{- if .x }}\nkind: A\n{{- end }}\nhttp://b\n";
        let expected = [("script", None), ("list", None), ("inline", None), ("kind", None)];
        assert_eq!(keys(text), named(&expected));
    }

    #[test]
    fn documents_are_apart() {
        let text = "a:\n  b:\n    c: 1\n---\nd: 1\n";
        let outline = outline(&Lines::of(text));
        let extents = outline.definitions.iter().map(|it| &text[it.extent.clone()]);
        assert_eq!(
            extents.collect::<Vec<_>>(),
            ["a:\n  b:\n    c: 1\n", "  b:\n    c: 1\n", "d: 1\n"]
        );
    }
}
