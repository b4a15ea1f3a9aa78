//! The operations of the intake role, and their replies.

use std::time::Duration;

use isolith_history::History;
use isolith_intake::records::{Cursor, Layout};
use isolith_intake::transcript::{Problem, SkippedItems, TranscriptCursor, TranscriptOptions};
use isolith_protocol::Records;
use isolith_types::{Metric, NewDrawer};
use serde::{Deserialize, Serialize};

use super::Intake;
use crate::operation::operations;

/// Validates all rows of a file of records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ValidateRecords {
    /// Identifies the file and its version, so that a file that crashes workers is quarantined.
    pub input: String,
    /// The expected dimension; by default that of the first vector.
    pub dimension: Option<u32>,
    /// The distance metric, which decides which vectors are valid.
    pub metric: Metric,
    /// Where the vectors come from.
    pub vectors: VectorsFrom,
    /// Whether to skip invalid rows instead of rejecting the file.
    pub skip_bad_rows: bool,
}

/// Where the vectors of a file's records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VectorsFrom {
    /// From the file.
    Rows,
    /// From the documents, with the built-in model.
    Documents,
    /// As the first usable row shows.
    AsFirstRow,
}

/// Reads the next records of a validated file. The reply is `None` after the last row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadRecords {
    /// The reply to [`ValidateRecords`].
    pub layout: Box<Layout>,
    /// Where to start.
    pub start: BatchStart,
    /// Maximum number of rows.
    pub rows: u32,
    /// Approximate maximum size in bytes.
    pub bytes: u32,
}

/// Where a batch of records starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchStart {
    /// After this many rows.
    AfterRows(u64),
    /// At the end of another batch.
    At(Cursor),
}

/// A batch of records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordBatch {
    /// The valid records.
    pub records: Records,
    /// Number of rows of the file that were read, including skipped ones.
    pub rows_covered: u64,
    /// Where the next batch starts.
    pub next: Cursor,
}

/// Reads the next turns of conversations, or the next drawers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadTranscript {
    /// Identifies the file and its version.
    pub input: String,
    /// How to read the file, and where its drawers go.
    pub options: Box<TranscriptOptions>,
    /// Where to continue; by default at the start.
    pub cursor: Option<Box<TranscriptCursor>>,
    /// Whether to leave out drawers with secrets, and report them as problems.
    pub without_secrets: bool,
    /// Maximum number of drawers and problems.
    pub rows: u32,
    /// Approximate maximum size in bytes.
    pub bytes: u32,
}

/// Consecutive turns of conversations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TranscriptBatch {
    /// The turns, as drawers; may be empty.
    pub drawers: Vec<NewDrawer>,
    /// The row of each drawer in the file.
    pub rows: Vec<u64>,
    /// Items that could not be used.
    pub problems: Vec<Problem>,
    /// Numbers of skipped items, by reason.
    pub skipped: SkippedItems,
    /// Where the next batch starts, or the end.
    pub next: TranscriptCursor,
    /// Size of the file in bytes.
    pub size: u64,
}

/// Reads who last changed each file of a repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadHistory {
    /// Identifies the repository and its state.
    pub input: String,
    /// The folder to read, as returned by [`Repository::below`](isolith_history::Repository::below).
    pub below: String,
    /// Time limit, after which the reply is what was found so far.
    pub budget: Duration,
}

operations!(Intake, IntakeJob, IntakeReply {
    ValidateRecords => Layout,
    ReadRecords => Option<RecordBatch>,
    ReadTranscript => TranscriptBatch,
    ReadHistory => History,
});
