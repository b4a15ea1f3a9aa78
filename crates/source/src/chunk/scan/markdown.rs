use std::ops::Range;

use super::sections::{Heading, Sections};
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// The headings of a Markdown document.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let first = rows_of_front_matter(lines);
    let mut outline = outline_of(lines, first..lines.count());
    outline.parts[0].0.start = 0;
    outline
}

/// The headings in some rows.
pub(super) fn outline_of(lines: &Lines<'_>, rows: Range<usize>) -> Outline {
    let mut sections = Sections::new(lines, &rows);
    let heading = |row, level, name| Heading { name, level, row, first_row: row };
    let mut fence: Option<Fence> = None;
    let mut paragraph = false;
    for row in rows {
        let line = lines.row(row).trim_end();
        if let Some(open) = &fence {
            if open.is_closed_by(line) {
                fence = None;
            }
        } else if let Some(opened) = Fence::opened_by(line) {
            fence = Some(opened);
            paragraph = false;
        } else if let Some((level, title)) = atx_heading(line) {
            sections.heading(&heading(row, level, title));
            paragraph = false;
        } else if let Some(level) = setext_level(line).filter(|_| paragraph) {
            sections.heading(&heading(row - 1, level, lines.row(row - 1).trim()));
            paragraph = false;
        } else {
            paragraph = is_paragraph(line);
        }
    }
    sections.finish()
}

/// Three or more backticks or tildes; as many close what they opened.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let line = unindented(line)?;
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        // "```a```" is code within a line.
        let inline = mark == '`' && line[length..].contains('`');
        (length >= 3 && !inline).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        unindented(line)
            .is_some_and(|line| line.len() >= self.length && line.chars().all(|c| c == self.mark))
    }
}

/// A line without its indentation, unless that makes it code.
fn unindented(line: &str) -> Option<&str> {
    let bare = line.trim_start_matches(' ');
    (line.len() - bare.len() <= 3).then_some(bare)
}

fn atx_heading(line: &str) -> Option<(usize, &str)> {
    let line = unindented(line)?;
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let bare = title.trim_end_matches('#');
    // Closing marks stand apart from the title: "C#" keeps its own.
    let title = if bare.is_empty() || bare.ends_with(' ') { bare.trim_end() } else { title };
    (!title.is_empty()).then_some((level, title))
}

fn setext_level(line: &str) -> Option<usize> {
    let line = unindented(line)?;
    let only = |mark: char| !line.is_empty() && line.chars().all(|c| c == mark);
    if only('=') {
        Some(1)
    } else if only('-') {
        Some(2)
    } else {
        None
    }
}

/// Whether a line may be the title above a setext underline.
fn is_paragraph(line: &str) -> bool {
    let Some(line) = unindented(line) else { return false };
    !line.is_empty() && !line.starts_with(['>', '|', '<', '-', '*', '+', '#', '='])
}

/// Metadata between `---` lines at the top, which is not a heading.
fn rows_of_front_matter(lines: &Lines<'_>) -> usize {
    const LONGEST: usize = 200;
    if lines.row(0).trim_end() != "---" {
        return 0;
    }
    let rows = 1..lines.count().min(LONGEST);
    let mut ends = rows.filter(|row| matches!(lines.row(*row).trim_end(), "---" | "..."));
    ends.next().map_or(0, |row| row + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::outline::Definition;

    fn headings(text: &str) -> Vec<(String, Option<String>)> {
        let definitions = outline(&Lines::of(text)).definitions;
        let parent = |d: &Definition| d.parent.map(|index| definitions[index].name.clone());
        definitions.iter().map(|d| (d.name.clone(), parent(d))).collect()
    }

    fn named(expected: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        expected.iter().map(|(name, parent)| ((*name).into(), parent.map(Into::into))).collect()
    }

    #[test]
    fn headings_of_both_forms_are_found() {
        let text = "Title\n=====\n\ntext\n\n## One ##\n\n### In C#\n\nTwo\n---\n";
        let expected = [
            ("Title", None),
            ("One", Some("Title")),
            ("In C#", Some("One")),
            ("Two", Some("Title")),
        ];
        assert_eq!(headings(text), named(&expected));
    }

    #[test]
    fn what_only_looks_like_a_heading_is_none() {
        let text = "---\ntitle: x\n---\n#tag\n\n```sh\n# comment\n```\n\n~~~~\n# no\n~~~\n# no\n~~~~\n\n\
                    \u{20}   # code\n\n- item\n---\n\n| a |\n---\n####### seven\n# yes\n";
        assert_eq!(headings(text), named(&[("yes", None)]));
    }
}
