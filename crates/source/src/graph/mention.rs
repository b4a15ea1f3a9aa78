use std::collections::HashSet;
use std::ops::Range;

use isolith_types::{Definition, DefinitionKind, FileGraph, Origin, Reference, ReferenceKind};

use crate::Language;

/// A section of a document.
pub(crate) struct Heading<'t> {
    /// What it is called.
    pub(crate) name: &'t str,
    /// The section around it, by its index.
    pub(crate) parent: Option<usize>,
    /// Its bytes.
    pub(crate) extent: Range<usize>,
}

/// What a document has in code marks is no longer than this, if it is a name.
const LONGEST_NAME: usize = 100;

/// The sections of a document, and what they name in code marks.
pub(crate) fn sections(language: Language, headings: &[Heading<'_>], text: &str) -> FileGraph {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).max(1) as u32;
    let mut seen = std::collections::HashMap::<String, u32>::new();
    let mut definitions: Vec<Definition> = Vec::with_capacity(headings.len());
    for heading in headings {
        let around = heading.parent.and_then(|parent| definitions.get(parent));
        let qualified = match around {
            Some(around) => format!("{}.{}", around.qualified, heading.name),
            None => heading.name.to_owned(),
        };
        let count = seen.entry(qualified.clone()).or_default();
        let ordinal = *count;
        *count += 1;
        let line = line_of(heading.extent.start);
        definitions.push(Definition {
            parent: heading.parent.map(|parent| parent as u32),
            kind: DefinitionKind::Section,
            name: heading.name.to_owned(),
            qualified,
            ordinal,
            line,
            start_line: line,
            end_line: line_of(heading.extent.end.saturating_sub(1)).max(line),
            signature: None,
            exported: true,
            test: false,
            declared: false,
            owner: None,
            value: None,
            bases: Vec::new(),
        });
    }
    let references = mentions(language, headings, text, line_of);
    let language = language.name().to_owned();
    FileGraph { language, definitions, references, ..FileGraph::default() }
}

fn mentions(
    language: Language,
    headings: &[Heading<'_>],
    text: &str,
    line_of: impl Fn(usize) -> u32,
) -> Vec<Reference> {
    let mut references = Vec::new();
    let mut seen = HashSet::new();
    let mut at = 0;
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if fences(language).iter().any(|fence| line.trim_start().starts_with(fence)) {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let section = headings.iter().rposition(|heading| heading.extent.contains(&start));
        // Double marks mean the same. Every second part is between two marks.
        let line = line.replace("``", "`");
        for part in line.split('`').skip(1).step_by(2) {
            let Some(name) = named(part) else { continue };
            if seen.insert((section, name.to_owned())) {
                references.push(Reference {
                    within: section.map(|section| section as u32),
                    kind: ReferenceKind::Mention,
                    target: Origin::Name(name.to_owned()),
                    line: line_of(start),
                });
            }
        }
    }
    references
}

/// What begins and ends blocks of code.
fn fences(language: Language) -> &'static [&'static str] {
    match language {
        Language::AsciiDoc => &["```", "----", "...."],
        Language::Rst => &[],
        _ => &["```", "~~~"],
    }
}

/// The name that a piece of code is, if it is nothing else: `a.b`, `A::b`, `f()`.
fn named(code: &str) -> Option<&str> {
    let name = match code.split_once('(') {
        Some((name, rest)) if rest.ends_with(')') => name,
        Some(_) => return None,
        None => code,
    };
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '#'));
    let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let ends = name.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (plain && begins && ends && (3..=LONGEST_NAME).contains(&name.len())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_name_what_is_in_code_marks() {
        let text =
            "# One\n\nUse `Engine.open()` and `a b`.\n\n```\n`not_this`\n```\n## Two\n`two_of`\n";
        let two = text.find("## Two").unwrap();
        let headings = [
            Heading { name: "One", parent: None, extent: 0..text.len() },
            Heading { name: "Two", parent: Some(0), extent: two..text.len() },
        ];
        let graph = sections(Language::Markdown, &headings, text);
        let lines: Vec<_> = graph.definitions.iter().map(|d| (d.start_line, d.end_line)).collect();
        assert_eq!(lines, [(1, 9), (8, 9)]);
        assert_eq!(graph.definitions[1].qualified, "One.Two");
        let said: Vec<_> = graph.references.iter().map(|r| (r.within, &r.target, r.line)).collect();
        let name = |name: &str| Origin::Name(name.to_owned());
        assert_eq!(said, [(Some(0), &name("Engine.open"), 3), (Some(1), &name("two_of"), 9)]);
    }

    #[test]
    fn code_that_is_no_name_is_passed_over() {
        let table = [
            ("Store::open", Some("Store::open")),
            ("main()", Some("main")),
            ("fold(a, b)", Some("fold")),
            ("let x", None),
            ("-v", None),
            ("a", None),
            ("cargo test", None),
            ("1.2.3", None),
        ];
        for (code, name) in table {
            assert_eq!(named(code), name, "{code}");
        }
    }
}
