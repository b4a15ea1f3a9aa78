//! Character classes for tokenization.

use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// Whether a character belongs to a word.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Invisible characters, which are neither part of a word nor end it.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}'
        | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0100}'..='\u{e01ef}')
}

pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}' | '\u{ff07}')
}

/// Marks that normalization drops: accents above, below and across letters, and the points of
/// Hebrew and Arabic. Marks that form another letter or syllable (voiced kana, nukta, virama, Thai
/// and Lao vowels and tones) are kept.
pub(super) fn is_accent(c: char) -> bool {
    matches!(
        canonical_combining_class(c),
        1 | 10..=36 | 200..=240
    )
}

/// Scripts indexed as bigrams: those without spaces between words, and Hangul, which attaches
/// particles to words.
pub(super) fn is_unspaced(c: char) -> bool {
    if c < '\u{e00}' {
        return false;
    }
    matches!(c,
        '\u{e00}'..='\u{eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'   // Myanmar
        | '\u{1100}'..='\u{11ff}'   // Hangul letters
        | '\u{1780}'..='\u{17ff}'   // Khmer
        | '\u{1950}'..='\u{19ff}'   // Tai Le, New Tai Lue, Khmer symbols
        | '\u{1a20}'..='\u{1aaf}'   // Tai Tham
        | '\u{2e80}'..='\u{2fdf}'   // radicals
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{303c}'
        | '\u{3041}'..='\u{318f}'   // kana, Bopomofo, Hangul compatibility letters
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' // Han
        | '\u{a000}'..='\u{a4cf}'   // Yi
        | '\u{a960}'..='\u{a97f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aadf}'
        | '\u{ac00}'..='\u{d7ff}'   // Hangul syllables
        | '\u{f900}'..='\u{faff}'
        | '\u{1b000}'..='\u{1b16f}' // more kana
        | '\u{20000}'..='\u{3ffff}') // more Han
}
