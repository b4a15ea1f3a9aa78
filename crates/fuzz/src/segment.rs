use std::path::{Path, PathBuf};
use std::{fs, io};

use isolate::InWorker;
use isolith_segment::storage::Disk;
use isolith_segment::text::{Analyzer, Keywords, TextSegment};
use isolith_segment::{
    Container, ContainerWriter, GraphSegment, SearchBuffers, SegmentError, SegmentKind,
    SourceSegment, VectorSegment,
};
use tempfile::TempDir;

/// Prefix of inputs that consist only of sections: see [`segment`].
const SECTIONS: &[u8] = b"SECTIONS";

/// The names of sections, by their number in an input.
const NAMES: [&str; 22] = [
    "parameters",
    "vectors",
    "rows",
    "changes",
    "codes",
    "nodes",
    "out.offsets",
    "out.targets",
    "out.kinds",
    "out.edges",
    "in.offsets",
    "in.targets",
    "in.kinds",
    "in.edges",
    "texts",
    "text.ends",
    "ids",
    "roots",
    "paths",
    "path.ends",
    "chunk.ends",
    "starts",
];

/// Segments. The input is the bytes of a file; or, after the bytes `SECTIONS`, a byte for the kind
/// (`v`, `g` or `s`) and sections (number of the name, length in two bytes, content), which are written
/// to a file with correct checksums.
pub fn segment(data: &[u8]) -> bool {
    let folder = TempDir::new().expect("a temporary folder can be created");
    let file = match data.strip_prefix(SECTIONS) {
        Some(sections) => write_sections(folder.path(), sections),
        None => write_bytes(folder.path(), data).map_err(drop),
    };
    let Ok(file) = file else { return false };
    let kinds = [SegmentKind::Vector, SegmentKind::Text, SegmentKind::Graph, SegmentKind::Source];
    for kind in kinds {
        if let Ok(container) = Container::open(&file, kind, None, InWorker::in_process()) {
            let is_intact = container.verify().is_ok();
            for (name, range) in container.sections() {
                let read = container.bytes(range).is_ok();
                assert!(read || !is_intact, "cannot read section {name:?} of an intact file");
            }
        }
    }
    let uses = [use_vectors, use_texts, use_graph, use_sources];
    uses.into_iter().any(|used| used(&file).is_ok())
}

fn write_bytes(folder: &Path, data: &[u8]) -> io::Result<PathBuf> {
    let file = folder.join("segment");
    fs::write(&file, data)?;
    Ok(file)
}

/// Fails if a section is a duplicate or has an unknown number.
fn write_sections(folder: &Path, data: &[u8]) -> Result<PathBuf, ()> {
    let (kind, mut rest) = match data {
        [b'v', rest @ ..] => (SegmentKind::Vector, rest),
        [b'g', rest @ ..] => (SegmentKind::Graph, rest),
        [b's', rest @ ..] => (SegmentKind::Source, rest),
        _ => return Err(()),
    };
    let disk = Disk::new(folder);
    let mut writer = ContainerWriter::create(&disk, "segment", kind, 1).map_err(drop)?;
    while let [number, low, high, content @ ..] = rest {
        let name = NAMES.get(usize::from(*number)).ok_or(())?;
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (section, after) = content.split_at_checked(length).ok_or(())?;
        writer.begin_section(name).map_err(drop)?;
        writer.write(section).map_err(drop)?;
        rest = after;
    }
    writer.finish().map_err(drop)?;
    Ok(folder.join("segment"))
}

fn use_vectors(file: &Path) -> Result<(), SegmentError> {
    let segment = VectorSegment::open(file, None, InWorker::in_process())?;
    segment.sum()?;
    let mut query = vec![0.5; segment.dimension()];
    query[0] = 1.0;
    for limit in [1, 10] {
        segment.search(&query, limit, None, None, &mut SearchBuffers::default())?;
        segment.search_all(&query, limit, None, None, &mut SearchBuffers::default())?;
    }
    segment.verify()
}

fn use_texts(file: &Path) -> Result<(), SegmentError> {
    let segment = TextSegment::open(file, None, InWorker::in_process())?;
    let keywords = Keywords::of(Analyzer::Prose, "the quick brown fox", 1.0);
    segment.statistics(&keywords)?;
    segment.position_of(1)?;
    segment.verify()
}

fn use_graph(file: &Path) -> Result<(), SegmentError> {
    let segment = GraphSegment::open(file, None, InWorker::in_process())?;
    let adjacency = segment.adjacency();
    let lists = adjacency.lists(isolith_graph::Direction::Both, &[]);
    for node in 0..u32::try_from(adjacency.nodes.len()).unwrap_or(u32::MAX) {
        adjacency.edges(&lists, node, &mut Vec::new());
    }
    segment.verify()
}

fn use_sources(file: &Path) -> Result<(), SegmentError> {
    let segment = SourceSegment::open(file, None, InWorker::in_process())?;
    for position in 0..segment.files() {
        let entry = segment.file(position)?;
        assert_eq!(entry.rows.len(), entry.starts.len(), "a chunk has one row and one start");
        segment.text(position)?;
    }
    for row in 0..10 {
        if let Some(chunk) = segment.chunk_of(row) {
            segment.facts(chunk)?;
            // The texts of chunks may be anything.
            let _ = segment.chunk_text(chunk);
        }
    }
    segment.files_with(&[(1, 1), (2, 3)]);
    segment.verify()
}
