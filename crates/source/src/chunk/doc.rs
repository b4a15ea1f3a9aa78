/// The longest documentation that is kept, in characters.
const DOC_CHARS: usize = 300;

/// What opens a comment or a line of it, longer ones first.
const OPENINGS: [&str; 24] = [
    "--[==[", "--[[", "<!--", "/**", "/*!", "///", "//!", "{-|", "---", "\"\"\"", "'''", "-- |",
    "-- ^", "/*", "//", "{-", "--", "#'", "##", "*/", "*", "#", "|", ";",
];

const CLOSINGS: [&str; 8] = ["]==]", "]]", "-->", "*/", "-}", "\"\"\"", "'''", "\\"];

/// The beginning of a comment without its marks, on one line.
pub(super) fn begin(comment: &str) -> Option<String> {
    let words = comment.lines().filter_map(bare).flat_map(str::split_whitespace);
    let text = on_one_line(words, DOC_CHARS);
    (!text.is_empty()).then_some(text)
}

/// Words with one space between them, up to this many characters.
pub(crate) fn on_one_line<'w>(words: impl Iterator<Item = &'w str>, most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for word in words {
        if !line.is_empty() {
            if left <= 1 {
                break;
            }
            line.push(' ');
            left -= 1;
        }
        let chars = word.chars().count();
        if chars >= left {
            line.extend(word.chars().take(left));
            break;
        }
        line.push_str(word);
        left -= chars;
    }
    line
}

/// A line of a comment without marks; nothing if it is a ruler or a lone tag.
fn bare(line: &str) -> Option<&str> {
    let mut line = line.trim();
    for attribute in ["@doc", "@moduledoc", "@typedoc"] {
        line = line.strip_prefix(attribute).map_or(line, str::trim_start);
    }
    // A docstring may have a prefix, `r"""` in Python or `~S"""` in Elixir.
    if let Some(at) = line.find("\"\"\"").filter(|at| *at <= 2) {
        line = &line[at..];
    }
    // `/// # Errors` opens twice; nothing sensible opens three times.
    for _ in 0..2 {
        if let Some(rest) = OPENINGS.iter().find_map(|mark| line.strip_prefix(mark)) {
            line = rest.trim_start();
        }
    }
    for mark in CLOSINGS {
        line = line.strip_suffix(mark).map_or(line, str::trim_end);
    }
    line = line.trim_matches(['/', '*', '#', '-', '=', '"', ' ']);
    line = line.strip_prefix("<summary>").unwrap_or(line);
    line = line.strip_suffix("</summary>").unwrap_or(line);
    let tag = line.starts_with('<') && line.find('>') == Some(line.len() - 1);
    (!tag && line.contains(char::is_alphanumeric)).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_stripped() {
        let table = [
            ("/// Adds.\n///\n/// Both must fit.", "Adds. Both must fit."),
            ("/**\n * Adds.\n * @param a one\n */", "Adds. @param a one"),
            ("/* one */", "one"),
            ("# -----------\n# Adds.\n# -----------", "Adds."),
            ("\"\"\"Adds.\n\n    More.\n    \"\"\"", "Adds. More."),
            ("r\"\"\"Adds.\"\"\"", "Adds."),
            ("--- Adds.\n-- @param a", "Adds. @param a"),
            ("/// <summary>\n/// Adds.\n/// </summary>", "Adds."),
            ("/// <summary>Adds.</summary>", "Adds."),
            ("@doc \"\"\"\nAdds.\n\"\"\"", "Adds."),
            ("-- | Adds.", "Adds."),
            ("{-| Adds.\n   More. -}", "Adds. More."),
            ("\"Adds.\"", "Adds."),
        ];
        for (comment, text) in table {
            assert_eq!(begin(comment).as_deref(), Some(text), "{comment}");
        }
        assert_eq!(begin("// ====="), None);
    }

    #[test]
    fn long_ones_are_cut_at_a_character() {
        let text = begin(&format!("// {}", "äö ".repeat(200))).unwrap();
        assert_eq!(text.chars().count(), 299);
        assert_eq!(begin(&"é".repeat(400)).unwrap().chars().count(), 300);
    }
}
