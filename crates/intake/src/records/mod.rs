//! Files of ready records, read twice in bounded memory.
//!
//! The first pass, [`validate`], reads a file once from front to back, checks all of
//! it and keeps a [`Layout`]: what the second pass needs, and no records. The second
//! pass, [`Batches`], hands out the records in batches, from any row on.
//!
//! Three forms are understood, told apart by what is in the file and not by its name:
//!
//! - four parallel lists, `{"ids":[…],"embeddings":[[…]],"metadatas":[…],"documents":[…]}`,
//!   at the top or under the key `chromadb_ready`, keys in any order, other keys ignored
//!   (of those only the brackets are checked);
//! - a record in each line, `{"id":…,"embedding":[…],"metadata":{…},"document":…}`
//!   (also `vector` and `text`), possibly after the header line of an export;
//! - one JSON list of such records.
//!
//! Rows are counted from 1, as people do. A number of a vector is the 32-bit float
//! nearest to its decimal text. Memory is a few buffers, the longest row, and 8 bytes
//! for each row in the first pass.

mod batches;
mod error;
mod layout;
mod number;
mod record;
mod row;
mod validate;

#[cfg(test)]
mod tests;

pub use batches::{Batch, Batches};
pub use error::{IntakeError, Place};
pub use layout::{Cursor, Format, Layout, RowProblem};
pub use validate::{OnError, Progress, Rules, validate};

/// The longest document, and the longest record of the forms that have whole records.
pub const MAX_ROW_BYTES: usize = 32 << 20;

/// The longest text of one vector.
pub const MAX_VECTOR_BYTES: usize = 8 << 20;

/// The longest metadata of one record.
pub const MAX_METADATA_BYTES: usize = 1 << 20;

/// The longest id.
pub const MAX_ID_BYTES: usize = 1_000;

/// The most numbers that a vector may have.
pub const MAX_DIMENSION: u32 = 65_536;

/// How many problems a [`Layout`] or an error lists; it counts all of them.
pub const LISTED_PROBLEMS: usize = 1_000;
