use isolith_types::SymbolKind;

use super::blocks::Blocks;
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// The build stages of a Dockerfile. One without a name is a block that is called by its image.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut blocks = Blocks::new(lines);
    let mut continues = false;
    let mut heredoc: Option<&str> = None;
    for row in 0..lines.count() {
        let line = lines.row(row).trim();
        if let Some(end) = heredoc {
            if line == end {
                heredoc = None;
            }
            blocks.extend(row);
        } else if line.starts_with('#') {
            blocks.comment(row);
        } else if !line.is_empty() {
            let continued = std::mem::replace(&mut continues, line.ends_with('\\'));
            match stage(line).filter(|_| !continued) {
                Some(Stage { image, name }) => {
                    let symbol = name.map(|_| SymbolKind::Module);
                    blocks.begin(row, [name.unwrap_or(image)], symbol);
                }
                None => blocks.extend(row),
            }
            heredoc = heredoc_end(line);
        }
    }
    blocks.finish()
}

struct Stage<'t> {
    image: &'t str,
    name: Option<&'t str>,
}

/// `FROM --platform=x image AS name`
fn stage(line: &str) -> Option<Stage<'_>> {
    let mut words = line.split_whitespace();
    words.next().filter(|word| word.eq_ignore_ascii_case("from"))?;
    let image = words.find(|word| !word.starts_with("--"))?;
    let is_named = words.next().is_some_and(|word| word.eq_ignore_ascii_case("as"));
    Some(Stage { image, name: words.next().filter(|_| is_named) })
}

/// What ends the text that an instruction announces with `<<EOF`.
fn heredoc_end(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("<<")?;
    let after = after.strip_prefix('-').unwrap_or(after).trim_start_matches(['"', '\'']);
    let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(after.len());
    (end > 0).then(|| &after[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_found() {
        let text = "# syntax\nARG V=1\n\n# Builds it.\nFROM --platform=$P rust:${V} AS build\nRUN a \\\n  \
                    from b\nRUN <<EOF\nFROM x as y\nEOF\nfrom scratch\nCOPY --from=build a b\n";
        let outline = outline(&Lines::of(text));
        let found: Vec<_> =
            outline.definitions.iter().map(|it| (it.name.as_str(), it.symbol)).collect();
        assert_eq!(found, [("build", Some(SymbolKind::Module)), ("scratch", None)]);
        let build = &outline.definitions[0];
        assert!(text[build.extent.clone()].ends_with("EOF\n"));
        assert_eq!(&text[build.doc.clone()], "# Builds it.\n");
    }
}
