//! Reads files of ready records in two passes and bounded memory.
//!
//! The first pass, [`validate`], reads and checks the whole file and returns a [`Layout`]: what
//! the second pass needs, without the records. The second pass, [`Batches`], returns the records
//! in batches, starting at any row.
//!
//! Three forms are recognized, by the content of the file and not by its name:
//!
//! - four parallel lists, `{"ids":[…],"embeddings":[[…]],"metadatas":[…],"documents":[…]}`,
//!   at the top or under the key `chromadb_ready`, keys in any order, other keys ignored
//!   (of those only the brackets are checked);
//! - one record per line, `{"id":…,"embedding":[…],"metadata":{…},"document":…}`
//!   (also `vector` and `text`), possibly after the header line of an export;
//! - one JSON list of such records.
//!
//! Rows may have documents in the place of vectors, which the caller embeds ([`VectorSource`]).
//!
//! Rows count from 1. Each number of a vector becomes the nearest 32-bit float. Memory is a few
//! buffers, the longest row, and 8 bytes per row in the first pass.

mod batches;
mod error;
mod layout;
mod number;
mod record;
mod row;
mod validate;

#[cfg(test)]
mod tests;

pub use batches::{Batches, RecordBatch};
pub use error::{ErrorLocation, IntakeError};
pub use layout::{Cursor, Format, Layout, RowProblem};
pub use validate::{OnError, Progress, Rules, VectorSource, validate, validate_from};

/// The maximum size of a document, and of a record in the forms that have whole records.
pub const MAX_ROW_BYTES: usize = 32 << 20;

/// The maximum size of one vector as JSON.
pub const MAX_VECTOR_BYTES: usize = 8 << 20;

/// The maximum size of one record's metadata.
pub const MAX_METADATA_BYTES: usize = 1 << 20;

/// The maximum size of an id.
pub const MAX_ID_BYTES: usize = 1_000;

/// The maximum dimension of a vector.
pub const MAX_DIMENSION: u32 = 65_536;

/// The maximum number of problems listed in a [`Layout`] or an error; all are counted.
pub const LISTED_PROBLEMS: usize = 1_000;
