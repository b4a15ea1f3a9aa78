//! What becomes of a file in each language.

use std::fmt::Write as _;
use std::path::Path;

use isolate_types::InWorker;
use isolith_source::{Chunked, Chunker, Language, Mode, WorkLimit};

fn chunked(path: &str, text: &str) -> Chunked {
    let mut chunker = Chunker::new(InWorker::in_process());
    chunker.chunk(path, text, Mode::Parsed, WorkLimit::NONE, &|| false)
}

/// The chunks without their text, a few lines for each.
fn rendered(chunked: &Chunked) -> String {
    let mut out = String::new();
    for chunk in &chunked.chunks {
        let Ok(()) = write!(out, "{}-{} {}", chunk.start_line, chunk.end_line, chunk.kind) else {
            continue;
        };
        if let Some(parent) = &chunk.parent {
            out.push_str(&format!(" in {parent}"));
        }
        out.push('\n');
        for symbol in &chunk.symbols {
            out.push_str(&format!("    {}: {:?} {}\n", symbol.line, symbol.kind, symbol.name));
        }
        for (mark, text) in [("sig", &chunk.signature), ("doc", &chunk.doc)] {
            if let Some(text) = text {
                out.push_str(&format!("  {mark} {text}\n"));
            }
        }
    }
    out
}

#[test]
fn fixtures_of_every_language() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut languages = Vec::new();
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let text = std::fs::read_to_string(&path).unwrap();
        let chunked = chunked(&path.to_string_lossy(), &text);
        assert_eq!(chunked.problem, None);
        insta::assert_snapshot!(chunked.language.name(), rendered(&chunked));
        languages.push(chunked.language);
    }
    for language in Language::all().filter(|language| language.has_grammar()) {
        assert!(languages.contains(&language), "no fixture in {language}");
    }
}
