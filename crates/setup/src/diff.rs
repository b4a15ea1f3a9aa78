/// How much of a line is shown that is there before and after.
const SHOWN: usize = 60;

/// What changes from one text to another, in lines: those that go begin with `-`, those that
/// come with `+`, and one before and after them with a blank. Empty if nothing changes.
///
/// All that changes is shown, but of long lines no more than the neighbourhood: a file can be
/// one line, and what else is in it is nobody's business.
pub fn diff(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let start = shared(old.iter(), new.iter());
    let rest = (old.len() - start).min(new.len() - start);
    let end = shared(old.iter().rev().take(rest), new.iter().rev().take(rest));
    let (gone, come) = (&old[start..old.len() - end], &new[start..new.len() - end]);

    let mut text = String::new();
    if let Some(line) = start.checked_sub(1).map(|line| old[line]) {
        push(&mut text, ' ', &shorten(line));
    }
    match kept(gone, come) {
        Some(kept) => push_gaps(&mut text, gone, &kept),
        None => {
            let (gone, come) = (gone.concat(), come.concat());
            let same = shared_text(&gone, &come);
            push(&mut text, '-', &clip(&gone, same));
            push(&mut text, '+', &clip(&come, same));
        }
    }
    if let Some(line) = old.get(old.len() - end) {
        push(&mut text, ' ', &shorten(line));
    }
    text
}

/// Which lines stay, if no more happens than that some go.
fn kept(old: &[&str], new: &[&str]) -> Option<Vec<bool>> {
    let mut rest = new.iter().peekable();
    let kept = old.iter().map(|line| rest.next_if_eq(&line).is_some()).collect();
    rest.peek().is_none().then_some(kept)
}

/// Adds the lines that go, and those that stay beside them.
fn push_gaps(text: &mut String, lines: &[&str], kept: &[bool]) {
    let goes = |at: usize| kept.get(at) == Some(&false);
    for (at, line) in lines.iter().enumerate() {
        if goes(at) {
            push(text, '-', line);
        } else if goes(at + 1) || at > 0 && goes(at - 1) {
            push(text, ' ', &shorten(line));
        } else if at > 1 && goes(at - 2) {
            push(text, ' ', "…");
        }
    }
}

/// How many items are the same from the start.
fn shared<T: PartialEq>(one: impl Iterator<Item = T>, other: impl Iterator<Item = T>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// How many bytes of two texts are the same at the start, and of the rest at the end.
fn shared_text(one: &str, other: &str) -> (usize, usize) {
    let bytes = |text: &str, count| text.chars().take(count).map(char::len_utf8).sum();
    let start: usize = bytes(one, shared(one.chars(), other.chars()));
    let (one, other) = (&one[start..], &other[start..]);
    let count = shared(one.chars().rev(), other.chars().rev());
    (start, one.chars().rev().take(count).map(char::len_utf8).sum())
}

/// A text without most of what is the same at both ends.
fn clip(text: &str, (start, end): (usize, usize)) -> String {
    let (head, rest) = text.split_at(start);
    let (middle, tail) = rest.split_at(rest.len() - end);
    let skipped = head.chars().count().saturating_sub(SHOWN);
    let head: String = head.chars().skip(skipped).collect();
    let mark = if skipped > 0 { "…" } else { "" };
    format!("{mark}{head}{middle}{}", shorten(tail))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Adds lines. A character that would do something to a terminal is shown by its number.
fn push(text: &mut String, sign: char, lines: &str) {
    for line in lines.lines() {
        text.push(sign);
        for c in line.chars() {
            match c.is_control() && c != '\t' {
                true => text.extend(c.escape_default()),
                false => text.push(c),
            }
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        let table = [
            ("", "", ""),
            ("", "a\n", "+a\n"),
            ("a\n", "", "-a\n"),
            ("a\nb\nc\nd\n", "a\nb\nX\nc\nd\n", " b\n+X\n c\n"),
            ("a\nb\nc\nd\n", "a\nb\nX\nd\n", " b\n-c\n+X\n d\n"),
            ("a\nX\nb\nc\nd\ne\nX\nf\n", "a\nb\nc\nd\ne\nf\n", " a\n-X\n b\n …\n e\n-X\n f\n"),
            ("a\nb", "a\nb\n\nc", " a\n-b\n+b\n+\n+c\n"),
            ("{}\r\n", "{\r\n}\r\n", "-{}\n+{\n+}\n"),
            ("x\n", "\u{1b}[2J\n", "-x\n+\\u{1b}[2J\n"),
        ];
        for (before, after, shown) in table {
            assert_eq!(diff(before, after), shown, "{before:?} {after:?}");
        }
    }

    #[test]
    fn long_lines_are_shortened_around_the_change() {
        let long = "é".repeat(500);
        let (before, after) = (format!("{long}[]{long}\n"), format!("{long}[new]{long}\n"));
        let near = "é".repeat(SHOWN - 1);
        let shown = diff(&before, &after);
        assert_eq!(shown, format!("-…{near}[]{near}…\n+…{near}[new]{near}…\n"));
        let shown = diff(&format!("{long}\nb\n"), &format!("{long}\na\nb\n"));
        assert_eq!(shown, format!(" {near}é…\n+a\n b\n"));
    }
}
