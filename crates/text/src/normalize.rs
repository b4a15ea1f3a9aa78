//! Removes case, accents and compatibility forms.

use std::collections::VecDeque;

use unicode_normalization::char::{compose, decompose_compatible};

use super::script::is_accent;

/// Normalizes characters one by one: compatibility decomposition, lower case, accents dropped, the
/// rest recomposed. It buffers one character, so its memory use is constant.
#[derive(Debug, Default)]
pub(super) struct Normalizer {
    last: Option<char>,
    ready: VecDeque<char>,
}

impl Normalizer {
    pub(super) fn push(&mut self, c: char) {
        if c.is_ascii() {
            // ASCII composes with accents only, and those are dropped.
            self.flush();
            self.ready.push_back(c.to_ascii_lowercase());
            return;
        }
        decompose_compatible(c, |part| {
            if !is_accent(part) {
                for lower in part.to_lowercase().filter(|&lower| !is_accent(lower)) {
                    self.push_lower(lower);
                }
            }
        });
    }

    /// Whether nothing is buffered.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.ready.is_empty()
    }

    /// Releases the character that was kept for composition.
    pub(super) fn flush(&mut self) {
        self.ready.extend(self.last.take());
    }

    /// The next normalized character.
    pub(super) fn pop(&mut self) -> Option<char> {
        self.ready.pop_front()
    }

    fn push_lower(&mut self, c: char) {
        if let Some(letters) = plain_letters(c) {
            self.flush();
            self.ready.extend(letters.chars());
            return;
        }
        match self.last.and_then(|last| compose(last, c)) {
            Some(composed) => self.last = Some(composed),
            None => {
                self.flush();
                self.last = Some(c);
            }
        }
    }
}

/// ASCII spellings of letters that Unicode does not decompose; also final sigma.
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

    fn normalized(text: &str) -> String {
        let mut normalizer = Normalizer::default();
        text.chars().for_each(|c| normalizer.push(c));
        normalizer.flush();
        std::iter::from_fn(|| normalizer.pop()).collect()
    }

    #[test]
    fn case_accents_and_compatibility_forms_are_removed() {
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
            assert_eq!(normalized(text), expected, "{text}");
        }
    }

    #[test]
    fn other_letters_and_syllables_are_kept() {
        for (text, expected) in [
            ("한국어", "한국어"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("ガ が \u{304b}\u{3099} ｶﾞ", "ガ が が ガ"),
            ("ไทย น้ำ", "ไทย น\u{e49}\u{e4d}\u{e32}"),
            ("हिन्दी", "हिन्दी"),
            ("শালো", "শালো"),
        ] {
            assert_eq!(normalized(text), expected, "{text}");
        }
    }

    #[test]
    fn memory_use_is_constant_for_any_number_of_marks() {
        let mut normalizer = Normalizer::default();
        normalizer.push('e');
        for _ in 0..200_000 {
            normalizer.push('\u{301}');
        }
        normalizer.flush();
        assert_eq!(normalizer.pop(), Some('e'));
        assert_eq!(normalizer.pop(), None);
        assert!(normalizer.ready.capacity() < 64);
    }
}
