//! The definition that a line is in.

use isolith_protocol::{EnclosingSymbol, StoredChunk};
use isolith_types::Definition;

/// The innermost definition around a line of a file; of a chunk of it, if the graph does not know
/// the file's language.
pub(super) fn enclosing(
    definitions: &[Definition],
    chunk: Option<&StoredChunk>,
    line: u32,
) -> Option<EnclosingSymbol> {
    if definitions.is_empty() {
        return chunk.and_then(|chunk| last_symbol(chunk, line));
    }
    let around = definitions.iter().filter(|it| (it.start_line..=it.end_line).contains(&line));
    // Of two on the same lines, the later is inside the earlier.
    let innermost = around.rev().min_by_key(|it| it.end_line - it.start_line)?;
    let parent = innermost.parent.and_then(|at| definitions.get(at as usize));
    Some(EnclosingSymbol {
        name: innermost.name.clone(),
        line: Some(innermost.line),
        parent: parent.map(|parent| parent.name.clone()),
        signature: innermost.signature.clone(),
    })
}

/// The last symbol of a chunk that begins at a line or before it, or what the chunk is part of.
fn last_symbol(chunk: &StoredChunk, line: u32) -> Option<EnclosingSymbol> {
    match chunk.symbols.iter().rev().find(|symbol| symbol.line <= line) {
        Some(symbol) => Some(EnclosingSymbol {
            name: symbol.name.clone(),
            line: Some(symbol.line),
            parent: chunk.parent.clone().filter(|parent| *parent != symbol.name),
            signature: chunk.signature.clone().filter(|_| chunk.symbols.len() == 1),
        }),
        None => {
            let name = chunk.parent.clone()?;
            Some(EnclosingSymbol { name, line: None, parent: None, signature: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use isolith_types::{ChunkKind, DefinitionKind, Symbol, SymbolKind};

    use super::*;

    fn definition(name: &str, parent: Option<u32>, lines: (u32, u32)) -> Definition {
        Definition {
            parent,
            kind: DefinitionKind::Function,
            name: name.to_owned(),
            qualified: name.to_owned(),
            ordinal: 0,
            line: lines.0,
            start_line: lines.0,
            end_line: lines.1,
            signature: None,
            exported: false,
            test: false,
            declared: false,
            owner: None,
            value: None,
            bases: Vec::new(),
        }
    }

    fn name(found: Option<EnclosingSymbol>) -> Option<(String, Option<String>)> {
        found.map(|it| (it.name, it.parent))
    }

    #[test]
    fn the_innermost_definition_is_found() {
        let definitions = [
            definition("Pool", None, (2, 20)),
            definition("take", Some(0), (4, 8)),
            definition("one_line", Some(0), (10, 10)),
            definition("inside", Some(2), (10, 10)),
        ];
        for (line, expected) in [
            (1, None),
            (3, Some(("Pool", None))),
            (4, Some(("take", Some("Pool")))),
            (8, Some(("take", Some("Pool")))),
            (9, Some(("Pool", None))),
            (10, Some(("inside", Some("one_line")))),
            (21, None),
        ] {
            let expected =
                expected.map(|(name, parent)| (name.to_owned(), parent.map(str::to_owned)));
            assert_eq!(name(enclosing(&definitions, None, line)), expected, "{line}");
        }
    }

    #[test]
    fn without_definitions_the_chunk_tells() {
        let symbol =
            |name: &str, line| Symbol { name: name.to_owned(), kind: SymbolKind::Function, line };
        let chunk = StoredChunk {
            row: 1,
            change: 1,
            file: 1,
            start_line: 10,
            end_line: 30,
            kind: ChunkKind::Function,
            symbols: vec![symbol("a", 12), symbol("b", 20)],
            parent: Some("outer".to_owned()),
            signature: None,
            doc: None,
            text: None,
        };
        for (line, expected) in
            [(10, ("outer", None)), (12, ("a", Some("outer"))), (25, ("b", Some("outer")))]
        {
            let expected = (expected.0.to_owned(), expected.1.map(str::to_owned));
            assert_eq!(name(enclosing(&[], Some(&chunk), line)), Some(expected), "{line}");
        }
        assert_eq!(enclosing(&[], None, 1), None);
    }
}
