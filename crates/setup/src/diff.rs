/// How many unchanged characters of a line are shown.
const CONTEXT_CHARS: usize = 60;

/// A line diff: `-` for removed lines, `+` for added ones, a space for one line of context on
/// either side. Empty if the texts are equal.
///
/// Changes are shown in full, but of unchanged text on the same line only the part near the
/// change: the file may be a single line with other servers' secrets in it.
pub fn diff(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let start = common_prefix(old.iter(), new.iter());
    let rest = (old.len() - start).min(new.len() - start);
    let end = common_prefix(old.iter().rev().take(rest), new.iter().rev().take(rest));
    let (removed, added) = (&old[start..old.len() - end], &new[start..new.len() - end]);

    let mut text = String::new();
    if let Some(line) = start.checked_sub(1).map(|line| old[line]) {
        push(&mut text, ' ', &shorten(line));
    }
    match kept_lines(removed, added) {
        Some(kept) => push_removals(&mut text, removed, &kept),
        None => {
            let (removed, added) = (removed.concat(), added.concat());
            let common = common_ends(&removed, &added);
            push(&mut text, '-', &clip(&removed, common));
            push(&mut text, '+', &clip(&added, common));
        }
    }
    if let Some(line) = old.get(old.len() - end) {
        push(&mut text, ' ', &shorten(line));
    }
    text
}

/// If lines are only removed: for each old line, whether it is kept.
fn kept_lines(old: &[&str], new: &[&str]) -> Option<Vec<bool>> {
    let mut rest = new.iter().peekable();
    let kept = old.iter().map(|line| rest.next_if_eq(&line).is_some()).collect();
    rest.peek().is_none().then_some(kept)
}

/// Adds the removed lines and their context.
fn push_removals(text: &mut String, lines: &[&str], kept: &[bool]) {
    let is_removed = |at: usize| kept.get(at) == Some(&false);
    for (at, line) in lines.iter().enumerate() {
        if is_removed(at) {
            push(text, '-', line);
        } else if is_removed(at + 1) || at > 0 && is_removed(at - 1) {
            push(text, ' ', &shorten(line));
        } else if at > 1 && is_removed(at - 2) {
            push(text, ' ', "…");
        }
    }
}

/// The number of leading items that are equal.
fn common_prefix<T: PartialEq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// The lengths in bytes of the common prefix, and of the common suffix of the rest.
fn common_ends(a: &str, b: &str) -> (usize, usize) {
    let bytes = |text: &str, count| text.chars().take(count).map(char::len_utf8).sum();
    let start: usize = bytes(a, common_prefix(a.chars(), b.chars()));
    let (a, b) = (&a[start..], &b[start..]);
    let count = common_prefix(a.chars().rev(), b.chars().rev());
    (start, a.chars().rev().take(count).map(char::len_utf8).sum())
}

/// A text with its common prefix and suffix shortened.
fn clip(text: &str, (start, end): (usize, usize)) -> String {
    let (head, rest) = text.split_at(start);
    let (middle, tail) = rest.split_at(rest.len() - end);
    let skipped = head.chars().count().saturating_sub(CONTEXT_CHARS);
    let head: String = head.chars().skip(skipped).collect();
    let ellipsis = if skipped > 0 { "…" } else { "" };
    format!("{ellipsis}{head}{middle}{}", shorten(tail))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(CONTEXT_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Adds lines, with control characters escaped so that they cannot affect a terminal.
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
        let near = "é".repeat(CONTEXT_CHARS - 1);
        let shown = diff(&before, &after);
        assert_eq!(shown, format!("-…{near}[]{near}…\n+…{near}[new]{near}…\n"));
        let shown = diff(&format!("{long}\nb\n"), &format!("{long}\na\nb\n"));
        assert_eq!(shown, format!(" {near}é…\n+a\n b\n"));
    }
}
