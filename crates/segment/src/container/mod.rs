//! The file that every segment is: named sections under block checksums.

mod layout;
mod read;
mod write;

pub use layout::Kind;
pub use read::Container;
pub use write::{ContainerWriter, Published, is_temporary, remove_leftovers};
