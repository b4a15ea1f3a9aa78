//! Splits text into words.

use std::ops::ControlFlow;

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use crate::table::KEY_BYTES;

/// Longer words are unknown, whatever they contain.
pub(crate) const MAX_WORD_BYTES: usize = 400;

/// A normalised word. Bytes beyond the limit are counted but not stored.
pub(crate) struct Word {
    /// Longer than the limit, so that a key can be read at any position.
    bytes: [u8; MAX_WORD_BYTES + KEY_BYTES],
    length: usize,
}

impl Word {
    fn new() -> Self {
        Self { bytes: [0; MAX_WORD_BYTES + KEY_BYTES], length: 0 }
    }

    /// Its length in bytes, which may exceed the limit.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The key bytes at a position, which may extend beyond the word's end.
    #[inline]
    pub(crate) fn from(&self, start: usize) -> Option<&[u8; KEY_BYTES]> {
        self.bytes.get(start..)?.first_chunk()
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if self.length < MAX_WORD_BYTES {
            self.bytes[self.length] = byte;
        }
        self.length += 1;
    }

    /// Adds the first `length` of these bytes.
    #[inline]
    fn push_some(&mut self, bytes: [u8; 8], length: usize) {
        // Surplus bytes are beyond the word's end, where they are ignored.
        if self.length <= MAX_WORD_BYTES
            && let Some(room) = self.bytes[self.length..].first_chunk_mut()
        {
            *room = bytes;
        }
        self.length += length;
    }

    fn push_char(&mut self, c: char) {
        for &byte in c.encode_utf8(&mut [0; 4]).as_bytes() {
            self.push(byte);
        }
    }
}

/// Receives the words of a text until it breaks off.
pub(crate) trait WordSink {
    /// A word.
    fn word(&mut self, word: &Word) -> ControlFlow<()>;

    /// A single ASCII character other than a letter or digit. These are frequent.
    fn symbol(&mut self, symbol: u8) -> ControlFlow<()>;
}

/// Calls `take` for each word of a text.
pub(crate) fn each_word(text: &str, take: &mut impl WordSink) -> ControlFlow<()> {
    let mut words = Words { word: Word::new(), last: Class::Gap, take };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let class = CLASSES[usize::from(byte)];
        match class {
            Class::Lower => {
                let run = words.join_run(&bytes[at..]);
                at += run;
                continue;
            }
            Class::Digit => words.join(byte, class),
            Class::Upper => {
                let next = bytes.get(at + 1).map(|&next| CLASSES[usize::from(next)]);
                if words.starts_new_word(next) {
                    words.end()?;
                }
                words.join(byte.to_ascii_lowercase(), class);
            }
            Class::Gap => words.end()?,
            Class::Symbol => {
                words.end()?;
                words.take.symbol(byte)?;
            }
            Class::Dropped => {}
            Class::NonAscii => {
                let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
                words.push_non_ascii(c)?;
                at += c.len_utf8();
                continue;
            }
        }
        at += 1;
    }
    words.end()
}

/// The class of a byte, and of the last character of the current word: `Gap` if the word is
/// empty, `NonAscii` if the character is not ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Gap,
    Symbol,
    Dropped,
    NonAscii,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::NonAscii; 256];
    let mut byte: u8 = 0;
    while byte.is_ascii() {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b' ' | b'\t'..=b'\r' => Class::Gap,
            0..=0x1f | 0x7f => Class::Dropped,
            _ => Class::Symbol,
        };
        byte += 1;
    }
    classes
};

struct Words<'t, T> {
    word: Word,
    last: Class,
    take: &'t mut T,
}

impl<T: WordSink> Words<'_, T> {
    #[inline]
    fn join(&mut self, byte: u8, class: Class) {
        self.word.push(byte);
        self.last = class;
    }

    /// Appends the lower-case letters at the start of `text`: at least one, at most eight.
    /// Returns how many.
    #[inline]
    fn join_run(&mut self, text: &[u8]) -> usize {
        self.last = Class::Lower;
        let Some(&bytes) = text.first_chunk() else {
            self.word.push(text[0]);
            return 1;
        };
        let run = lower_case_run(bytes);
        self.word.push_some(bytes, run);
        run
    }

    #[inline]
    fn end(&mut self) -> ControlFlow<()> {
        if self.word.length > 0 {
            self.take.word(&self.word)?;
            self.word.length = 0;
        }
        self.last = Class::Gap;
        ControlFlow::Continue(())
    }

    /// Whether a capital starts the next word of a name, given the class of what follows it.
    #[inline]
    fn starts_new_word(&self, next: Option<Class>) -> bool {
        match self.last {
            Class::Lower | Class::Digit => true,
            Class::Upper => next == Some(Class::Lower),
            _ => false,
        }
    }

    /// Handles a non-ASCII character. Combining marks are dropped.
    fn push_non_ascii(&mut self, c: char) -> ControlFlow<()> {
        if c.is_whitespace() {
            return self.end();
        }
        if is_dropped(c) {
            return ControlFlow::Continue(());
        }
        if is_ideograph(c) || !(c.is_alphanumeric() || is_combining_mark(c)) {
            self.end()?;
            self.word.push_char(c);
            return self.end();
        }
        for lower in c.to_lowercase() {
            decompose_canonical(lower, |part| {
                if !is_combining_mark(part) {
                    self.word.push_char(part);
                    self.last = Class::NonAscii;
                }
            });
        }
        ControlFlow::Continue(())
    }
}

/// The number of lower-case ASCII letters at the start of these bytes, computed from the
/// highest bit of each byte.
#[inline]
fn lower_case_run(bytes: [u8; 8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let text = u64::from_le_bytes(bytes);
    let low = text & (EACH * 0x7f);
    let from_a = low + EACH * (0x80 - b'a' as u64);
    let beyond_z = low + EACH * (0x7f - b'z' as u64);
    let others = !(from_a & !beyond_z & !text) & (EACH * 0x80);
    others.trailing_zeros() as usize / 8
}

fn is_dropped(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2064}'
                | '\u{feff}'
                | '\u{fffd}'
        )
}

fn is_ideograph(c: char) -> bool {
    matches!(
        c,
        '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{2ceaf}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Collected {
        words: Vec<String>,
        most: usize,
    }

    impl Collected {
        fn push(&mut self, word: &[u8]) -> ControlFlow<()> {
            self.words.push(str::from_utf8(word).unwrap().to_owned());
            if self.words.len() == self.most {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        }
    }

    impl WordSink for Collected {
        fn word(&mut self, word: &Word) -> ControlFlow<()> {
            self.push(&word.bytes[..word.length.min(MAX_WORD_BYTES)])
        }

        fn symbol(&mut self, symbol: u8) -> ControlFlow<()> {
            self.push(&[symbol])
        }
    }

    fn words(text: &str) -> Vec<String> {
        let mut collected = Collected { words: Vec::new(), most: usize::MAX };
        assert!(each_word(text, &mut collected).is_continue());
        collected.words
    }

    #[test]
    fn names_and_symbols_become_words() {
        for (text, expected) in [
            ("parseHTTPHeader", "parse http header"),
            ("XMLHttpRequest2 utf8Decoder", "xml http request2 utf8 decoder"),
            ("snake_case __init__ SCREAMING", "snake case init screaming"),
            ("A1b AB1C", "a1b ab1 c"),
            ("x->y != [1]", "x - > y ! = [ 1 ]"),
            ("a\0b\x7fc\u{b}d", "abc d"),
            ("aB\u{e9}Cd HTTP\u{e9}", "a becd httpe"),
            ("na\u{ef}ve \u{dc}bergr\u{f6}\u{df}e", "naive ubergro\u{df}e"),
            ("\u{130}stanbul \u{212a}elvin", "istanbul kelvin"),
            ("caf\u{e9}\u{2014}bar\u{a0}baz", "cafe \u{2014} bar baz"),
            ("soft\u{ad}hyphen zero\u{200b}width", "softhyphen zerowidth"),
            (
                "\u{30c7}\u{30fc}\u{30bf}\u{63a5}\u{7d9a}",
                "\u{30c6}\u{30fc}\u{30bf} \u{63a5} \u{7d9a}",
            ),
            ("km\u{b2} \u{1f600}x", "km\u{b2} \u{1f600} x"),
            ("\u{301}\u{301}", ""),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn long_words_and_many_marks_fit_in_one_buffer() {
        let long = words(&"z".repeat(1_000_000));
        assert_eq!(long, ["z".repeat(MAX_WORD_BYTES)]);
        assert_eq!(words(&format!("e{}x", "\u{301}".repeat(1_000_000))), ["ex"]);
    }

    #[test]
    fn breaking_off_stops_the_iteration() {
        for (text, most) in [("a b c d", 2), ("a+b", 2), ("\u{4e00}\u{4e00}", 1)] {
            let mut collected = Collected { words: Vec::new(), most };
            assert!(each_word(text, &mut collected).is_break());
            assert_eq!(collected.words.len(), most);
        }
    }

    #[test]
    fn lower_case_runs_are_measured_correctly() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut bytes = *b"azmzaxyz";
                bytes[at] = byte;
                let expected = if byte.is_ascii_lowercase() { 8 } else { at };
                assert_eq!(lower_case_run(bytes), expected, "{byte} {at}");
            }
        }
    }
}
