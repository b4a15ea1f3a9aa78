use std::ops::Range;

use isolith_types::ChunkKind;

use super::embedded::Embedded;
use super::lines::Lines;
use super::outline::{Cut, Outline};
use crate::Language;

/// The scripts of a Vue or Svelte component, found without a parser. Everything else is text.
pub(super) fn scripts(lines: &Lines<'_>) -> Embedded {
    let mut found =
        Embedded { language: Language::JavaScript, code: Vec::new(), outline: Outline::default() };
    let text = lines.text();
    let mut text_from = 0;
    let mut at = 0;
    while let Some(block) = Block::next(text, at) {
        at = block.end;
        let start = lines.start(lines.row_of(block.start));
        found.outline.cuts.push(Cut { at: start, depth: 0, loose: false });
        if block.name != "script" || block.content.is_empty() {
            continue;
        }
        if let Some(language) = script_language(block.attributes) {
            if found.language == Language::JavaScript {
                found.language = language;
            }
            // A chunk that begins with the tag is one of code.
            found.outline.parts.push((text_from..start, ChunkKind::Text));
            text_from = block.content.end;
            found.code.push(block.content);
        }
    }
    found.outline.parts.push((text_from..text.len(), ChunkKind::Text));
    found
}

/// An outermost element of a component.
struct Block<'t> {
    name: &'t str,
    attributes: &'t str,
    start: usize,
    content: Range<usize>,
    end: usize,
}

impl<'t> Block<'t> {
    /// The next one from a place on. Only an element at the start of a line counts, as what is in
    /// a template is indented. A script that is not closed reaches to the end.
    fn next(text: &'t str, from: usize) -> Option<Self> {
        let mut at = from;
        loop {
            let start = at + text[at..].find('<')?;
            at = start + 1;
            let is_first = text[..start].ends_with('\n') || start == 0;
            if let Some(block) = Self::at(text, start).filter(|_| is_first) {
                return Some(block);
            }
        }
    }

    fn at(text: &'t str, start: usize) -> Option<Self> {
        const NAMES: [&str; 3] = ["script", "template", "style"];
        let inside = &text[start + 1..];
        let name = NAMES.into_iter().find(|name| {
            let rest = inside.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '>'))
        })?;
        let tag_end = start + 1 + tag_end(inside)?;
        let attributes = &text[start + 1 + name.len()..tag_end];
        let content = tag_end + 1;
        if attributes.ends_with('/') || name == "template" {
            return Some(Self { name, attributes, start, content: content..content, end: content });
        }
        let closing = format!("</{name}>");
        let (content, end) = match text[content..].find(&closing) {
            Some(length) => (content..content + length, content + length + closing.len()),
            None => (content..text.len(), text.len()),
        };
        Some(Self { name, attributes, start, content, end })
    }
}

/// Where the tag ends whose inside this is: quotes may have a `>` in them.
fn tag_end(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in inside.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at),
            (None, _) => {}
        }
    }
    None
}

/// The language of a script. None if it is data, such as JSON.
fn script_language(attributes: &str) -> Option<Language> {
    let value = |name: &str| {
        let (before, after) = attributes.split_once(&format!("{name}="))?;
        let value = after.trim_start_matches(['"', '\'']);
        let end = value.find(['"', '\'', ' ', '\n']).unwrap_or(value.len());
        before.ends_with(char::is_whitespace).then(|| &value[..end])
    };
    match value("lang").or_else(|| value("type")) {
        None | Some("js" | "javascript" | "jsx" | "module" | "text/javascript" | "text/babel") => {
            Some(Language::JavaScript)
        }
        Some("ts" | "typescript" | "text/typescript") => Some(Language::TypeScript),
        Some("tsx") => Some(Language::Tsx),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> (Language, Vec<&str>) {
        let found = scripts(&Lines::of(text));
        (found.language, found.code.into_iter().map(|range| &text[range]).collect())
    }

    #[test]
    fn scripts_are_found() {
        let text = "<template>\n  <script>no</script>\n  <template #a=\"x > y\"></template>\n</template>\n\
                    <script lang=\"ts\" setup generic=\"T extends A<B>\">\nlet a\n</script>\n<style>\n\
                    a { b: c }\n</style>\n<script>\nlet b\n</script>\n<script type=\"application/json\">\n{}\n";
        assert_eq!(code(text), (Language::TypeScript, vec!["\nlet a\n", "\nlet b\n"]));
    }

    #[test]
    fn damaged_components_have_what_can_be_found() {
        for (text, expected) in [
            ("<script", vec![]),
            ("<script>", vec![]),
            ("<script>a", vec!["a"]),
            ("<scripts>a</scripts>", vec![]),
            ("<script />\n<script>a</script>", vec!["a"]),
            ("<template><a/></template>\n<script>a</script>", vec!["a"]),
            ("<script src='a>b'>a</script >", vec!["a</script >"]),
        ] {
            assert_eq!(code(text).1, expected, "{text}");
        }
    }
}
