use super::sections::{Heading, Sections};
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// The section titles of an AsciiDoc document: `== Title`, and underlined ones. What is between
/// delimiters of verbatim blocks is none.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut sections = Sections::new(lines, &(0..lines.count()));
    let mut verbatim: Option<&str> = None;
    let mut row = 0;
    while row < lines.count() {
        let line = lines.row(row).trim_end();
        let mut next = row + 1;
        if let Some(delimiter) = verbatim {
            if line == delimiter {
                verbatim = None;
            }
        } else if let Some((level, name)) = title(line) {
            sections.heading(&Heading { name, level, row, first_row: row });
        } else if let Some(level) = underlined(lines, row) {
            sections.heading(&Heading { name: line, level, row, first_row: row });
            next += 1;
        } else if is_verbatim_delimiter(line) {
            verbatim = Some(line);
        }
        row = next;
    }
    sections.finish()
}

/// One to six signs and a space. Those of Markdown are allowed.
fn title(line: &str) -> Option<(usize, &str)> {
    let mark = line.chars().next().filter(|c| matches!(c, '=' | '#'))?;
    let level = line.chars().take_while(|c| *c == mark).count();
    let name = line[level..].strip_prefix(' ')?.trim();
    (level <= 6 && !name.is_empty()).then_some((level, name))
}

/// The level of a title with a line of about its own length under it.
fn underlined(lines: &Lines<'_>, row: usize) -> Option<usize> {
    const MARKS: [char; 5] = ['=', '-', '~', '^', '+'];
    let before_is_blank = row == 0 || lines.row(row - 1).trim().is_empty();
    if !before_is_blank || row + 1 >= lines.count() {
        return None;
    }
    let (name, under) = (lines.row(row).trim_end(), lines.row(row + 1).trim_end());
    let level = MARKS.iter().position(|mark| under.starts_with(*mark))?;
    let is_line = under.chars().all(|c| c == MARKS[level]);
    let is_name = name.starts_with(char::is_alphanumeric);
    let fits = name.chars().count().abs_diff(under.len()) <= 1 && under.len() >= 3;
    (is_line && is_name && fits).then_some(level + 1)
}

/// Four or more of one sign, or three backticks and what follows them.
fn is_verbatim_delimiter(line: &str) -> bool {
    let all = |mark: char| line.len() >= 4 && line.chars().all(|c| c == mark);
    all('-') || all('.') || all('+') || all('/') || line == "```"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(String, Option<usize>)> {
        let outline = outline(&Lines::of(text));
        outline.definitions.into_iter().map(|it| (it.name, it.parent)).collect()
    }

    #[test]
    fn titles_of_both_forms_are_found() {
        let text = "= Manual\nAn Author\n\n== Install\n\ntext\n\n=== From source\n\nUsage\n-----\n\n\
                    ## Options\n";
        let expected = [
            ("Manual", None),
            ("Install", Some(0)),
            ("From source", Some(1)),
            ("Usage", Some(0)),
            ("Options", Some(0)),
        ];
        assert_eq!(headings(text), expected.map(|(name, parent)| (name.to_owned(), parent)));
    }

    #[test]
    fn what_is_in_verbatim_blocks_is_no_title() {
        let text = "[source,sh]\n----\n= no\n== no\n----\n\n....\n= no\n....\n\n====\nAn example.\n\
                    ====\n\n//////\n== no\n//////\n\n==no\n======= seven\n== yes\n";
        assert_eq!(headings(text), [("yes".to_owned(), None)]);
    }
}
