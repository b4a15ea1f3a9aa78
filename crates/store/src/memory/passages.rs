/// Texts up to this many characters are not split.
const MAX_UNSPLIT: usize = 1_500;

/// Maximum and minimum length of a passage, in characters.
const MAX_PASSAGE: usize = 1_200;
const MIN_PASSAGE: usize = 600;

/// Splits a text into passages whose concatenation is the text. None is blank, unless the text
/// is. Splits at the ends of paragraphs, else of lines and sentences, else of words, and never
/// inside a character.
pub fn passages(text: &str) -> Vec<&str> {
    let mut passages = Vec::new();
    let mut rest = text;
    while let Some(end) = cut(rest) {
        let (passage, after) = rest.split_at(end);
        passages.push(passage);
        rest = after;
    }
    passages.push(rest);
    passages
}

/// Where the first passage of a text ends; `None` if it is the only one.
fn cut(text: &str) -> Option<usize> {
    text.char_indices().nth(MAX_UNSPLIT)?;
    let (start, _) = text.char_indices().nth(MIN_PASSAGE)?;
    let (limit, _) = text.char_indices().nth(MAX_PASSAGE)?;
    let best = ends(text, start, limit).max_by_key(|(at, end)| (*end, *at));
    let at = best.map_or(limit, |(at, _)| at);
    // A blank passage is merged with its neighbour.
    let (before, after) = text.split_at(at);
    if after.trim_start().is_empty() {
        return None;
    }
    if before.trim_start().is_empty() {
        let word = text.len() - text.trim_start().len();
        return cut(&text[word..]).map(|end| word + end);
    }
    Some(at)
}

/// How good a position is for a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Word,
    Sentence,
    Paragraph,
}

/// The positions from `start` to `limit` at which something ends. White space belongs to what
/// precedes it.
fn ends(text: &str, start: usize, limit: usize) -> impl Iterator<Item = (usize, End)> {
    let letters = text[start..limit].char_indices().filter(|(_, letter)| !letter.is_whitespace());
    letters.filter_map(move |(at, _)| Some((start + at, end_of(&text[..start + at])?)))
}

/// What a text ends with, if anything.
fn end_of(text: &str) -> Option<End> {
    let words = text.trim_end();
    let space = &text[words.len()..];
    let closing = ['"', '\'', '”', '’', '»', ')', ']', '*', '_'];
    let mark = words.trim_end_matches(closing).chars().next_back()?;
    match space.matches('\n').count() {
        2.. => Some(End::Paragraph),
        1 => Some(End::Sentence),
        _ if matches!(mark, '。' | '！' | '？') => Some(End::Sentence),
        _ if space.is_empty() => None,
        _ if matches!(mark, '.' | '!' | '?' | '…') => Some(End::Sentence),
        _ => Some(End::Word),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_split_at_the_best_positions() {
        let words = |count: usize| "word ".repeat(count);
        let paragraph = format!("{}\n\n", "x".repeat(700));
        let sentence = format!("{}. ", "y".repeat(800));
        for (text, first) in [
            // Short texts stay whole.
            ("x".repeat(MAX_UNSPLIT), None),
            (words(300), None),
            // Paragraphs before sentences before words.
            (format!("{paragraph}{}. {}", "z".repeat(200), words(200)), Some(702)),
            (format!("{sentence}{}", words(300)), Some(802)),
            (format!("{}\n{}", "y".repeat(900), words(300)), Some(901)),
            (format!("{}.\") {}", "y".repeat(900), words(300)), Some(904)),
            (words(400), Some(1195)),
            ("。".repeat(1_600), Some(1_199 * 3)),
            // No good position at all.
            ("x".repeat(MAX_UNSPLIT + 1), Some(MAX_PASSAGE)),
            ("ß".repeat(MAX_UNSPLIT + 1), Some(MAX_PASSAGE * 2)),
        ] {
            assert_eq!(cut(&text), first, "{text}");
        }
    }

    #[test]
    fn white_space_stays_with_the_preceding_words() {
        let space = " ".repeat(5_000);
        for text in [
            format!("{space}a"),
            format!("a{space}"),
            format!("a{space}b"),
            format!("{space}a{space}"),
        ] {
            let cut = passages(&text);
            assert_eq!(cut.concat(), text);
            assert!(cut.iter().all(|passage| !passage.trim().is_empty()), "{}", cut.len());
        }
    }

    /// Words, sentences, paragraphs, other scripts and long runs of all kinds.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-zé]{1,12}[ ]",
            "[a-z]{1,12}[.!?]",
            "[ \n\t]{1,3}",
            "[。漢字🙂]{1,30}",
            (0_usize..2_000).prop_map(|count| " ".repeat(count)),
            (0_usize..2_000).prop_map(|count| "x".repeat(count)),
        ];
        prop::collection::vec(piece, 0..200).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn passages_concatenate_to_the_text(text in texts()) {
            let cut = passages(&text);
            prop_assert_eq!(cut.concat(), text.clone());
            if !text.trim().is_empty() {
                for passage in &cut {
                    prop_assert!(!passage.trim().is_empty());
                    // Beyond the limit there is only white space.
                    prop_assert!(passage.trim().chars().count() <= MAX_UNSPLIT);
                }
            }
        }
    }
}
