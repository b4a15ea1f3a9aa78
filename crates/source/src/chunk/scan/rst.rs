use super::sections::{Heading, Sections};
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// An underline of this length makes a title of a longer line, too.
const SHORTEST_ADORNMENT: usize = 4;

/// The section titles of a reStructuredText document: lines that are underlined, and perhaps
/// overlined, with one punctuation character. The first style that is used is the highest level.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut sections = Sections::new(lines, &(0..lines.count()));
    let mut styles: Vec<(char, bool)> = Vec::new();
    let mut row = 0;
    while row < lines.count() {
        let Some(title) = Title::at(lines, row) else {
            row += 1;
            continue;
        };
        let level = styles.iter().position(|style| *style == title.style).unwrap_or_else(|| {
            styles.push(title.style);
            styles.len() - 1
        });
        let name = lines.row(title.row).trim();
        sections.heading(&Heading { name, level, row: title.row, first_row: row });
        // Past the underline.
        row = title.row + 2;
    }
    sections.finish()
}

struct Title {
    row: usize,
    /// The character, and whether it stands above the title, too.
    style: (char, bool),
}

impl Title {
    /// The title that begins in a row, which comes after a blank one.
    fn at(lines: &Lines<'_>, row: usize) -> Option<Self> {
        let before_is_blank = row == 0 || lines.row(row - 1).trim().is_empty();
        if !before_is_blank || row + 1 >= lines.count() {
            return None;
        }
        let line = |row: usize| lines.row(row).trim_end();
        match adornment(line(row)) {
            Some(above) => {
                let title = line(row + 1);
                let under = (row + 2 < lines.count()).then(|| adornment(line(row + 2))).flatten();
                let same = under == Some(above) && is_title(title);
                (same && fits(title.trim(), above.1))
                    .then_some(Self { row: row + 1, style: (above.0, true) })
            }
            None => {
                let title = line(row);
                let (mark, length) = adornment(line(row + 1))?;
                (is_title(title) && !title.starts_with([' ', '\t']) && fits(title, length))
                    .then_some(Self { row, style: (mark, false) })
            }
        }
    }
}

/// The character and the length of a line that is one punctuation character over and over.
fn adornment(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(char::is_ascii_punctuation)?;
    // Two dots or colons begin a comment or a literal block.
    let length = line.len();
    (length >= 2 && !matches!(line, ".." | "::") && line.chars().all(|c| c == mark))
        .then_some((mark, length))
}

fn is_title(line: &str) -> bool {
    line.contains(char::is_alphanumeric) && !line.starts_with(".. ")
}

fn fits(title: &str, length: usize) -> bool {
    length >= SHORTEST_ADORNMENT || length >= title.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(String, Option<usize>)> {
        let outline = outline(&Lines::of(text));
        outline.definitions.into_iter().map(|it| (it.name, it.parent)).collect()
    }

    #[test]
    fn the_first_style_is_the_highest_level() {
        let text = "=====\nGuide\n=====\n\nInstall\n=======\n\ntext\n\nFrom source\n-----------\n\n\
                    text\n\nUse\n===\n\nA longer title\n----\n";
        let expected = [
            ("Guide", None),
            ("Install", Some(0)),
            ("From source", Some(1)),
            ("Use", Some(0)),
            ("A longer title", Some(3)),
        ];
        assert_eq!(headings(text), expected.map(|(name, parent)| (name.to_owned(), parent)));
    }

    #[test]
    fn what_only_looks_like_a_title_is_none() {
        let text = "text\nmore\n----\n\n----\n\n    code\n    ====\n\n.. note::\n..\n\n\
                    ====  ====\na     b\n====  ====\n\n+---+\n| a |\n+---+\n\n****\n\n";
        assert_eq!(headings(text), []);
    }

    #[test]
    fn an_overline_belongs_to_its_section() {
        let text = "text\n\n*****\n Two\n*****\nmore\n";
        let outline = outline(&Lines::of(text));
        let two = &outline.definitions[0];
        assert_eq!((outline.cuts[0].at, two.lead), (6, 6));
        assert_eq!(&text[two.extent.clone()], " Two\n*****\nmore\n");
    }
}
