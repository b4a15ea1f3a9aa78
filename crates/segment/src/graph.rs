//! Graph segments: adjacency lists of all nodes, read directly from the mapped file.

use std::ops::Range;
use std::path::Path;

use isolate_types::InWorker;
use isolith_graph::{Adjacency, Csr, CsrLists};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::storage::Storage;
use crate::{Container, ContainerWriter, PublishedSegment, SegmentError, SegmentKind};

const LAYOUT: u32 = 1;

// Lists are used without conversion.
const _: () = assert!(cfg!(target_endian = "little"), "graph segments are little-endian");

/// An open graph segment.
#[derive(Debug)]
pub struct GraphSegment {
    container: Container,
    nodes: Range<usize>,
    out: ListSections,
    incoming: ListSections,
}

/// The sections of one direction.
#[derive(Debug)]
struct ListSections {
    offsets: Range<usize>,
    targets: Range<usize>,
    kinds: Range<usize>,
    edges: Range<usize>,
}

impl GraphSegment {
    /// Opens a segment and verifies all of it, because traversals read it everywhere. `checksum`
    /// is the one recorded in the database.
    ///
    /// # Errors
    /// If it cannot be mapped, is damaged, or has another checksum.
    pub fn open(path: &Path, checksum: Option<u32>, token: InWorker) -> Result<Self, SegmentError> {
        let container = Container::open(path, SegmentKind::Graph, checksum, token)?;
        if container.version() != LAYOUT {
            let (path, found) = (path.into(), container.version());
            return Err(SegmentError::UnsupportedVersion { path, found, known: LAYOUT });
        }
        container.verify()?;
        let segment = Self {
            nodes: container.section("nodes")?,
            out: ListSections::find(&container, "out")?,
            incoming: ListSections::find(&container, "in")?,
            container,
        };
        if !segment.adjacency().check() {
            return Err(segment.container.damaged("inconsistent adjacency lists"));
        }
        Ok(segment)
    }

    /// The adjacency lists, for traversal.
    pub fn adjacency(&self) -> Adjacency<'_> {
        let nodes = numbers(&self.container, &self.nodes);
        let [out, incoming] = [&self.out, &self.incoming].map(|lists| lists.read(&self.container));
        Adjacency { nodes, out, incoming }
    }

    /// The number of edges.
    pub fn len(&self) -> usize {
        self.out.targets.len() / size_of::<u32>()
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Verifies the whole file again. Fails if it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }
}

impl ListSections {
    fn find(container: &Container, direction: &str) -> Result<Self, SegmentError> {
        let section = |list: &str| container.section(&format!("{direction}.{list}"));
        Ok(Self {
            offsets: section("offsets")?,
            targets: section("targets")?,
            kinds: section("kinds")?,
            edges: section("edges")?,
        })
    }

    fn read<'a>(&self, container: &'a Container) -> Csr<'a> {
        Csr {
            offsets: numbers(container, &self.offsets),
            targets: numbers(container, &self.targets),
            kinds: numbers(container, &self.kinds),
            edges: numbers(container, &self.edges),
        }
    }
}

/// A section as numbers. Sections are aligned and were verified at open. If the length is not a
/// multiple of the number's size, the slice is empty, which [`Adjacency::check`] rejects.
fn numbers<'a, T: FromBytes + Immutable>(
    container: &'a Container,
    section: &Range<usize>,
) -> &'a [T] {
    <[T]>::ref_from_bytes(container.unchecked(section.clone())).unwrap_or_default()
}

/// Writes and publishes a graph segment with outgoing and incoming lists.
pub fn write_graph(
    storage: &dyn Storage,
    name: &str,
    nodes: &[i64],
    [out, incoming]: [&CsrLists; 2],
    _token: InWorker,
) -> Result<PublishedSegment, SegmentError> {
    let mut writer = ContainerWriter::create(storage, name, SegmentKind::Graph, LAYOUT)?;
    writer.begin_section("nodes")?;
    writer.write(nodes.as_bytes())?;
    for (direction, lists) in [("out", out), ("in", incoming)] {
        let CsrLists { offsets, targets, kinds, edges } = lists;
        for (list, bytes) in [
            ("offsets", offsets.as_bytes()),
            ("targets", targets.as_bytes()),
            ("kinds", kinds.as_bytes()),
            ("edges", edges.as_bytes()),
        ] {
            writer.begin_section(&format!("{direction}.{list}"))?;
            writer.write(bytes)?;
        }
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use isolith_graph::{Direction, Link};

    use super::*;
    use crate::storage::Disk;

    fn token() -> InWorker {
        InWorker::in_process()
    }

    fn link(from: u32, to: u32, edge: i64) -> Link {
        Link { from, kind: 7, to, edge }
    }

    fn write_sample(folder: &Path) -> PublishedSegment {
        let out = CsrLists::build(3, [link(0, 1, 10), link(0, 2, 11), link(2, 2, 12)]);
        let incoming = CsrLists::build(3, [link(1, 0, 10), link(2, 0, 11), link(2, 2, 12)]);
        let disk = Disk::new(folder);
        write_graph(&disk, "g", &[5, 6, 9], [&out, &incoming], token()).unwrap()
    }

    #[test]
    fn round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let published = write_sample(folder.path());
        let path = folder.path().join("g");
        let segment = GraphSegment::open(&path, Some(published.checksum), token()).unwrap();
        let adjacency = segment.adjacency();
        assert_eq!((segment.len(), adjacency.nodes), (3, &[5, 6, 9][..]));
        let mut found = Vec::new();
        adjacency.edges(&adjacency.lists(Direction::Both, &[]), 2, &mut found);
        let found: Vec<(i64, i64)> = found.iter().map(|hop| (hop.edge, hop.node)).collect();
        assert_eq!(found, [(12, 9), (11, 5)]);
        let other = GraphSegment::open(&path, Some(published.checksum ^ 1), token());
        assert!(matches!(other, Err(SegmentError::WrongChecksum { .. })));
    }

    #[test]
    fn detects_every_flipped_byte_and_truncation() {
        let folder = tempfile::tempdir().unwrap();
        let published = write_sample(folder.path());
        let path = folder.path().join("g");
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, &damaged).unwrap();
            assert!(GraphSegment::open(&path, Some(published.checksum), token()).is_err(), "{at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(GraphSegment::open(&path, Some(published.checksum), token()).is_err(), "{at}");
        }
    }

    #[test]
    fn rejects_inconsistent_lists() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path());
        let wrong = CsrLists::build(1, [link(0, 4, 10)]);
        write_graph(&disk, "g", &[5], [&wrong, &wrong], token()).unwrap();
        let error = GraphSegment::open(&folder.path().join("g"), None, token()).unwrap_err();
        assert!(error.to_string().contains("inconsistent adjacency lists"), "{error}");
    }
}
