//! Quoted parts of a query, which every hit must contain.

use std::borrow::Cow;

use isolith_text::{Analyzer, query_terms};

use crate::query::{MAX_BYTES, MAX_QUESTION_TERMS};

/// A query with more quoted parts is pasted text.
const MAX_PARTS: usize = 8;

/// A query, and what it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotedQuery<'t> {
    /// The query without the quotes of its required parts.
    pub text: Cow<'t, str>,
    /// The distinct texts in quotes, in query order; hits must contain all of them.
    pub required: Vec<String>,
}

impl<'t> QuotedQuery<'t> {
    /// Finds the quoted parts of a query. A part is quoted if white space or the ends of the query
    /// surround its quotes; the last one may be followed by punctuation. In it, `\"` is a quote.
    ///
    /// Other quotes are ordinary text, and so are those in pasted text: in several lines, in a
    /// report (see [`CodeQuery::is_report`](crate::CodeQuery::is_report)), or with more than
    /// eight quoted parts.
    pub fn parse(text: &'t str) -> Self {
        let ordinary = Self { text: Cow::Borrowed(text), required: Vec::new() };
        let trimmed = text.trim();
        if !text.contains('"') || text.len() > MAX_BYTES || trimmed.contains(['\n', '\r']) {
            return ordinary;
        }
        let mut plain = String::with_capacity(text.len());
        let mut required: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('"') {
            let (before, quoted) = (&rest[..open], &rest[open + 1..]);
            plain.push_str(before);
            let starts = plain.chars().next_back().is_none_or(char::is_whitespace);
            match closing(quoted) {
                Some(close) if starts && ends_part(&quoted[close + 1..]) => {
                    let part = quoted[..close].replace("\\\"", "\"");
                    plain.push_str(&part);
                    rest = &quoted[close + 1..];
                    if !part.trim().is_empty() && !required.contains(&part) {
                        required.push(part);
                    }
                }
                // Both quotes are part of the text.
                Some(close) if starts => {
                    plain.push_str(&rest[open..=open + 1 + close]);
                    rest = &quoted[close + 1..];
                }
                _ => {
                    plain.push('"');
                    rest = quoted;
                }
            }
        }
        plain.push_str(rest);
        let is_pasted = required.len() > MAX_PARTS
            || query_terms(Analyzer::Code, text).len() > MAX_QUESTION_TERMS;
        match required.is_empty() || is_pasted {
            true => ordinary,
            false => Self { text: Cow::Owned(plain), required },
        }
    }
}

/// Where the next quote without a backslash is.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// Whether a quoted part may end before this text.
fn ends_part(rest: &str) -> bool {
    rest.starts_with(char::is_whitespace)
        || rest.trim_end().chars().all(|c| matches!(c, '?' | '!' | '.' | ',' | ';' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_parts_are_required() {
        for (text, required, plain) in [
            (r#""retry budget" scheduler"#, &["retry budget"][..], "retry budget scheduler"),
            (r#"scheduler "Retry" "budget"  x"#, &["Retry", "budget"], "scheduler Retry budget  x"),
            (r#"where is "retry budget"?"#, &["retry budget"], "where is retry budget?"),
            (r#" "a" "a" "#, &["a"], " a a "),
            (r#""say \"hi\" now""#, &[r#"say "hi" now"#], r#"say "hi" now"#),
            (r#""C:\\" x"#, &[r"C:\\"], r"C:\\ x"),
            (r#""a+(b*" "ünï" "日本 語""#, &["a+(b*", "ünï", "日本 語"], "a+(b* ünï 日本 語"),
            (r#""" "x""#, &["x"], " x"),
            (r#""x" and "unbalanced"#, &["x"], r#"x and "unbalanced"#),
            ("tab\t\"x\"\ty", &["x"], "tab\tx\ty"),
        ] {
            let parsed = QuotedQuery::parse(text);
            assert_eq!(parsed.required, required, "{text}");
            assert_eq!(parsed.text, plain, "{text}");
        }
    }

    #[test]
    fn other_quotes_are_ordinary_text() {
        let many: String = (0..=MAX_PARTS).map(|part| format!("\"p{part}\" ")).collect();
        let report: String = (0..30).map(|word| format!("word{word} ")).collect();
        for text in [
            "",
            "no quotes",
            "\"",
            "\"\"",
            "\" \"",
            "\"unbalanced text",
            "unbalanced\" text",
            r#"print("hello")"#,
            r#"name="x" b"#,
            r#"{"name": 1}"#,
            r#"  File "/app/x.py", line 3, in run"#,
            r#"\"escaped\" x"#,
            r#""a"b"#,
            "KeyError\n\"x\"",
            &many,
            &format!("\"quoted\" {report}"),
            &"\"".repeat(1 << 20),
            &"\"a\" ".repeat(1 << 18),
        ] {
            let parsed = QuotedQuery::parse(text);
            assert!(
                parsed.required.is_empty() && parsed.text == text,
                "{}",
                &text[..text.len().min(80)]
            );
        }
    }

    #[test]
    fn any_text_is_accepted() {
        for text in ["\"\\", "\"\\\"", "é\"é\"é", "\u{a0}\"x\"\u{a0}", "\" \\\" \"", "\0\"\0\"\0"]
        {
            let _ = QuotedQuery::parse(text);
        }
    }
}
