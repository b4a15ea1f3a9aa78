//! Shortens and formats text.

/// The beginning of a text, at most `max` bytes: whole lines if possible, else whole characters.
pub(crate) fn truncate(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let head = &text[..end];
    match head.rfind('\n') {
        Some(line) if line > 0 => &head[..line],
        _ => head,
    }
}

/// Up to `max` non-blank lines after the first `skipped`, or from the start if none are left.
pub(crate) fn lines_from(text: &str, skipped: usize, max: usize) -> Vec<&str> {
    let lines = |skipped| text.lines().skip(skipped).map(str::trim_end);
    let some = |skipped| lines(skipped).filter(|line| !line.is_empty()).take(max).collect();
    let found: Vec<&str> = some(skipped);
    if found.is_empty() { some(0) } else { found }
}

/// The text on one line, at most `max` characters.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let joined = words.join(" ");
    match joined.chars().count() > max {
        true => joined.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
        false => joined,
    }
}

/// Rounds to 4 decimal places.
pub(crate) fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_truncated_between_lines_and_characters() {
        let table = [
            ("abc", 3, "abc"),
            ("one\ntwo\nthree", 9, "one\ntwo"),
            ("\nlong line", 5, "\nlong"),
            ("größe", 3, "gr"),
            ("größe", 4, "grö"),
        ];
        for (text, max, expected) in table {
            assert_eq!(truncate(text, max), expected, "{text:?} in {max}");
        }
    }

    #[test]
    fn the_given_number_of_lines_is_skipped() {
        assert_eq!(lines_from("a\n\nb\nc\nd", 1, 2), ["b", "c"]);
        assert_eq!(lines_from("a\nb", 9, 2), ["a", "b"]);
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
