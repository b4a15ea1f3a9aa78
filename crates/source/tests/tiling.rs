//! Whatever a file holds: nothing of it is lost, nothing is there twice, and it ends.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use isolate_types::InWorker;
use isolith_source::{Chunked, Chunker, Language, Mode, WorkLimit};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::RngSeed;

const LONGEST: usize = 2_000;

thread_local! {
    static CHUNKER: RefCell<Chunker> = RefCell::new(Chunker::new(InWorker::in_process()));
}

fn chunked(path: &str, text: &str, limit: WorkLimit) -> Chunked {
    CHUNKER.with_borrow_mut(|chunker| chunker.chunk(path, text, Mode::Parsed, limit, &|| false))
}

/// The sources of a notebook's cells, if it is one.
fn sources(path: &str, text: &str) -> Option<String> {
    if !path.ends_with(".ipynb") {
        return None;
    }
    let notebook: serde_json::Value = serde_json::from_str(text).ok()?;
    let cells = notebook.get("cells")?.as_array()?.iter();
    let all: Option<String> = cells
        .map(|cell| {
            cell.get("cell_type")?.as_str()?;
            Some(match cell.get("source") {
                Some(serde_json::Value::Array(lines)) => {
                    lines.iter().filter_map(|line| line.as_str()).collect()
                }
                Some(source) => source.as_str().unwrap_or_default().to_owned(),
                None => String::new(),
            })
        })
        .collect();
    all
}

/// Checks that chunks are the lines of a text, in order. Those of a notebook are its sources, at
/// the lines where they stand.
fn assert_tiled(path: &str, text: &str, chunked: &Chunked) {
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let all: String = chunked.chunks.iter().map(|chunk| dense(&chunk.text)).collect();
    if let Some(sources) = sources(path, text) {
        assert!(all == dense(&sources), "{path}");
        let last = text.split('\n').count() as u32;
        let places = chunked.chunks.iter().flat_map(|chunk| [chunk.start_line, chunk.end_line]);
        let places: Vec<u32> = places.collect();
        assert!(places.is_sorted() && places.iter().all(|line| (1..=last).contains(line)));
        return;
    }
    assert!(all == dense(text), "{path}");
    let lines: Vec<&str> = text.split('\n').collect();
    let long: Vec<bool> = lines.iter().map(|line| line.chars().count() > LONGEST).collect();
    let mut before = 0;
    for chunk in &chunked.chunks {
        let (first, last) = (chunk.start_line as usize, chunk.end_line as usize);
        assert!(first >= 1 && first <= last && last <= lines.len(), "{path}: {first}-{last}");
        let continues = first == before && long[first - 1];
        assert!(first > before || continues, "{path}: {first} after {before}");
        before = last;
        assert!(chunk.text.chars().count() <= LONGEST, "{path}: {first}-{last} is too long");
        let own = first - 1..last;
        if !long[own.clone()].contains(&true) {
            assert!(chunk.text == lines[own].join("\n").trim_end(), "{path}: {first}-{last}");
        }
        for symbol in &chunk.symbols {
            assert!(!symbol.name.is_empty());
            assert!((chunk.start_line..=chunk.end_line).contains(&symbol.line), "{path}");
        }
        assert!(chunk.signature.as_deref().unwrap_or_default().chars().count() <= 200);
        assert!(chunk.doc.as_deref().unwrap_or_default().chars().count() <= 300);
    }
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

const WORDS: [&str; 56] = [
    "\n",
    "\n\n",
    " ",
    "    ",
    "\t",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ":",
    "=",
    "=>",
    "fn f",
    "def f",
    "class A",
    "function g",
    "const X",
    "impl B",
    "struct C",
    "module D",
    "end",
    "do",
    "if",
    "// c\n",
    "/* c */",
    "# h\n",
    "\"",
    "'",
    "\"\"\"",
    "`",
    "é",
    "日本",
    "\r\n",
    "\u{0}",
    "export",
    "\n====\n",
    "\n----\n",
    "\n== t\n",
    "\nk:",
    "\n  k: |\n",
    "\n---\n",
    "\nFROM a AS b\n",
    "\nCREATE TABLE t",
    "BEGIN",
    "$$",
    "\n<script>",
    "</script>",
    "\ndefine x\n",
    "\nt: p\n",
    "<<EOF",
    "\\\n",
];

fn scrambled() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => select(&WORDS[..]).prop_map(str::to_owned),
        1 => "[a-z]{1,40}",
        1 => (1usize..3_000).prop_map(|count| "x".repeat(count)),
    ];
    proptest::collection::vec(word, 0..120).prop_map(|words| words.concat())
}

fn boundary(text: &str, index: Index) -> usize {
    let mut at = index.index(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    })]

    #[test]
    fn random_text_is_tiled(text in scrambled(), path in select(fixtures())) {
        let path = path.to_string_lossy();
        assert_tiled(&path, &text, &chunked(&path, &text, WorkLimit::NONE));
    }

    #[test]
    fn damaged_files_are_tiled(
        path in select(fixtures()),
        (from, to, end) in any::<(Index, Index, Index)>(),
        inserted in scrambled(),
        repeats in 1usize..8,
    ) {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap().repeat(repeats);
        let (from, to) = (boundary(&text, from), boundary(&text, to));
        let mut damaged = format!("{}{inserted}{}", &text[..from.min(to)], &text[from.max(to)..]);
        damaged.truncate(boundary(&damaged, end));
        assert_tiled(&name, &damaged, &chunked(&name, &damaged, WorkLimit::NONE));
    }
}

#[test]
fn whole_and_truncated_fixtures_are_tiled() {
    for path in fixtures() {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap();
        for tenth in 0..=10 {
            let part: String = text.chars().take(text.chars().count() * tenth / 10).collect();
            assert_tiled(&name, &part, &chunked(&name, &part, WorkLimit::NONE));
            let windows = part.replace('\n', "\r\n");
            assert_tiled(&name, &windows, &chunked(&name, &windows, WorkLimit::NONE));
        }
    }
}

const DEEP: usize = 100_000;

#[test]
fn deep_nesting_ends() {
    for path in fixtures() {
        let name = path.to_string_lossy();
        for opening in ["(", "{\n", "class A {\n", "f("] {
            let text = opening.repeat(DEEP / opening.len());
            assert_tiled(&name, &text, &chunked(&name, &text, WorkLimit::steps(150)));
        }
    }
}

#[test]
fn deep_trees_are_walked_to_the_end() {
    for (path, before, open, close) in [
        ("a.js", "x = ", "(", ")"),
        ("a.js", "", "{", "}"),
        ("a.ts", "", "class A { a() { ", "}}"),
        ("A.java", "", "class A { ", "}"),
        ("a.rs", "", "mod a { ", "}"),
        ("a.cpp", "", "namespace a {\n", "}\n"),
    ] {
        let deep = DEEP / 2 / open.len();
        let text = format!("{before}{}{}\n", open.repeat(deep), close.repeat(deep));
        let walked = chunked(path, &text, WorkLimit::NONE);
        assert_eq!(walked.problem, None);
        assert_tiled(path, &text, &walked);
        let symbols: usize = walked.chunks.iter().map(|chunk| chunk.symbols.len()).sum();
        assert!(open.len() == 1 || symbols >= deep, "{path}: {symbols} of {deep}");
    }
}

#[test]
fn work_is_limited() {
    let text = "fn f() { g(1, 2, 3) }\n\n".repeat(100_000);
    for steps in [0, 1, 200] {
        let stopped = chunked("a.rs", &text, WorkLimit::steps(steps));
        let problem = "parsing takes too much work; indexed as text";
        assert_eq!(stopped.problem.as_deref(), Some(problem), "{steps}");
        assert_eq!(stopped.language, Language::Rust);
        assert!(stopped.chunks.iter().all(|chunk| chunk.symbols.is_empty()));
        assert_tiled("a.rs", &text, &stopped);
    }
    let after = chunked("b.rs", "fn f() {}\n", WorkLimit::NONE);
    assert_eq!(after.chunks[0].symbols[0].name, "f");
}

/// A slow machine is one on which every step takes long.
#[test]
fn a_slow_machine_splits_files_as_a_fast_one() {
    let slowly = || {
        std::thread::sleep(std::time::Duration::from_millis(1));
        false
    };
    for path in fixtures() {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap().repeat(3);
        for limit in [0, 1, 2, 5, 10, 20, 40, 1_000].map(WorkLimit::steps) {
            let mut fresh = Chunker::new(InWorker::in_process());
            let slow = fresh.chunk(&name, &text, Mode::Parsed, limit, &slowly);
            assert!(slow == chunked(&name, &text, limit), "{name}: {limit:?}");
        }
    }
}

#[test]
fn cancelling_leaves_text() {
    let mut chunker = Chunker::new(InWorker::in_process());
    let text = "fn f() {}\n";
    let cancelled = chunker.chunk("a.rs", text, Mode::Parsed, WorkLimit::NONE, &|| true);
    assert_eq!(cancelled.problem.as_deref(), Some("parsing was cancelled; indexed as text"));
    assert_tiled("a.rs", text, &cancelled);
}

#[test]
fn plain_mode_parses_nothing() {
    let mut chunker = Chunker::new(InWorker::in_process());
    let plain = chunker.chunk("a.rs", "fn f() {}\n", Mode::Plain, WorkLimit::steps(0), &|| true);
    assert_eq!(plain.problem, None);
    assert!(plain.chunks[0].symbols.is_empty());
}

#[test]
fn one_endless_line_is_many_chunks() {
    let line = "é=1;".repeat(700_000);
    for path in ["a.txt", "a.json", "a.md"] {
        let endless = chunked(path, &line, WorkLimit::NONE);
        assert_eq!(endless.chunks.len(), 1_400, "{path}");
        assert!(endless.chunks.iter().all(|chunk| chunk.start_line == 1 && chunk.end_line == 1));
        assert_tiled(path, &line, &endless);
    }
}

#[test]
fn definitions_on_one_endless_line_go_to_their_chunks() {
    let line = "function aFunctionWithAName(x){return x+1};".repeat(500);
    let minified = chunked("a.min.js", &line, WorkLimit::NONE);
    assert!(minified.generated);
    assert_tiled("a.min.js", &line, &minified);
    let symbols: usize = minified.chunks.iter().map(|chunk| chunk.symbols.len()).sum();
    assert_eq!(symbols, 500);
    assert!(minified.chunks.iter().all(|chunk| chunk.symbols.len() < 60));
}

#[test]
fn white_space_gives_nothing() {
    for text in ["", "\n", " \n\t\r\n", &"\n".repeat(10_000)] {
        for path in fixtures() {
            let name = path.to_string_lossy();
            assert_eq!(chunked(&name, text, WorkLimit::NONE).chunks, [], "{name}");
        }
    }
}
