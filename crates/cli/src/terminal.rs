//! Everything that is printed passes through here. On a terminal, characters that would
//! move the cursor, change what was printed before, or make text look like another text are
//! shown as escapes; anywhere else, the bytes are passed on as they are.
//!
//! Colours are sequences of control characters, too. [`style`] marks them with a number
//! drawn at random for this process, so that no text from a file can have them pass.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::sync::LazyLock;

/// What kind of text is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For people: escaped as `\u{202e}`.
    Text,
    /// JSON: escaped as JSON does, so that the document means the same.
    Json,
}

/// Standard output.
pub(crate) fn stdout(kind: Kind) -> Guarded<Stdout> {
    let out = io::stdout();
    Guarded::new(kind, out.is_terminal(), out)
}

/// Standard error.
pub(crate) fn stderr() -> Guarded<Stderr> {
    let out = io::stderr();
    Guarded::new(Kind::Text, out.is_terminal(), out)
}

/// Text in a colour or a weight, for a terminal that shows them.
pub(crate) fn style(text: &str, code: &str) -> String {
    let mark = MARK.as_str();
    format!("{mark}[{code}m{text}{mark}[0m")
}

/// A line for people on standard error, whatever names are in it. On a terminal, what comes
/// after a line end in it is indented, so that it cannot pass for a line of ours.
pub(crate) fn tell(line: &str) {
    let terminal = io::stderr().is_terminal();
    let line = if terminal { line.replace('\n', "\n  ") } else { line.to_owned() };
    // A closed pipe is not an error.
    let _ = writeln!(stderr(), "{line}");
}

/// What is drawn past the guard, by a progress bar: on one line, all of it to be seen.
pub(crate) fn visible(text: &str) -> String {
    escape(text, Kind::Text).replace(['\n', '\t'], " ")
}

/// Text on one line. What else is odd in it is for the guard.
pub(crate) fn one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\n', '\t'], " ")
}

/// An escape character that only this process knows.
static MARK: LazyLock<String> = LazyLock::new(|| format!("\u{1b}{:016x}", fastrand::u64(..)));

/// A writer that lets nothing through that is not to be seen.
pub(crate) struct Guarded<W> {
    inner: W,
    kind: Kind,
    /// Whether there is anything to be guarded.
    terminal: bool,
    /// The begin of a character whose rest is not there yet.
    rest: Vec<u8>,
}

impl<W: Write> Guarded<W> {
    fn new(kind: Kind, terminal: bool, inner: W) -> Self {
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
            if chunks.peek().is_none() && is_begin_of_char(odd) {
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

/// Whether bytes may become a character when more of them come.
fn is_begin_of_char(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xC2..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF4) => 4,
        _ => 0,
    };
    bytes.len() < length
}

/// The text with every character to be seen. Our own styles become what the terminal knows.
fn escape(text: &str, kind: Kind) -> Cow<'_, str> {
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
            Kind::Text => shown.extend(letter.escape_unicode()),
            Kind::Json => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(shown, "\\u{unit:04x}");
            }),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character acts on the terminal or on how others look instead of being seen:
/// controls, marks of direction, what has no width, separators of lines, tags.
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

    fn printed(kind: Kind, terminal: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut guarded = Guarded::new(kind, terminal, &mut out);
        pieces.iter().for_each(|piece| guarded.write_all(piece).unwrap());
        out
    }

    #[test]
    fn what_is_hidden_is_shown_on_a_terminal() {
        let table = [
            ("größe 店 😀\ta\nb\r\n", "größe 店 😀\ta\nb\r\n"),
            ("\u{1b}[31m\u{7}\r", r"\u{1b}[31m\u{7}\u{d}"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("a\u{202e}b\u{2066}\u{200f}\u{61c}", r"a\u{202e}b\u{2066}\u{200f}\u{61c}"),
            ("\u{200b}\u{2028}\u{feff}\u{e0041}", r"\u{200b}\u{2028}\u{feff}\u{e0041}"),
        ];
        for (text, expected) in table {
            let shown = printed(Kind::Text, true, &[text.as_bytes()]);
            assert_eq!(String::from_utf8(shown).unwrap(), expected);
            assert_eq!(printed(Kind::Text, false, &[text.as_bytes()]), text.as_bytes());
        }
        assert_eq!(visible("a\nb\u{202e}"), r"a b\u{202e}");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let hostile = "\u{9b}\u{202e}\u{e0041}\u{1b}";
        let document = serde_json::to_string(hostile).unwrap();
        let shown = printed(Kind::Json, true, &[document.as_bytes()]);
        assert!(shown.is_ascii(), "{shown:?}");
        assert_eq!(serde_json::from_slice::<String>(&shown).unwrap(), hostile);
        assert_eq!(printed(Kind::Json, false, &[document.as_bytes()]), document.as_bytes());
    }

    #[test]
    fn characters_may_come_in_pieces_and_bytes_need_not_be_any() {
        let text = "ö\u{202e}😀";
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(printed(Kind::Text, true, &bytes), "ö\\u{202e}😀".as_bytes());
        assert_eq!(printed(Kind::Text, true, &[b"a\xffb\xe2\x80z"]), br"a\xffb\xe2\x80z");
    }

    #[test]
    fn only_our_own_styles_pass() {
        let ours = style("\u{1b}[2Jx", "31");
        let shown = printed(Kind::Text, true, &[ours.as_bytes()]);
        assert_eq!(shown, b"\x1b[31m\\u{1b}[2Jx\x1b[0m");
    }

    /// A command that prints past the guard would bring hostile text to the terminal.
    #[test]
    fn nothing_is_printed_past_the_guard() {
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
