//! The file format of all segments: named sections, with a checksum for every block.

mod layout;
mod read;
mod write;

pub use layout::SegmentKind;
pub use read::Container;
pub use write::{ContainerWriter, PublishedSegment, is_temporary, remove_leftovers};
