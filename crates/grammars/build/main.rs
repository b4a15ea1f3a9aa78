//! Compiles the grammars without their parse tables, and stores the tables compressed.
//!
//! The tables of all grammars are 36 MB of numbers that compress to a twentieth. For each grammar, a
//! small C program, run here, prints the tables of the generated `parser.c`; a copy of `parser.c` without
//! their contents is compiled into the library, with a function that returns where they are. At run time,
//! `src/lib.rs` fills them when the grammar is first used.

mod parser;
mod sources;
mod tables;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use sources::Sources;

/// A grammar, and where it is.
struct Grammar {
    /// The function's name in this crate.
    name: &'static str,
    package: &'static str,
    /// In the package.
    folder: &'static str,
    /// What the grammar calls itself: `tree_sitter_<symbol>`.
    symbol: &'static str,
}

const fn grammar(name: &'static str, package: &'static str) -> Grammar {
    Grammar { name, package, folder: "src", symbol: name }
}

const GRAMMARS: [Grammar; 25] = [
    grammar("bash", "tree-sitter-bash"),
    grammar("c", "tree-sitter-c"),
    grammar("c_sharp", "tree-sitter-c-sharp"),
    grammar("cpp", "tree-sitter-cpp"),
    grammar("dart", "tree-sitter-dart"),
    grammar("elixir", "tree-sitter-elixir"),
    grammar("go", "tree-sitter-go"),
    grammar("graphql", "tree-sitter-graphql"),
    grammar("haskell", "tree-sitter-haskell"),
    grammar("hcl", "tree-sitter-hcl"),
    grammar("java", "tree-sitter-java"),
    grammar("javascript", "tree-sitter-javascript"),
    grammar("kotlin", "tree-sitter-kotlin-ng"),
    grammar("lua", "tree-sitter-lua"),
    Grammar { folder: "php/src", ..grammar("php", "tree-sitter-php") },
    Grammar { symbol: "proto", ..grammar("protobuf", "tree-sitter-proto") },
    grammar("python", "tree-sitter-python"),
    grammar("ruby", "tree-sitter-ruby"),
    grammar("rust", "tree-sitter-rust"),
    grammar("scala", "tree-sitter-scala"),
    grammar("swift", "tree-sitter-swift"),
    grammar("toml", "tree-sitter-toml-ng"),
    Grammar { folder: "tsx/src", ..grammar("tsx", "tree-sitter-typescript") },
    Grammar { folder: "typescript/src", ..grammar("typescript", "tree-sitter-typescript") },
    grammar("zig", "tree-sitter-zig"),
];

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    println!("cargo::rerun-if-changed=build");
    if env::var("CARGO_CFG_TARGET_ENDIAN")? != "little" || cfg!(target_endian = "big") {
        return Err("parse tables are stored as little-endian numbers".into());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let sources = Sources::find()?;
    for grammar in &GRAMMARS {
        let folder = sources.folder(grammar)?;
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    on_all_cores(|grammar| pack(grammar, &sources.folder(grammar)?, &out))?;
    fs::write(out.join("grammars.rs"), functions()?)?;
    Ok(())
}

/// Does `work` for every grammar, and returns the first error.
fn on_all_cores(work: impl Fn(&Grammar) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(grammar) = GRAMMARS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(grammar)
                        && let Ok(mut failures) = failures.lock()
                    {
                        failures.push(format!("the grammar of {}: {error}", grammar.name));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner()?;
    failures.into_iter().next().map_or(Ok(()), |first| Err(first.into()))
}

/// Writes `<name>.xz` with the tables, and compiles the rest into a static library.
fn pack(grammar: &Grammar, folder: &Path, out: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(folder.join("parser.c"))?;
    let parser = parser::Parser::read(&text)?;
    let tables = tables::read(grammar.name, &parser, folder, out)?;
    tables::compress(&tables, &out.join(format!("{}.xz", grammar.name)))?;

    let emptied = out.join(format!("{}.c", grammar.name));
    fs::write(&emptied, parser.without_tables(grammar.name, &tables))?;
    let mut build = cc::Build::new();
    build.std("c11").warnings(false).include(folder).file(emptied);
    let scanner = folder.join("scanner.c");
    if scanner.exists() {
        build.file(scanner);
    }
    build.try_compile(&format!("isolith-grammar-{}", grammar.name))?;
    Ok(())
}

/// The functions of `src/lib.rs`, one for each grammar.
fn functions() -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    for Grammar { name, package, symbol, .. } in &GRAMMARS {
        writeln!(
            code,
            "grammar!(\"The grammar in `{package}`.\", {name}, tree_sitter_{symbol}, isolith_tables_{name}, \"{name}.xz\");"
        )?;
    }
    Ok(code)
}
