//! Letters without case, accents and compatibility forms.

use std::collections::VecDeque;

use unicode_normalization::char::{compose, decompose_compatible};

use super::script::is_accent;

/// Folds characters one by one: compatibility decomposition, lower case, accents
/// dropped, and what was not an accent put together again. It holds back one
/// character, and so needs constant memory whatever comes.
#[derive(Debug, Default)]
pub(super) struct Folder {
    last: Option<char>,
    ready: VecDeque<char>,
}

impl Folder {
    /// Takes one character of the text.
    pub(super) fn push(&mut self, c: char) {
        if c.is_ascii() {
            // No mark that is kept goes together with these.
            self.flush();
            self.ready.push_back(c.to_ascii_lowercase());
            return;
        }
        decompose_compatible(c, |part| {
            if !is_accent(part) {
                for lower in part.to_lowercase().filter(|&lower| !is_accent(lower)) {
                    self.take(lower);
                }
            }
        });
    }

    /// Whether nothing is held back.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.ready.is_empty()
    }

    /// Lets go of the character that waited for marks.
    pub(super) fn flush(&mut self) {
        self.ready.extend(self.last.take());
    }

    /// The next folded character.
    pub(super) fn pop(&mut self) -> Option<char> {
        self.ready.pop_front()
    }

    fn take(&mut self, c: char) {
        if let Some(plain) = plain_letters(c) {
            self.flush();
            self.ready.extend(plain.chars());
            return;
        }
        match self.last.and_then(|last| compose(last, c)) {
            Some(whole) => self.last = Some(whole),
            None => {
                self.flush();
                self.last = Some(c);
            }
        }
    }
}

/// Letters that Unicode does not decompose, and people type without.
fn plain_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'ı' => "i",
        'ĸ' => "k",
        'ŋ' => "n",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut folder = Folder::default();
        text.chars().for_each(|c| folder.push(c));
        folder.flush();
        std::iter::from_fn(|| folder.pop()).collect()
    }

    #[test]
    fn accents_case_and_forms_go() {
        for (text, expected) in [
            ("Café", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("STRASSE Straße STRAẞE", "strasse strasse strasse"),
            ("Ærøskøbing Łódź", "aeroskobing lodz"),
            ("İstanbul ISPARTA ısparta", "istanbul isparta isparta"),
            ("ＡＢＣ１２", "abc12"),
            ("ﬁne", "fine"),
            ("ΣΊΣΥΦΟΣ σίσυφος", "σισυφοσ σισυφοσ"),
            ("ёж Ёж", "еж еж"),
            ("Å \u{212b}", "a a"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn other_letters_and_syllables_stay() {
        for (text, expected) in [
            ("한국어", "한국어"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("ガ が \u{304b}\u{3099} ｶﾞ", "ガ が が ガ"),
            ("ไทย น้ำ", "ไทย น\u{e49}\u{e4d}\u{e32}"),
            ("हिन्दी", "हिन्दी"),
            ("শালো", "শালো"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
    }

    #[test]
    fn any_number_of_marks_needs_no_memory() {
        let mut folder = Folder::default();
        folder.push('e');
        for _ in 0..200_000 {
            folder.push('\u{301}');
        }
        folder.flush();
        assert_eq!(folder.pop(), Some('e'));
        assert_eq!(folder.pop(), None);
        assert!(folder.ready.capacity() < 64);
    }
}
