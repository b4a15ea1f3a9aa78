//! Hides macros from the grammars of C and C++, which cannot know what they expand to.
//!
//! `FMT_BEGIN_EXPORT` on a line of its own makes them read the next declaration as part of
//! another, and miss what it defines.

/// What may follow a hidden macro on its line.
const DECLARATIONS: [&str; 11] = [
    "class ",
    "concept ",
    "enum ",
    "extern ",
    "inline namespace ",
    "namespace ",
    "struct ",
    "template ",
    "template<",
    "typedef ",
    "union ",
];

/// The text with blanks in the place of macros without arguments that stand alone between
/// declarations, or before one. `None` if there are none. Offsets stay the same.
pub(super) fn without_macros(text: &str) -> Option<String> {
    let mut hidden = Vec::new();
    let mut offset = 0;
    // Whether a declaration may begin here.
    let mut between = true;
    // A macro on the line before, or before blank lines and comments.
    let mut pending = None;
    for line in text.split_inclusive('\n') {
        let start = offset + (line.len() - line.trim_start().len());
        offset += line.len();
        let code = line.trim();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        if let Some(range) = pending.take().filter(|_| !goes_on(code)) {
            hidden.push(range);
        }
        let length = macro_length(code).filter(|_| between);
        let rest = length.map_or("", |length| &code[length..]);
        match length {
            Some(length) if rest.is_empty() || rest.trim_start().starts_with("//") => {
                pending = Some(start..start + length);
            }
            Some(length) if begins_declaration(rest.trim_start()) => {
                hidden.push(start..start + length);
                between = ends_declaration(code);
            }
            _ => between = ends_declaration(code),
        }
    }
    hidden.extend(pending);
    if hidden.is_empty() {
        return None;
    }
    let mut text = text.to_owned();
    for range in hidden {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    Some(text)
}

/// The length of the macro at the start of a line: several words in upper case, joined by
/// underscores.
fn macro_length(line: &str) -> Option<usize> {
    let is_macro = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let length = line.bytes().take_while(|byte| is_macro(*byte)).count();
    let (name, rest) = line.split_at(length);
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    let words = name.split('_').filter(|word| !word.is_empty()).count();
    (ends && words > 1 && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(length)
}

fn begins_declaration(code: &str) -> bool {
    DECLARATIONS.iter().any(|start| code.starts_with(start))
}

/// Whether a line goes on what the line before began: with a body, an operator or the next
/// element of a list.
fn goes_on(code: &str) -> bool {
    code.starts_with([
        '{', '}', '(', ')', '[', ']', '<', '>', ',', ';', ':', '=', '.', '+', '-', '*', '&', '|',
        '^', '?', '%', '!',
    ])
}

/// Whether a declaration may begin after this line.
fn ends_declaration(code: &str) -> bool {
    let code = code.split_once("//").map_or(code, |(code, _)| code).trim_end();
    let is_directive = code.starts_with('#') && !code.ends_with('\\');
    is_directive || code.ends_with([';', '{', '}', ':']) || code.ends_with("*/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_between_declarations_are_hidden() {
        for (text, expected) in [
            ("FMT_BEGIN_EXPORT\nenum class color {\n", "                \nenum class color {\n"),
            ("}\nEND_EXPORT // x\n\nnamespace a {\n", "}\n           // x\n\nnamespace a {\n"),
            (
                "int a;\n  LIB_EXPORT template <class T> x;",
                "int a;\n             template <class T> x;",
            ),
            ("public:\n Q_OBJECT\n int a;", "public:\n         \n int a;"),
            ("A_B\nC_D\nint a;", "   \n   \nint a;"),
            ("}\nEND_DECLS", "}\n         "),
            ("}\r\nEND_DECLS\r\n", "}\r\n         \r\n"),
        ] {
            assert_eq!(without_macros(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_names_stay() {
        for text in [
            "",
            "enum {\n  FIRST_ONE,\n  LAST_ONE\n};",
            "enum {\n  ONLY_ONE\n};",
            "enum {\n  ONLY_ONE = 1\n};",
            "x =\n  SOME_VALUE\n  ;",
            "TEST_CASE\n{\n}",
            "LIB_API void f();",
            "TEST_F(A, b) {\n",
            "#define LONG_MACRO \\\n  OTHER_MACRO\n",
            "int a;\nEOF\nint b;",
            "int a;\n\u{c9}_A\nint b;",
            "static const int\nMAX_SIZE\n= 3;",
        ] {
            assert_eq!(without_macros(text), None, "{text}");
        }
    }
}
