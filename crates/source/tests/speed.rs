//! What chunks cost beyond parsing, and the graph beyond chunks. Run by hand, optimised, on sources of your choice:
//! `ISOLITH_SOURCES=folder cargo test --release -p isolith-source --test speed -- --ignored
//! --nocapture`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use isolith_source::{Chunker, Language, Mode, WorkLimit};
use tree_sitter::Parser;

const LARGEST: u64 = 1 << 20;

#[derive(Default)]
struct Cost {
    files: usize,
    bytes: usize,
    chunks: usize,
    symbols: usize,
    parsing: Duration,
    chunking: Duration,
    graphs: Duration,
    definitions: usize,
    references: usize,
    longest: Duration,
}

#[test]
#[ignore = "measures"]
fn chunks_cost_little_beyond_parsing() {
    let Some(folder) = std::env::var_os("ISOLITH_SOURCES") else { return };
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    let mut chunker = Chunker::new(InWorker::in_process()).without_graphs();
    let mut with_graphs = Chunker::new(InWorker::in_process());
    for path in files(PathBuf::from(folder)) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.to_string_lossy();
        let language = Language::of(&name, &text.as_bytes()[..text.len().min(2_048)]);
        let Some(mut parser) = parser(language) else { continue };
        let cost = costs.entry(language.name()).or_default();
        let start = Instant::now();
        drop(parser.parse(&text, None));
        cost.parsing += start.elapsed();
        // The first file of a language pays for its tables.
        if cost.files == 0 {
            chunker.chunk(&name, "", Mode::Parsed, WorkLimit::NONE, &|| false);
            with_graphs.chunk(&name, "", Mode::Parsed, WorkLimit::NONE, &|| false);
        }
        let start = Instant::now();
        let chunked = chunker.chunk(&name, &text, Mode::Parsed, WorkLimit::NONE, &|| false);
        let took = start.elapsed();
        assert_eq!(chunked.problem, None, "{name}");
        cost.chunking += took;
        let start = Instant::now();
        let graph = with_graphs.chunk(&name, &text, Mode::Parsed, WorkLimit::NONE, &|| false).graph;
        cost.graphs += start.elapsed();
        cost.definitions += graph.definitions.len();
        cost.references += graph.references.len();
        cost.longest = cost.longest.max(took);
        cost.files += 1;
        cost.bytes += text.len();
        cost.chunks += chunked.chunks.len();
        cost.symbols += chunked.chunks.iter().map(|chunk| chunk.symbols.len()).sum::<usize>();
    }
    println!(
        "language    files     MB  chunks symbols  parse MB/s  chunk MB/s  ratio  graph MB/s  ratio  \
         definitions  references  longest ms"
    );
    for (language, cost) in costs {
        let megabytes = cost.bytes as f64 / 1e6;
        println!(
            "{language:<10} {:>6} {megabytes:>6.1} {:>7} {:>7} {:>11.1} {:>11.1} {:>6.2} {:>11.1} \
             {:>6.2} {:>12} {:>11} {:>11.0}",
            cost.files,
            cost.chunks,
            cost.symbols,
            megabytes / cost.parsing.as_secs_f64(),
            megabytes / cost.chunking.as_secs_f64(),
            cost.chunking.as_secs_f64() / cost.parsing.as_secs_f64(),
            megabytes / cost.graphs.as_secs_f64(),
            cost.graphs.as_secs_f64() / cost.chunking.as_secs_f64(),
            cost.definitions,
            cost.references,
            cost.longest.as_secs_f64() * 1e3,
        );
    }
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                Ok(data) if data.is_file() && data.len() <= LARGEST => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn parser(language: Language) -> Option<Parser> {
    let grammar: tree_sitter::Language = match language {
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::Go => tree_sitter_go::LANGUAGE.into(),
        Language::Java => tree_sitter_java::LANGUAGE.into(),
        Language::C => tree_sitter_c::LANGUAGE.into(),
        Language::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        Language::CSharp => tree_sitter_c_sharp::LANGUAGE.into(),
        Language::Ruby => tree_sitter_ruby::LANGUAGE.into(),
        Language::Php => tree_sitter_php::LANGUAGE_PHP.into(),
        Language::Kotlin => tree_sitter_kotlin_ng::LANGUAGE.into(),
        Language::Swift => tree_sitter_swift::LANGUAGE.into(),
        Language::Scala => tree_sitter_scala::LANGUAGE.into(),
        Language::Dart => tree_sitter_dart::LANGUAGE.into(),
        Language::Lua => tree_sitter_lua::LANGUAGE.into(),
        Language::Elixir => tree_sitter_elixir::LANGUAGE.into(),
        Language::Bash => tree_sitter_bash::LANGUAGE.into(),
        Language::Haskell => tree_sitter_haskell::LANGUAGE.into(),
        Language::Zig => tree_sitter_zig::LANGUAGE.into(),
        Language::Toml => tree_sitter_toml_ng::LANGUAGE.into(),
        Language::Terraform => tree_sitter_hcl::LANGUAGE.into(),
        Language::Protobuf => tree_sitter_proto::LANGUAGE.into(),
        Language::GraphQl => tree_sitter_graphql::LANGUAGE.into(),
        _ => return None,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar).ok()?;
    Some(parser)
}
