//! The relationships of all nodes, in lists that are used where they lie in the file.

use std::ops::Range;
use std::path::Path;

use isolate_types::InWorker;
use isolith_graph::{Adjacency, Csr, CsrLists};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::storage::Storage;
use crate::{Container, ContainerWriter, Kind, Published, SegmentError};

/// The version of this layout.
const LAYOUT: u32 = 1;

// Numbers are read as they lie in the file, which is the same on all machines.
const _: () = assert!(cfg!(target_endian = "little"), "graph segments are little-endian");

/// A graph segment that is open. Share it behind an `Arc`.
#[derive(Debug)]
pub struct GraphSegment {
    container: Container,
    nodes: Range<usize>,
    out: Lists,
    incoming: Lists,
}

/// Where the lists of one direction are.
#[derive(Debug)]
struct Lists {
    offsets: Range<usize>,
    targets: Range<usize>,
    kinds: Range<usize>,
    edges: Range<usize>,
}

impl GraphSegment {
    /// Opens a segment and checks all of it: walks touch it everywhere. `checksum` is the
    /// truth's.
    ///
    /// # Errors
    /// If it cannot be mapped, is damaged, or is another file.
    pub fn open(path: &Path, checksum: Option<u32>, token: InWorker) -> Result<Self, SegmentError> {
        let container = Container::open(path, Kind::Graph, checksum, token)?;
        if container.version() != LAYOUT {
            let (path, found) = (path.into(), container.version());
            return Err(SegmentError::Version { path, found, known: LAYOUT });
        }
        container.verify()?;
        let segment = Self {
            nodes: container.section("nodes")?,
            out: Lists::find(&container, "out")?,
            incoming: Lists::find(&container, "in")?,
            container,
        };
        if !segment.adjacency().check() {
            return Err(segment.container.damaged("its lists make no sense"));
        }
        Ok(segment)
    }

    /// What it holds.
    pub fn adjacency(&self) -> Adjacency<'_> {
        let nodes = numbers(&self.container, &self.nodes);
        let [out, incoming] = [&self.out, &self.incoming].map(|lists| lists.read(&self.container));
        Adjacency { nodes, out, incoming }
    }

    /// How many relationships it has.
    pub fn len(&self) -> usize {
        self.out.targets.len() / size_of::<u32>()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks the whole file again.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }
}

impl Lists {
    fn find(container: &Container, way: &str) -> Result<Self, SegmentError> {
        let section = |what: &str| container.section(&format!("{way}.{what}"));
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

/// A section as numbers: nothing if its length is none of theirs, which then fits nothing
/// else. Sections begin where numbers may, and opening has checked them.
fn numbers<'a, T: FromBytes + Immutable>(
    container: &'a Container,
    section: &Range<usize>,
) -> &'a [T] {
    <[T]>::ref_from_bytes(container.unchecked(section.clone())).unwrap_or_default()
}

/// Writes a segment of this name: the numbers of the nodes, and their lists both ways.
///
/// # Errors
/// If it cannot be written.
pub fn write_graph(
    storage: &dyn Storage,
    name: &str,
    nodes: &[i64],
    [out, incoming]: [&CsrLists; 2],
    _token: InWorker,
) -> Result<Published, SegmentError> {
    let mut writer = ContainerWriter::create(storage, name, Kind::Graph, LAYOUT)?;
    writer.begin_section("nodes")?;
    writer.write(nodes.as_bytes())?;
    for (way, lists) in [("out", out), ("in", incoming)] {
        let CsrLists { offsets, targets, kinds, edges } = lists;
        for (what, bytes) in [
            ("offsets", offsets.as_bytes()),
            ("targets", targets.as_bytes()),
            ("kinds", kinds.as_bytes()),
            ("edges", edges.as_bytes()),
        ] {
            writer.begin_section(&format!("{way}.{what}"))?;
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

    fn written(place: &Path) -> Published {
        let out = CsrLists::build(3, [link(0, 1, 10), link(0, 2, 11), link(2, 2, 12)]);
        let incoming = CsrLists::build(3, [link(1, 0, 10), link(2, 0, 11), link(2, 2, 12)]);
        let disk = Disk::new(place);
        write_graph(&disk, "g", &[5, 6, 9], [&out, &incoming], token()).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let place = tempfile::tempdir().unwrap();
        let published = written(place.path());
        let path = place.path().join("g");
        let segment = GraphSegment::open(&path, Some(published.checksum), token()).unwrap();
        let adjacency = segment.adjacency();
        assert_eq!((segment.len(), adjacency.nodes), (3, &[5, 6, 9][..]));
        let mut found = Vec::new();
        adjacency.edges(&adjacency.lists(Direction::Both, &[]), 2, &mut found);
        let found: Vec<(i64, i64)> = found.iter().map(|hop| (hop.edge, hop.node)).collect();
        assert_eq!(found, [(12, 9), (11, 5)]);
        let other = GraphSegment::open(&path, Some(published.checksum ^ 1), token());
        assert!(matches!(other, Err(SegmentError::Other { .. })));
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let published = written(place.path());
        let path = place.path().join("g");
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 0x10;
            std::fs::write(&path, &spoilt).unwrap();
            assert!(GraphSegment::open(&path, Some(published.checksum), token()).is_err(), "{at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(GraphSegment::open(&path, Some(published.checksum), token()).is_err(), "{at}");
        }
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let disk = Disk::new(place.path());
        let wrong = CsrLists::build(1, [link(0, 4, 10)]);
        write_graph(&disk, "g", &[5], [&wrong, &wrong], token()).unwrap();
        let refused = GraphSegment::open(&place.path().join("g"), None, token()).unwrap_err();
        assert!(refused.to_string().contains("make no sense"), "{refused}");
    }
}
