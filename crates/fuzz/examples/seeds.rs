//! Writes the binary inputs of the corpus: frames and segments in the current formats.
//!
//! Run it after a change of a format: `cargo run -p isolith-fuzz --example seeds`

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use isolate::InWorker;
use isolate::fuzzing::seal;
use isolith_graph::{CsrLists, Link};
use isolith_segment::storage::Disk;
use isolith_segment::text::{Analyzer, TextBuilder, TextFields};
use isolith_segment::{
    SourceBuilder, SourceChunk, SourceFile, VectorBuilder, VectorSpec, write_graph,
};
use isolith_types::{Metric, Symbol, SymbolKind};

fn main() -> Result<(), Box<dyn Error>> {
    write_frames()?;
    write_segments()?;
    write_sections()
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// `("name", bulk of 5 bytes, 7, empty bulk)` in postcard: slab, table of slabs, message.
fn message() -> Vec<u8> {
    let slab = *b"hello\0\0\0\0\0\0\0\0\0\0\0";
    [&slab[..], &[2, 5, 0], &[4], b"name", &[0, 7, 1]].concat()
}

fn write_frames() -> Result<(), Box<dyn Error>> {
    let folder = corpus("wire");
    let frame = seal(&message(), 16, false);
    fs::write(folder.join("valid-two-frames"), [&frame[..], &frame].concat())?;
    fs::write(folder.join("valid-sealed"), [b"SEALED\0\x10\0", &message()[..]].concat())?;
    fs::write(folder.join("valid-sealed-area"), [b"SEALED\x01\x10\0", &message()[..]].concat())?;
    fs::write(folder.join("damaged-torn"), &frame[..frame.len() - 1])?;
    fs::write(folder.join("damaged-slabs"), [b"SEALED\0\x00\0", &message()[..]].concat())?;
    for (name, at) in [("magic", 0), ("version", 4), ("header", 20), ("payload", 60)] {
        let mut flipped = frame.clone();
        flipped[at] ^= 0x20;
        fs::write(folder.join(format!("damaged-{name}")), flipped)?;
    }
    Ok(())
}

fn write_segments() -> Result<(), Box<dyn Error>> {
    let token = InWorker::in_process;
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(folder.path());

    let spec = VectorSpec { dimension: 4, metric: Metric::Cosine };
    let mut vectors = VectorBuilder::create(&disk, "vector", spec, token())?;
    let mut texts = TextBuilder::create(&disk, folder.path(), "text", Analyzer::Prose, token())?;
    for row in 0..40u64 {
        let angle = row as f32;
        vectors.push(row + 1, row + 1, &[angle.sin(), angle.cos(), 0.5, 1.0])?;
        let text = format!("the quick brown fox {row} jumps over the lazy dog");
        texts.push(row + 1, row + 1, &TextFields::body(&text))?;
    }
    vectors.finish()?;
    texts.finish()?;
    let link = |from, to, edge| Link { from, kind: 7, to, edge };
    let out = CsrLists::build(3, [link(0, 1, 10), link(0, 2, 11), link(2, 2, 12)]);
    let incoming = CsrLists::build(3, [link(1, 0, 10), link(2, 0, 11), link(2, 2, 12)]);
    write_graph(&disk, "graph", &[5, 6, 9], [&out, &incoming], token())?;
    let mut sources = SourceBuilder::create(&disk, "source", token())?;
    for id in 1..4u64 {
        let (path, text) = (format!("src/{id}.rs"), format!("fn f{id}() {{}}\n\nfn g() {{}}\n"));
        let name = format!("f{id}");
        let symbols = [Symbol { name, kind: SymbolKind::Function, line: 1 }];
        let chunk = |at: u32| SourceChunk {
            row: id * 2 + u64::from(at),
            change: id,
            start: at * 12,
            lines: (1 + 2 * at, 1 + 2 * at),
            parent: (at > 0).then_some("m"),
            symbols: &symbols,
        };
        let chunks = [chunk(0), chunk(1)];
        let (path, chunks, text) = (path.as_str(), &chunks, text.as_str());
        sources.push(&SourceFile { id, root: 1, path, generated: id == 2, chunks, text })?;
    }
    sources.finish()?;

    for name in ["vector", "text", "graph", "source"] {
        let bytes = fs::read(folder.path().join(name))?;
        fs::write(corpus("segment").join(format!("valid-{name}")), &bytes)?;
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        fs::write(corpus("segment").join(format!("damaged-{name}-flipped")), flipped)?;
        fs::write(
            corpus("segment").join(format!("damaged-{name}-cut")),
            &bytes[..bytes.len() / 2],
        )?;
    }
    Ok(())
}

/// Sections to be written with correct checksums: a consistent graph, one with a dangling edge, an
/// invalid vector segment, and source segments with and without a chunk too many.
fn write_sections() -> Result<(), Box<dyn Error>> {
    let section = |number: u8, content: &[u8]| {
        let length = (content.len() as u16).to_le_bytes();
        [&[number][..], &length, content].concat()
    };
    let graph = |target: u32| {
        let lists = [
            (0, [0u32, 1].map(u32::to_le_bytes).concat()),
            (1, target.to_le_bytes().to_vec()),
            (2, 7u32.to_le_bytes().to_vec()),
            (3, 10i64.to_le_bytes().to_vec()),
        ];
        let mut input = b"SECTIONSg".to_vec();
        input.extend(section(5, &5i64.to_le_bytes()));
        for first in [6, 10] {
            lists.iter().for_each(|(at, list)| input.extend(section(first + at, list)));
        }
        input
    };
    fs::write(corpus("segment").join("valid-sections-graph"), graph(0))?;
    fs::write(corpus("segment").join("damaged-sections-graph"), graph(9))?;
    let vector = [b"SECTIONSv", &section(0, &[0; 16])[..], &section(1, b"")].concat();
    fs::write(corpus("segment").join("damaged-sections-vector"), vector)?;
    // One file "a" with the text "x", and one chunk; or two, of which one has no file.
    let source = |chunks: usize| {
        let sections = [
            (14, b"x".to_vec()),
            (15, 1u64.to_le_bytes().to_vec()),
            (16, 5u64.to_le_bytes().to_vec()),
            (17, 1u64.to_le_bytes().to_vec()),
            (18, b"a".to_vec()),
            (19, 1u32.to_le_bytes().to_vec()),
            (20, 1u32.to_le_bytes().to_vec()),
            (2, 7u64.to_le_bytes().repeat(chunks)),
            (3, 7u64.to_le_bytes().repeat(chunks)),
            (21, 0u32.to_le_bytes().repeat(chunks)),
        ];
        let sections = sections.map(|(number, content)| section(number, &content));
        [b"SECTIONSs".to_vec(), sections.concat()].concat()
    };
    fs::write(corpus("segment").join("valid-sections-source"), source(1))?;
    fs::write(corpus("segment").join("damaged-sections-source"), source(2))?;
    Ok(())
}
