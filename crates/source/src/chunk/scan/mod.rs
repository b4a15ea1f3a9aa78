//! Outlines of files that need no grammar: documents by their headings, and languages whose
//! definitions begin at the start of a line. One pass over the lines, without native code.

mod asciidoc;
mod blocks;
mod docker;
mod make;
mod markdown;
mod rst;
mod sections;
mod sql;
mod yaml;

use std::ops::Range;

use super::lines::Lines;
use super::outline::Outline;
use crate::Language;

/// What a file defines where, if its language is read without a grammar. Nothing if there is
/// nothing to be found in it.
pub(super) fn outline(language: Language, lines: &Lines<'_>) -> Option<Outline> {
    let outline = match language {
        Language::Markdown => return Some(markdown::outline(lines)),
        Language::Rst => rst::outline(lines),
        Language::AsciiDoc => asciidoc::outline(lines),
        Language::Yaml => yaml::outline(lines),
        Language::Make => make::outline(lines),
        Language::Docker => docker::outline(lines),
        Language::Sql => sql::outline(lines),
        _ => return None,
    };
    (!outline.definitions.is_empty()).then_some(outline)
}

/// The headings in some rows of Markdown.
pub(super) fn markdown_part(lines: &Lines<'_>, rows: Range<usize>) -> Outline {
    markdown::outline_of(lines, rows)
}
