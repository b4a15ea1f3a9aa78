//! Shortens and formats text.

use serde::Serialize;

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

/// An estimate of a text's length in tokens, rather too high than too low: tokenizers make a token of
/// about four letters of English or code, and one or more of a letter of most other scripts.
pub(crate) fn tokens(text: &str) -> u32 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|letter| !letter.is_ascii()).count();
    u32::try_from(ascii.div_ceil(4) + others).unwrap_or(u32::MAX)
}

/// Leaves out the last results that a budget of tokens has no room for; the first one stays. Says what
/// was left out.
pub(crate) fn fit<T: Serialize>(results: &mut Vec<T>, budget: Option<u32>) -> Option<String> {
    let budget = budget?;
    let total = results.len();
    let mut used = 0_u32;
    let fitting = results.iter().take_while(|result| {
        let text = serde_json::to_string(result).unwrap_or_default();
        used = used.saturating_add(tokens(&text));
        used <= budget
    });
    let kept = fitting.count().max(1).min(total);
    results.truncate(kept);
    let cut = total - kept;
    (cut > 0).then(|| format!("{cut} of {total} results left out: raise budget or ask for less"))
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
    fn results_fit_the_budget() {
        let fitted = |budget| {
            let mut results = vec!["four letters".to_owned(); 5];
            let cut = fit(&mut results, budget);
            (results.len(), cut)
        };
        assert_eq!(fitted(None), (5, None));
        assert_eq!(fitted(Some(1_000)), (5, None));
        let cut =
            |count| Some(format!("{count} of 5 results left out: raise budget or ask for less"));
        assert_eq!(fitted(Some(9)), (2, cut(3)));
        assert_eq!(fitted(Some(0)), (1, cut(4)));
        assert_eq!(fit(&mut Vec::<u8>::new(), Some(0)), None);
    }

    #[test]
    fn tokens_are_estimated() {
        assert_eq!([tokens(""), tokens("four"), tokens("fives"), tokens("größe店")], [0, 1, 2, 4]);
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
