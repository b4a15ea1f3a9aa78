use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn matcher(text: &str, syntax: PatternSyntax, ignore_case: bool) -> Matcher {
    Matcher::new(&Pattern { text: text.to_owned(), syntax, ignore_case }).unwrap()
}

/// The matches in a text: number of the line, column of the start, and the match.
fn found(matcher: &Matcher, text: &str) -> Vec<(usize, usize, String)> {
    let mut all = Vec::new();
    let _ = matcher.for_each(text.as_bytes(), &mut |found| {
        let line = text[..found.line.start].matches('\n').count() + 1;
        let column = found.span.start - found.line.start + 1;
        all.push((line, column, text[found.span].to_owned()));
        ControlFlow::Continue(())
    });
    all
}

fn regex(regex: &str, text: &str) -> Vec<(usize, usize, String)> {
    found(&matcher(regex, PatternSyntax::Regex, false), text)
}

#[test]
fn matches_have_line_and_column() {
    let text = "fn a_lock() {}\n\n  fn b_lock(x) { c_lock() }\r\nend";
    let names = regex(r"\w+_lock\(", text);
    let names: Vec<_> = names.iter().map(|(line, at, name)| (*line, *at, name.as_str())).collect();
    assert_eq!(names, [(1, 4, "a_lock("), (3, 6, "b_lock("), (3, 18, "c_lock(")]);
}

#[test]
fn lines_are_matched_as_ripgrep_does() {
    // Pattern, text, and the lines with their number of matches.
    type Lines = &'static [(usize, usize)];
    let table: &[(&str, &str, Lines)] = &[
        ("^$", "a\n\nb\n", &[(2, 1)]),
        ("^$", "a\n", &[]),
        ("^$", "", &[]),
        ("$", "a\r\nb\n", &[(1, 1), (2, 1)]),
        ("a$", "a\r\nba\nab", &[(1, 1), (2, 1)]),
        ("^b", "ab\nb\r\nb", &[(2, 1), (3, 1)]),
        ("x*", "é\n", &[(1, 2)]),
        (r"a\s*b", "a\nb a b", &[(2, 1)]),
        (r"a[^x]b", "a\nb\naxb\na b", &[(4, 1)]),
        // Each line is a text of its own.
        (r"\Ab", "a\nb\n", &[(2, 1)]),
        (r"a\z", "a\nb\n", &[(1, 1)]),
        (r"(?i)ä", "Ä ä\n", &[(1, 2)]),
        (".", "\u{1F600}", &[(1, 1)]),
    ];
    for (pattern, text, expected) in table {
        let mut lines: Vec<(usize, usize)> = Vec::new();
        for (line, ..) in regex(pattern, text) {
            match lines.last_mut() {
                Some(last) if last.0 == line => last.1 += 1,
                _ => lines.push((line, 1)),
            }
        }
        assert_eq!(lines, *expected, "{pattern:?} in {text:?}");
    }
}

#[test]
fn patterns_with_a_line_end_match_across_lines() {
    let text = "a {\n  b\n}\n\na {\r\n}\n";
    assert_eq!(regex(r"\{\n\s+b", text), [(1, 3, "{\n  b".to_owned())]);
    let braces = regex(r"(?s)\{.*?\}", text);
    assert_eq!(braces, [(1, 3, "{\n  b\n}".to_owned()), (5, 3, "{\r\n}".to_owned())]);
    // After the last line end there is no line.
    assert_eq!(regex(r"\n?$", "a\n").len(), 1);
    let literal = matcher("{\n}", PatternSyntax::Literal, false);
    assert_eq!(found(&literal, text), [(5, 3, "{\r\n}".to_owned())]);
}

#[test]
fn literals_have_no_special_characters() {
    let text = "f(x[0].*) f(X[0].*)";
    let literal = |ignore_case| matcher("f(x[0].*)", PatternSyntax::Literal, ignore_case);
    assert_eq!(found(&literal(false), text).len(), 1);
    assert_eq!(found(&literal(true), text).len(), 2);
}

#[test]
fn bad_patterns_are_refused_with_a_reason() {
    let reason = |text: &str| {
        let syntax = PatternSyntax::Regex;
        let pattern = Pattern { text: text.to_owned(), syntax, ignore_case: false };
        match Matcher::new(&pattern).unwrap_err() {
            StoreError::BadPattern { reason } => reason,
            other => other.to_string(),
        }
    };
    for (pattern, expected) in [
        ("", "the pattern is empty"),
        ("a(", "unclosed group (at character 2)"),
        (r"\p{Nope}", "Unicode property not found"),
        (r"(\w{500}){500}", "compiled regex exceeds size limit of 10485760"),
        (r"(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
    ] {
        assert!(reason(pattern).starts_with(expected), "{pattern}: {}", reason(pattern));
    }
}

/// Pieces of patterns and texts that have something in common.
fn pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "a",
        "b",
        "_",
        "ab",
        "é",
        ".",
        r"\w",
        r"\s",
        r"\d",
        "[^a]",
        "[a-c]",
        "^",
        "$",
        r"\b",
        "x*",
        "(?:ab|b_)",
        "b+",
        "a?",
        r"\W",
        "É",
    ]);
    prop::collection::vec(atom, 1..5).prop_map(|atoms| atoms.concat())
}

fn text() -> impl Strategy<Value = String> {
    pieces(0..60)
}

fn pieces(count: Range<usize>) -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "b", "ab", "_", "é", "É", " ", "1", "\n", "\n\n", "\r\n", "a_b1", "\t", "AB",
    ]);
    prop::collection::vec(piece, count).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(41),
        failure_persistence: None,
        ..ProptestConfig::with_cases(2_000)
    })]

    /// Whatever candidates are looked for first, no line is missed.
    #[test]
    fn all_lines_are_found(pattern in pattern(), text in text(), ignore_case: bool) {
        let ours = found(&matcher(&pattern, PatternSyntax::Regex, ignore_case), &text);
        let plain = regex::RegexBuilder::new(&pattern)
            .case_insensitive(ignore_case)
            .multi_line(true)
            .build()
            .unwrap();
        let mut expected = Vec::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = line.strip_suffix('\r').unwrap_or(line);
            expected.extend(plain.find_iter(line).map(|found| {
                (number + 1, found.start() + 1, found.as_str().to_owned())
            }));
        }
        prop_assert_eq!(ours, expected, "{:?}", pattern);
    }

    /// With line ends of one kind, looking for a literal is a plain search.
    #[test]
    fn all_literals_are_found(literal in pieces(1..4), text in text()) {
        let (literal, text) = (literal.replace('\r', ""), text.replace('\r', ""));
        let ours = found(&matcher(&literal, PatternSyntax::Literal, false), &text);
        let ours: Vec<String> = ours.into_iter().map(|(.., found)| found).collect();
        let expected: Vec<&str> = text.matches(literal.as_str()).collect();
        prop_assert_eq!(ours, expected);
    }
}
