//! Shortens texts at the end of a line or character.

/// At most `most` bytes of a text: whole lines if possible, else whole characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let head = &text[..end];
    match head.rfind('\n') {
        Some(line) if line > 0 => &head[..line],
        _ => head,
    }
}

/// Up to `most` lines that are not blank, after `skipped` others, if any are left.
pub(crate) fn lines_from(text: &str, skipped: usize, most: usize) -> Vec<&str> {
    let lines = |skipped| text.lines().skip(skipped).map(str::trim_end);
    let some = |skipped| lines(skipped).filter(|line| !line.is_empty()).take(most).collect();
    let found: Vec<&str> = some(skipped);
    if found.is_empty() { some(0) } else { found }
}

/// The text on one line, shortened.
pub(crate) fn line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ");
    match joined.chars().count() > most {
        true => joined.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => joined,
    }
}

/// Rounds a number for display.
pub(crate) fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_lines_and_characters() {
        let table = [
            ("abc", 3, "abc"),
            ("one\ntwo\nthree", 9, "one\ntwo"),
            ("\nlong line", 5, "\nlong"),
            ("größe", 3, "gr"),
            ("größe", 4, "grö"),
        ];
        for (text, most, expected) in table {
            assert_eq!(cut(text, most), expected, "{text:?} in {most}");
        }
    }

    #[test]
    fn the_given_number_of_lines_is_skipped() {
        assert_eq!(lines_from("a\n\nb\nc\nd", 1, 2), ["b", "c"]);
        assert_eq!(lines_from("a\nb", 9, 2), ["a", "b"]);
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(line("a\n  b\tc", 10), "a b c");
        assert_eq!(line("abcdef", 4), "abc…");
    }
}
