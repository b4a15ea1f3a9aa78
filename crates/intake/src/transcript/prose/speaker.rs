//! Recognizes lines that name a speaker.

use isolith_types::Moment;

/// The parts of a line that begins with a speaker's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label<'a> {
    pub(crate) name: &'a str,
    /// The date or time, as written.
    pub(crate) date: Option<&'a str>,
    /// The text on the same line.
    pub(crate) rest: &'a str,
}

/// Usual names of assistants and their users in transcripts.
const ROLES: [&str; 13] = [
    "user",
    "human",
    "you",
    "me",
    "assistant",
    "ai",
    "bot",
    "claude",
    "chatgpt",
    "gpt",
    "gpt-4",
    "gemini",
    "copilot",
];

/// Words before a colon that are not names.
const NOT_NAMES: [&str; 44] = [
    "note",
    "notes",
    "example",
    "examples",
    "warning",
    "caution",
    "tip",
    "tips",
    "hint",
    "important",
    "info",
    "todo",
    "fixme",
    "summary",
    "overview",
    "output",
    "input",
    "result",
    "results",
    "error",
    "errors",
    "usage",
    "option",
    "options",
    "step",
    "date",
    "time",
    "subject",
    "from",
    "to",
    "cc",
    "re",
    "title",
    "url",
    "link",
    "links",
    "source",
    "sources",
    "file",
    "path",
    "version",
    "pros",
    "cons",
    "ps",
];

/// Whether a name usually means an assistant or its user.
pub(crate) fn is_role(name: &str) -> bool {
    ROLES.iter().any(|role| role.eq_ignore_ascii_case(name))
}

/// The label of a line: `Anna: …`, `**Anna**: …`, `[10:15] Anna: …`,
/// `31/12/2025, 10:15 - Anna: …`.
pub(crate) fn label(line: &str) -> Option<Label<'_>> {
    let (date, line) = split_date(line.trim_start());
    let line = without_ornament(line);
    let (name, rest) = match emphasized(line) {
        Some((name, rest)) => match (name.strip_suffix(':'), rest.strip_prefix(':')) {
            (Some(name), _) => (name, rest),
            (None, Some(rest)) => (name, rest),
            (None, None) => return None,
        },
        None => split_at_colon(line)?,
    };
    let blank_follows = rest.is_empty() || rest.starts_with([' ', '\t', '*', '_']);
    let (name, when) = split_aside(name);
    let name = name.strip_suffix(" said").unwrap_or(name);
    let fits = blank_follows && is_name(name);
    fits.then(|| Label { name, date: date.or(when), rest: rest.trim_start() })
}

/// The level of a heading that consists of a name, and the name: `## Human`,
/// `### 🤖 Claude (10:15)`.
pub(crate) fn heading(line: &str) -> Option<(usize, Label<'_>)> {
    let (level, text) = heading_text(line)?;
    let text = without_ornament(text);
    let text = emphasized(text).map_or(text, |(inner, _)| inner);
    let (name, date) = split_aside(text.trim_end_matches(':'));
    let name = name.strip_suffix(" said").unwrap_or(name).trim_end_matches(':');
    let plain = is_name(name).then_some((name, date));
    let (name, date) = plain.or_else(|| role_with_suffix(text))?;
    Some((level, Label { name, date, rest: "" }))
}

/// A role followed by something other than words, and the time at its end:
/// `User (message 7) - 2026-01-31T09:30:00Z`.
fn role_with_suffix(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, more) = text.split_once([' ', ':'])?;
    let words_follow = more.trim_start().starts_with(char::is_alphanumeric);
    let last = more.split_whitespace().last();
    let date = last.filter(|last| last.parse::<Moment>().is_ok());
    (is_role(name) && !words_follow).then_some((name, date))
}

/// The level and the text of a heading.
pub(crate) fn heading_text(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let text = line.get(level..)?;
    let is_heading = (1..=6).contains(&level) && text.starts_with([' ', '\t']);
    is_heading.then(|| (level, text.trim().trim_end_matches('#').trim_end()))
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || " .'’-_&@".contains(c);
    let first = name.chars().next();
    let short = !name.is_empty() && name.len() <= 60 && name.split(' ').count() <= 4;
    let lower = name.to_lowercase();
    let plain = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    short
        && name == name.trim()
        && name.chars().all(allowed)
        && name.chars().any(char::is_alphabetic)
        && (is_role(name) || first.is_some_and(|c| c.is_alphanumeric() && !c.is_lowercase()))
        && !NOT_NAMES.contains(&plain)
}

/// Splits a date from the beginning of a line, if there is one.
fn split_date(line: &str) -> (Option<&str>, &str) {
    let is_date = |text: &str| {
        text.len() <= 40
            && text.chars().any(|c| c.is_ascii_digit())
            && text.chars().any(|c| ":/.-".contains(c))
            && text.split_whitespace().count() <= 5
    };
    if let Some((date, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']'))
        && is_date(date)
    {
        return (Some(date.trim()), rest.trim_start());
    }
    if line.starts_with(|c: char| c.is_ascii_digit())
        && let Some((date, rest)) = line.split_once(" - ")
        && is_date(date)
        && date.chars().all(|c| c.is_ascii_digit() || " :/.,-apmAPMTZ\u{202f}".contains(c))
    {
        return (Some(date.trim()), rest);
    }
    (None, line)
}

/// Splits a line at its first colon outside parentheses.
fn split_at_colon(line: &str) -> Option<(&str, &str)> {
    let mut inside = false;
    let at = line.char_indices().take(100).find_map(|(at, c)| {
        inside = (inside || c == '(') && c != ')';
        (c == ':' && !inside).then_some(at)
    })?;
    Some((&line[..at], &line[at + 1..]))
}

/// Splits a time from the end of a name: in parentheses, or after a dot or dash.
fn split_aside(name: &str) -> (&str, Option<&str>) {
    let name = name.trim();
    let in_parentheses = name.strip_suffix(')').and_then(|name| name.rsplit_once('('));
    let behind = |mark| name.split_once(mark);
    let mut asides = in_parentheses
        .into_iter()
        .chain([" · ", " — ", " – ", " | "].into_iter().filter_map(behind));
    match asides.find(|(_, aside)| aside.chars().any(|c| c.is_ascii_digit())) {
        Some((name, aside)) => (name.trim_end(), Some(aside.trim())),
        None => (name, None),
    }
}

/// Removes leading emoji.
fn without_ornament(text: &str) -> &str {
    text.trim_start_matches(|c: char| !c.is_ascii() && !c.is_alphanumeric()).trim_start()
}

/// The bold or italic text at the beginning of a line, and the rest.
fn emphasized(line: &str) -> Option<(&str, &str)> {
    ["**", "__", "*", "_"].into_iter().find_map(|mark| {
        let (inner, rest) = line.strip_prefix(mark)?.split_once(mark)?;
        (!inner.is_empty()).then_some((inner, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_recognized() {
        type Expected = Option<(&'static str, Option<&'static str>, &'static str)>;
        let cases: [(&str, Expected); 31] = [
            ("User: hello", Some(("User", None, "hello"))),
            ("user:", Some(("user", None, ""))),
            ("  Anna Lee: hi: there", Some(("Anna Lee", None, "hi: there"))),
            ("**Alice**: yes", Some(("Alice", None, "yes"))),
            ("**Alice:** yes", Some(("Alice", None, "yes"))),
            ("__Bob__: no", Some(("Bob", None, "no"))),
            ("*Bob:* no", Some(("Bob", None, "no"))),
            ("👤 **You**: so", Some(("You", None, "so"))),
            ("🧑‍💻 Ärzte: so", Some(("Ärzte", None, "so"))),
            ("ChatGPT said:", Some(("ChatGPT", None, ""))),
            ("[10:15] Anna: hi", Some(("Anna", Some("10:15"), "hi"))),
            ("[2026-01-03 10:15] Anna: hi", Some(("Anna", Some("2026-01-03 10:15"), "hi"))),
            ("31/12/25, 10:15 PM - Anna: hi", Some(("Anna", Some("31/12/25, 10:15 PM"), "hi"))),
            ("[31.12.25, 22:15:03] Anna: hi", Some(("Anna", Some("31.12.25, 22:15:03"), "hi"))),
            ("Anna (10:15): hi", Some(("Anna", Some("10:15"), "hi"))),
            ("山田: こんにちは", Some(("山田", None, "こんにちは"))),
            ("GPT-4: well", Some(("GPT-4", None, "well"))),
            ("Q: why", Some(("Q", None, "why"))),
            ("Note: this is none", None),
            ("**Note:** neither", None),
            ("Step 1: open it", None),
            ("http://example.com", None),
            ("C:\\folder", None),
            ("10:30 we met", None),
            ("fn main() { a: b }", None),
            ("and then she said: no", None),
            ("\"quoted\": true,", None),
            ("this is prose without any", None),
            ("- item: x", None),
            ("**bold** text", None),
            ("A sentence with far too many words: no", None),
        ];
        for (line, expected) in cases {
            let found = label(line).map(|label| (label.name, label.date, label.rest));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn headings_with_names_are_recognized() {
        for (line, expected) in [
            ("## Human", Some((2, "Human", None))),
            ("### 🤖 Claude (02:56 UTC)", Some((3, "Claude", Some("02:56 UTC")))),
            ("# **Assistant**:", Some((1, "Assistant", None))),
            (
                "## 👤 User · 2025-10-15T04:37:46+00:00",
                Some((2, "User", Some("2025-10-15T04:37:46+00:00"))),
            ),
            (
                "## User (`27329ecf`) - 2025-06-12T00:23:18+00:00",
                Some((2, "User", Some("2025-06-12T00:23:18+00:00"))),
            ),
            ("## Human — turn one", Some((2, "Human", None))),
            // Not a role, so it counts as a speaker only if it occurs twice.
            ("## User guide", Some((2, "User guide", None))),
            ("## Claude 3 and what others say of it", None),
            ("#### ChatGPT said:", Some((4, "ChatGPT", None))),
            ("## Getting started with all of it", None),
            ("##no space", None),
            ("####### seven", None),
        ] {
            let found = heading(line).map(|(level, label)| (level, label.name, label.date));
            assert_eq!(found, expected, "{line}");
        }
    }
}
