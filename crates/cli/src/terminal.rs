//! All output goes through here. On a terminal, characters that move the cursor, change earlier
//! output or make text look like other text are escaped; otherwise bytes are passed through
//! unchanged.
//!
//! Colours are control sequences too. [`style`] marks them with a random number of this process,
//! so that sequences in text from files are never let through.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::sync::LazyLock;

/// TextKind of text, which decides how it is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Plain text: escaped as `\u{202e}`.
    Text,
    /// JSON: escaped as in JSON, so that the document keeps its meaning.
    Json,
}

/// Standard output.
pub(crate) fn stdout(kind: TextKind) -> Guarded<Stdout> {
    let out = io::stdout();
    Guarded::new(kind, out.is_terminal(), out)
}

/// Standard error.
pub(crate) fn stderr() -> Guarded<Stderr> {
    let out = io::stderr();
    Guarded::new(TextKind::Text, out.is_terminal(), out)
}

/// Text in a colour or weight, for terminals.
pub(crate) fn style(text: &str, code: &str) -> String {
    let mark = MARK.as_str();
    format!("{mark}[{code}m{text}{mark}[0m")
}

/// Prints a line to standard error. On a terminal, further lines in it are indented, so that they
/// cannot pass for lines of ours.
pub(crate) fn tell(line: &str) {
    let terminal = io::stderr().is_terminal();
    let line = if terminal { line.replace('\n', "\n  ") } else { line.to_owned() };
    // A closed pipe is not an error.
    let _ = writeln!(stderr(), "{line}");
}

/// Text for a progress bar, which bypasses the guard: on one line, with hidden characters
/// escaped.
pub(crate) fn visible(text: &str) -> String {
    escape(text, TextKind::Text).replace(['\n', '\t'], " ")
}

/// Text on one line. Other odd characters are left to the guard.
pub(crate) fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\n', '\t'], " ")
}

/// An escape sequence that only this process knows.
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{1b}{:016x}", fastrand::u64(..)));

/// A writer that escapes hidden characters.
pub(crate) struct Guarded<W> {
    inner: W,
    kind: TextKind,
    /// Whether the output is a terminal.
    terminal: bool,
    /// The beginning of an incomplete character.
    rest: Vec<u8>,
}

impl<W: Write> Guarded<W> {
    fn new(kind: TextKind, terminal: bool, inner: W) -> Self {
        Self { inner, kind, terminal, rest: Vec::new() }
    }

    fn write_shown(&mut self, bytes: &[u8]) -> io::Result<()> {
        let joined = [self.rest.as_slice(), bytes].concat();
        self.rest.clear();
        let mut shown = String::with_capacity(joined.len());
        let mut chunks = joined.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            shown += &escape(chunk.valid(), self.kind);
            let odd = chunk.invalid();
            if chunks.peek().is_none() && is_incomplete_char(odd) {
                self.rest = odd.to_vec();
            } else {
                odd.iter().for_each(|byte| {
                    let _ = write!(shown, "\\x{byte:02x}");
                });
            }
        }
        self.inner.write_all(shown.as_bytes())
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.inner.write(bytes);
        }
        self.write_shown(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Whether bytes are the beginning of an incomplete character.
fn is_incomplete_char(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => 0,
    };
    bytes.len() < length
}

/// Escapes hidden characters. Our own styles become terminal sequences.
fn escape(text: &str, kind: TextKind) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(styled) = rest.strip_prefix(MARK.as_str()) {
            shown.push('\u{1b}');
            rest = styled;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        match kind {
            _ if !is_hidden(letter) || letter == '\r' && rest.starts_with('\n') => {
                shown.push(letter);
            }
            TextKind::Text => shown.extend(letter.escape_unicode()),
            TextKind::Json => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(shown, "\\u{unit:04x}");
            }),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is invisible or affects the terminal or other characters: controls,
/// direction marks, zero-width characters, line separators, tags.
fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        ' '..='~' => false,
        letter if letter.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' => true,
        '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        letter => u32::from(letter) & 0xFFFE == 0xFFFE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(kind: TextKind, terminal: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut guarded = Guarded::new(kind, terminal, &mut out);
        pieces.iter().for_each(|piece| guarded.write_all(piece).unwrap());
        out
    }

    #[test]
    fn hidden_characters_are_escaped_on_a_terminal() {
        let table = [
            ("größe 店 😀\ta\nb\r\n", "größe 店 😀\ta\nb\r\n"),
            ("\u{1b}[31m\u{7}\r", r"\u{1b}[31m\u{7}\u{d}"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("a\u{202e}b\u{2066}\u{200f}\u{61c}", r"a\u{202e}b\u{2066}\u{200f}\u{61c}"),
            ("\u{200b}\u{2028}\u{feff}\u{e0041}", r"\u{200b}\u{2028}\u{feff}\u{e0041}"),
        ];
        for (text, expected) in table {
            let shown = printed(TextKind::Text, true, &[text.as_bytes()]);
            assert_eq!(String::from_utf8(shown).unwrap(), expected);
            assert_eq!(printed(TextKind::Text, false, &[text.as_bytes()]), text.as_bytes());
        }
        assert_eq!(visible("a\nb\u{202e}"), r"a b\u{202e}");
    }

    #[test]
    fn escaped_json_keeps_its_meaning() {
        let hostile = "\u{9b}\u{202e}\u{e0041}\u{1b}";
        let document = serde_json::to_string(hostile).unwrap();
        let shown = printed(TextKind::Json, true, &[document.as_bytes()]);
        assert!(shown.is_ascii(), "{shown:?}");
        assert_eq!(serde_json::from_slice::<String>(&shown).unwrap(), hostile);
        assert_eq!(printed(TextKind::Json, false, &[document.as_bytes()]), document.as_bytes());
    }

    #[test]
    fn split_characters_and_invalid_bytes_are_handled() {
        let text = "ö\u{202e}😀";
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(printed(TextKind::Text, true, &bytes), "ö\\u{202e}😀".as_bytes());
        assert_eq!(printed(TextKind::Text, true, &[b"a\xffb\xe2\x80z"]), br"a\xffb\xe2\x80z");
    }

    #[test]
    fn only_our_own_styles_pass() {
        let ours = style("\u{1b}[2Jx", "31");
        let shown = printed(TextKind::Text, true, &[ours.as_bytes()]);
        assert_eq!(shown, b"\x1b[31m\\u{1b}[2Jx\x1b[0m");
    }

    /// A command that bypasses the guard would bring hostile text to the terminal.
    #[test]
    fn no_output_bypasses_the_guard() {
        fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => sources(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut files = Vec::new();
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        files.retain(|path| path.extension().is_some_and(|it| it == "rs"));
        assert!(files.len() > 20, "{files:?}");
        for path in files.iter().filter(|path| !path.ends_with("src/terminal.rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            for line in text.lines() {
                let asks = line.contains("is_terminal()") || line.contains("tcgetwinsize");
                let prints = ["io::stdout()", "io::stderr()", "io::stdout)", "io::stderr)"];
                let past = prints.iter().any(|it| line.contains(it)) && !asks;
                let macros = ["println!(", "eprint!(", " print!("];
                let loud = macros.iter().any(|it| line.contains(it));
                assert!(!past && !loud, "{}: {line}", path.display());
            }
        }
    }
}
