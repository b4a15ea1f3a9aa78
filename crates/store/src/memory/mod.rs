//! What is derived from the text of a drawer: its identity and its passages.

mod identity;
mod passages;

pub(crate) use identity::{ContentHash, content_hash, id_of};
pub use passages::passages;
