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
        Language::Rust => isolith_grammars::rust(),
        Language::Python => isolith_grammars::python(),
        Language::JavaScript => isolith_grammars::javascript(),
        Language::TypeScript => isolith_grammars::typescript(),
        Language::Tsx => isolith_grammars::tsx(),
        Language::Go => isolith_grammars::go(),
        Language::Java => isolith_grammars::java(),
        Language::C => isolith_grammars::c(),
        Language::Cpp => isolith_grammars::cpp(),
        Language::CSharp => isolith_grammars::c_sharp(),
        Language::Ruby => isolith_grammars::ruby(),
        Language::Php => isolith_grammars::php(),
        Language::Kotlin => isolith_grammars::kotlin(),
        Language::Swift => isolith_grammars::swift(),
        Language::Scala => isolith_grammars::scala(),
        Language::Dart => isolith_grammars::dart(),
        Language::Lua => isolith_grammars::lua(),
        Language::Elixir => isolith_grammars::elixir(),
        Language::Bash => isolith_grammars::bash(),
        Language::Haskell => isolith_grammars::haskell(),
        Language::Zig => isolith_grammars::zig(),
        Language::Toml => isolith_grammars::toml(),
        Language::Terraform => isolith_grammars::hcl(),
        Language::Protobuf => isolith_grammars::protobuf(),
        Language::GraphQl => isolith_grammars::graphql(),
        _ => return None,
    };
    let mut parser = Parser::new();
    parser.set_language(&grammar).ok()?;
    Some(parser)
}
