//! Finds sentences that state a decision or leave something open.
//!
//! Plain English phrases and tags; what they miss is still among what was said last.

use isolith_types::Drawer;

use super::LINE_CHARS;
use crate::text::one_line;

/// Phrases in lower case, as they occur in sentences.
const DECISIONS: [&str; 9] = [
    "decided",
    "decision:",
    "we chose",
    "we agreed",
    "agreed to",
    "agreed on",
    "settled on",
    "from now on",
    "let's use",
];
const OPEN_ENDS: [&str; 12] = [
    "todo",
    "fixme",
    "to do:",
    "open question",
    "next step",
    "next:",
    "still need",
    "still open",
    "unresolved",
    "blocked by",
    "blocked on",
    "follow up",
];

/// Maximum number of notes from one drawer.
const NOTES_EACH: usize = 3;

/// How much of a drawer is looked at, in bytes.
const MAX_TEXT: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoteKind {
    Decision,
    OpenEnd,
}

/// A sentence worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) kind: NoteKind,
    pub(super) line: String,
}

/// The notes in a drawer. One that is tagged as a decision or as open is a note as a whole.
pub(super) fn notes(drawer: &Drawer) -> Vec<Note> {
    let has = |tags: &[&str]| {
        drawer.tags.iter().any(|tag| tags.iter().any(|it| tag.eq_ignore_ascii_case(it)))
    };
    for (kind, tags) in
        [(NoteKind::Decision, ["decision", "decisions"]), (NoteKind::OpenEnd, ["todo", "open"])]
    {
        if has(&tags) {
            return vec![Note { kind, line: line(drawer, &drawer.text) }];
        }
    }
    let text = crate::text::truncate(&drawer.text, MAX_TEXT);
    let note = |sentence: &str| {
        let kind = kind_of(sentence)?;
        Some(Note { kind, line: line(drawer, sentence) })
    };
    sentences(text).filter_map(note).take(NOTES_EACH).collect()
}

/// A line with the drawer's date and id.
pub(super) fn line(drawer: &Drawer, text: &str) -> String {
    let date = drawer.date.unwrap_or(drawer.created_at).to_string();
    let day = date.get(..10).unwrap_or(&date);
    format!("{day} {}: {}", drawer.id, one_line(text, LINE_CHARS))
}

fn kind_of(sentence: &str) -> Option<NoteKind> {
    let sentence = sentence.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| contains_words(&sentence, phrase));
    match () {
        () if has(&OPEN_ENDS) => Some(NoteKind::OpenEnd),
        () if has(&DECISIONS) => Some(NoteKind::Decision),
        () => None,
    }
}

/// Whether a phrase is in a sentence, not as part of longer words.
fn contains_words(sentence: &str, phrase: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    sentence.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&sentence[..at], &sentence[at + phrase.len()..]);
        !is_word(before.chars().next_back()) && !is_word(after.chars().next())
    })
}

/// Lines, split after full stops.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split_inclusive(". ")).map(str::trim).filter(|it| {
        // A word alone says nothing.
        it.contains(' ')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_classified() {
        use NoteKind::{Decision, OpenEnd};
        for (sentence, expected) in [
            ("We decided to drop Python 3.8.", Some(Decision)),
            ("Decision: one table per day", Some(Decision)),
            ("They are undecided about it", None),
            ("TODO: retries", Some(OpenEnd)),
            ("call todolist() first", None),
            ("It is blocked on the review; we decided to wait.", Some(OpenEnd)),
            ("The next step is a release.", Some(OpenEnd)),
            ("The office is in Bonn.", None),
        ] {
            assert_eq!(kind_of(sentence), expected, "{sentence}");
        }
        let split: Vec<&str> = sentences("One two. Three four\nfive\n\nsix seven").collect();
        assert_eq!(split, ["One two.", "Three four", "six seven"]);
    }
}
