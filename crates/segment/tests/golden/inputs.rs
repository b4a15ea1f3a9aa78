//! The inputs of the golden files. Never change one; add another instead.

use std::path::Path;

use isolate_types::InWorker;
use isolith_graph::{CsrLists, Link};
use isolith_segment::storage::lossy::LossyStorage;
use isolith_segment::text::{Analyzer, TextBuilder, TextFields, TextSegment};
use isolith_segment::{
    GraphSegment, SegmentError, SourceBuilder, SourceChunk, SourceFile, SourceSegment,
    VectorBuilder, VectorSegment, VectorSpec, write_graph,
};
use isolith_types::{Metric, Symbol, SymbolKind};

/// Number of rows of vector segments: more than one block of codes.
pub(crate) const ROWS: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Vector(Metric, u32),
    Text(Analyzer),
    Graph,
    Source,
}

impl Input {
    /// With and without codes, padded and not; both analyzers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Vector(Metric::Cosine, 100),
        Self::Vector(Metric::L2, 5),
        Self::Vector(Metric::Dot, 64),
        Self::Text(Analyzer::Code),
        Self::Text(Analyzer::Prose),
        Self::Graph,
        Self::Source,
    ];

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Vector(..) => "vector",
            Self::Text(_) => "text",
            Self::Graph => "graph",
            Self::Source => "source",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vector(metric, _) => metric.name(),
            Self::Text(Analyzer::Code) => "code",
            Self::Text(Analyzer::Prose) => "prose",
            Self::Graph => "small",
            Self::Source => "files",
        }
    }

    pub(crate) fn build(self) -> Vec<u8> {
        let storage = LossyStorage::new();
        let token = InWorker::in_process();
        match self {
            Self::Vector(metric, dimension) => {
                let spec = VectorSpec { dimension, metric };
                let mut builder = VectorBuilder::create(&storage, "s", spec, token).unwrap();
                for position in 0..ROWS {
                    let (row, change) = row_and_change(position);
                    builder.push(row, change, &vector(position, dimension)).unwrap();
                }
                builder.finish().unwrap();
            }
            Self::Text(analyzer) => {
                let scratch = tempfile::tempdir().unwrap();
                let mut builder =
                    TextBuilder::create(&storage, scratch.path(), "s", analyzer, token).unwrap();
                for (position, texts) in texts(analyzer).iter().enumerate() {
                    let (row, change) = row_and_change(position);
                    builder.push(row, change, texts).unwrap();
                }
                builder.finish().unwrap();
            }
            Self::Graph => {
                let [out, incoming] = lists();
                write_graph(&storage, "s", &NODES, [&out, &incoming], token).unwrap();
            }
            Self::Source => {
                let mut builder = SourceBuilder::create(&storage, "s", token).unwrap();
                let symbols = symbols();
                for (id, root, path, starts, text) in FILES {
                    let (generated, chunks) = (is_generated(id), &chunks(id, starts, &symbols));
                    let file = SourceFile { id, root, path, generated, chunks, text };
                    builder.push(&file).unwrap();
                }
                builder.finish().unwrap();
            }
        }
        storage.contents("s").unwrap()
    }

    pub(crate) fn open(self, path: &Path) -> Result<(), SegmentError> {
        let token = InWorker::in_process();
        match self {
            Self::Vector(..) => VectorSegment::open(path, None, token).map(|_| ()),
            Self::Text(_) => TextSegment::open(path, None, token).map(|_| ()),
            Self::Graph => GraphSegment::open(path, None, token).map(|_| ()),
            Self::Source => SourceSegment::open(path, None, token).map(|_| ()),
        }
    }
}

/// Number, root, path, starts of chunks and text of files.
pub(crate) const FILES: [(u64, u64, &str, &[u32], &str); 3] = [
    (1, 1, "src/größe.rs", &[0, 12], "fn a() {}\n\n\nfn b() {}\n"),
    (2, 1, "notes.txt", &[0], "\r\n \r\nä line without an end"),
    (1 << 33, 2, "src/größe.rs", &[0], "another root\n"),
];

/// The chunks of a file, with the rows and changes that follow from its number.
/// The first chunk of each defines two symbols, the others are in a module.
pub(crate) fn chunks<'a>(id: u64, starts: &[u32], symbols: &'a [Symbol]) -> Vec<SourceChunk<'a>> {
    let chunk = |(at, start): (usize, &u32)| {
        let row = id * 10 + at as u64;
        let lines = (1 + 3 * at as u32, 2 + 3 * at as u32);
        let (parent, symbols) = if at == 0 { (None, symbols) } else { (Some("möbel"), &[][..]) };
        SourceChunk { row, change: row + 1000, start: *start, lines, parent, symbols }
    };
    starts.iter().enumerate().map(chunk).collect()
}

pub(crate) fn symbols() -> [Symbol; 2] {
    let symbol = |(name, kind): (&str, SymbolKind)| Symbol { name: name.to_owned(), kind, line: 2 };
    [("größe", SymbolKind::Function), ("A", SymbolKind::Heading)].map(symbol)
}

pub(crate) fn is_generated(id: u64) -> bool {
    id == 2
}

pub(crate) fn row_and_change(position: usize) -> (u64, u64) {
    let row = 10 + 3 * position as u64;
    (row, row + 1000)
}

/// A vector that every machine computes identically, with some negative components.
pub(crate) fn vector(position: usize, dimension: u32) -> Vec<f32> {
    let component = |i: u32| {
        let mixed = (position as u32 * 70_001 + i + 1).wrapping_mul(2_654_435_761);
        ((mixed ^ mixed >> 15) % 2048) as f32 / 1024.0 - 0.75
    };
    (0..dimension).map(component).collect()
}

pub(crate) fn texts(analyzer: Analyzer) -> Vec<TextFields<'static>> {
    match analyzer {
        Analyzer::Code => vec![
            TextFields::of_chunk(
                "fn parse_header(bytes: &[u8]) -> Header { todo() }",
                "parse_header",
                "crates/wire/src/header.rs",
            ),
            TextFields::of_chunk(
                "class HTTPServer2 { void parseHeader(String größe) {} }",
                "HTTPServer2 parseHeader",
                "java/server/HTTPServer2.java",
            ),
            TextFields::of_chunk("# 設定を読む\nload(config)", "", "config.d/load.py"),
            TextFields::of_chunk("", "", "empty"),
        ],
        Analyzer::Prose => vec![
            TextFields::body("The headers aren't parsed; parsing a header failed."),
            TextFields::of_passage("Ada's café opened today", "ada food", "12 May 2024"),
            TextFields::body("東京の天気 and 한국어"),
            TextFields::body(""),
        ],
    }
}

pub(crate) const NODES: [i64; 4] = [-3, 2, 5, 1 << 40];

/// From, type, to and number of each edge; nodes by their positions.
pub(crate) const EDGES: [(u32, u32, u32, i64); 5] =
    [(0, 7, 1, 10), (0, 7, 2, 11), (0, 9, 1, 12), (2, 7, 2, 13), (3, 8, 0, 1 << 41)];

pub(crate) fn lists() -> [CsrLists; 2] {
    let link = |(from, kind, to, edge)| Link { from, kind, to, edge };
    let mut reversed = EDGES.map(|(from, kind, to, edge)| (to, kind, from, edge));
    reversed.sort_unstable();
    [EDGES, reversed].map(|edges| CsrLists::build(NODES.len(), edges.map(link)))
}
