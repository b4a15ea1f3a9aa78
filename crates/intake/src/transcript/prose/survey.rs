//! Determines the style of a text from its beginning.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::speaker::{heading, heading_text, is_role, label};

/// How a text is split into turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Style {
    /// At lines that begin with one of these names, in lower case.
    Labels(Vec<String>),
    /// At headings that consist of one of these names, in lower case.
    Headings(Vec<String>),
    /// Between quoted lines (the user) and other lines (the assistant).
    Quotes,
    /// At headings.
    Sections,
    /// At blank lines.
    Paragraphs,
}

/// The style of a text, from its beginning only: a file that grows keeps its style.
pub(crate) fn survey(head: &str, markdown: bool) -> Style {
    let counts = Counts::of(head);
    if let Some(speakers) = counts.headings() {
        return Style::Headings(speakers);
    }
    if let Some(speakers) = counts.labels() {
        return Style::Labels(speakers);
    }
    if counts.begins_with_quote && counts.quotes >= 2 {
        return Style::Quotes;
    }
    if markdown && counts.any_heading { Style::Sections } else { Style::Paragraphs }
}

/// Whether a line opens or closes a code block.
pub(crate) fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

#[derive(Debug, Default)]
struct Counts {
    labels: HashMap<String, usize>,
    headings: HashMap<(usize, String), usize>,
    /// The number of paragraphs.
    blocks: usize,
    /// The number of paragraphs that begin with a label.
    labelled_blocks: usize,
    /// Runs of quoted lines.
    quotes: usize,
    begins_with_quote: bool,
    any_heading: bool,
}

impl Counts {
    fn of(head: &str) -> Self {
        let mut counts = Self::default();
        let mut fenced = false;
        let mut in_quote = false;
        let mut after_blank = true;
        for line in head.lines() {
            if is_fence(line) {
                fenced = !fenced;
            }
            if line.trim().is_empty() {
                after_blank = true;
                continue;
            }
            if !fenced {
                let quoted = line.starts_with('>');
                counts.begins_with_quote |= counts.blocks == 0 && quoted;
                counts.quotes += usize::from(quoted && !in_quote);
                in_quote = quoted;
                let found = label(line);
                counts.blocks += usize::from(after_blank);
                counts.labelled_blocks += usize::from(after_blank && found.is_some());
                if let Some(found) = found {
                    *counts.labels.entry(found.name.to_lowercase()).or_default() += 1;
                }
                counts.any_heading |= heading_text(line).is_some();
                if let Some((level, found)) = heading(line) {
                    let key = (level, found.name.to_lowercase());
                    *counts.headings.entry(key).or_default() += 1;
                }
            }
            after_blank = false;
        }
        counts
    }

    /// The speakers, if lines are labelled with them. A name must be a role or occur twice; if none
    /// is a role, at least half of the paragraphs must begin with a label.
    fn labels(&self) -> Option<Vec<String>> {
        let speaks = |(name, count): &(&String, &usize)| is_role(name) || **count >= 2;
        let speakers: Vec<(&String, &usize)> = self.labels.iter().filter(speaks).collect();
        let roles = speakers.iter().filter(|(name, _)| is_role(name)).count();
        let chat = speakers.len() >= 2 && (roles > 0 || self.labelled_blocks * 2 >= self.blocks);
        chat.then(|| sorted(speakers.into_iter().map(|(name, _)| name)))
    }

    /// The speakers, if headings name them. One must be a role, because any document may have
    /// headings that look like names.
    fn headings(&self) -> Option<Vec<String>> {
        let level = self.headings.keys().filter(|(_, name)| is_role(name)).map(|it| it.0).min()?;
        let here = self.headings.iter().filter(|((at, _), _)| *at == level);
        let speaks = |(name, count): &(&String, &usize)| is_role(name) || **count >= 2;
        let speakers = here.map(|((_, name), count)| (name, count)).filter(speaks);
        let speakers: Vec<(&String, &usize)> = speakers.collect();
        let turns: usize = speakers.iter().map(|(_, count)| **count).sum();
        (turns >= 2).then(|| sorted(speakers.into_iter().map(|(name, _)| name)))
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(names: &[&str]) -> Style {
        Style::Labels(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn chats_and_documents_are_distinguished() {
        let headings =
            |names: &[&str]| Style::Headings(names.iter().map(|it| (*it).to_owned()).collect());
        for (text, expected) in [
            ("User: hi\nAssistant: hello\n", labels(&["assistant", "user"])),
            ("Anna: hi\nBen: hello\nAnna: so\nBen: bye\n", labels(&["anna", "ben"])),
            ("Host: a.com\nUser: admin\nPort: 5\n", Style::Paragraphs),
            ("Anna: once\n\nthen prose\n", Style::Paragraphs),
            ("## Human\nhi\n## Assistant\nhello\n", headings(&["assistant", "human"])),
            ("## Anna\nhi\n## Claude\nso\n## Anna\nbye\n", headings(&["anna", "claude"])),
            ("## Added\n- x\n## Fixed\n- y\n## Added\n- z\n## Fixed\n", Style::Sections),
            ("> why?\n\nbecause\n\n> really?\n\nyes\n", Style::Quotes),
            ("prose\n\n> quoted\n\nprose\n\n> quoted\n", Style::Paragraphs),
            (
                "# Choices\n\nText.\n\nSome more.\n\n**Size**: 1\n**Cost**: 2\n\nText.\n\n**Size**: 3\n**Cost**: 4\n",
                Style::Sections,
            ),
            ("```\nUser: hi\nAssistant: hello\n```\n", Style::Paragraphs),
        ] {
            assert_eq!(survey(text, true), expected, "{text}");
        }
        assert_eq!(survey("# one\ntext\n# two\n", false), Style::Paragraphs);
    }
}
