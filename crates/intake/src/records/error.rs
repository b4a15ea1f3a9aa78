use std::fmt;
use std::io;

use isolith_types::{Code, Failure, Hint, LONGEST_VECTOR, counted};

use crate::feed::{Fault, name_byte};
use crate::records::RowProblem;
use crate::records::layout::List;

/// Why a file cannot be loaded. Rows count from 1, bytes from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IntakeError {
    /// The operating system could not read the file.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// The file is empty or contains only white space.
    #[error("the file is empty")]
    Empty,
    /// The file contains something other than records.
    #[error("the file contains {found}, not records")]
    Unrecognized {
        /// What it seems to contain.
        found: String,
    },
    /// The file is not JSON.
    #[error("the file is not JSON at byte {offset}{location}: expected {expected}, found {found}")]
    Syntax {
        /// The offset of the error.
        offset: u64,
        /// The row and list of the error.
        location: ErrorLocation,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The file is truncated.
    #[error("the file is truncated: it ends at byte {offset}{location}")]
    CutOff {
        /// Its length.
        offset: u64,
        /// The row and list that are incomplete.
        location: ErrorLocation,
    },
    /// Lists and objects are nested too deeply.
    #[error("lists or objects are nested too deeply at byte {offset}{location}")]
    TooDeep {
        /// The offset of the bracket.
        offset: u64,
        /// The row and list of the bracket.
        location: ErrorLocation,
    },
    /// A required list is missing.
    #[error("the list {list:?} is missing")]
    MissingList {
        /// Its key.
        list: &'static str,
    },
    /// A key occurs twice.
    #[error("duplicate key {key:?} at byte {offset}")]
    RepeatedKey {
        /// The key.
        key: &'static str,
        /// The offset of the second one.
        offset: u64,
    },
    /// The value of a key has the wrong type.
    #[error("{key:?} must be {expected}, found {found} (byte {offset})")]
    WrongShape {
        /// The key.
        key: &'static str,
        /// The required type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
        /// The offset of the value.
        offset: u64,
    },
    /// The parallel lists differ in length.
    #[error("the lists differ in length: {}", list_lengths(.lengths))]
    Lengths {
        /// The name and length of each list that is present.
        lengths: Vec<(&'static str, u64)>,
    },
    /// A second header line: the file contains several collections.
    #[error("another collection begins at line {line}")]
    SecondHeader {
        /// The line, from 1.
        line: u64,
    },
    /// Some rows are unusable and none may be skipped, or all rows are unusable.
    #[error("{}", bad_rows(.problems, *.total, *.rows))]
    BadRows {
        /// The first problems, in row order.
        problems: Vec<RowProblem>,
        /// The number of unusable rows.
        total: u64,
        /// The number of rows.
        rows: u64,
    },
    /// The file changed after the first pass.
    #[error("the file has changed since it was checked: {detail}")]
    Changed {
        /// How the change was detected.
        detail: String,
    },
    /// The cursor is not in the file.
    #[error("cannot resume at row {row}: the file has only {}", counted(*rows, "row"))]
    BadCursor {
        /// The cursor's row.
        row: u64,
        /// The number of rows in the file.
        rows: u64,
    },
    /// The caller's progress function stopped the pass.
    #[error("reading the file was cancelled")]
    Cancelled,
}

/// The row and list of an error; empty if it is in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorLocation {
    /// The list's key.
    pub list: Option<&'static str>,
    /// The row, from 1.
    pub row: Option<u64>,
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.row, self.list) {
            (Some(row), Some(list)) => write!(f, " (row {row} of {list})"),
            (Some(row), None) => write!(f, " (row {row})"),
            (None, Some(list)) => write!(f, " (in {list})"),
            (None, None) => Ok(()),
        }
    }
}

const SHAPES: &str = r#"expected {"ids":["a"],"embeddings":[[0.1,0.2]],"metadatas":[{"k":1}],"documents":["text"]}, alone or under "chromadb_ready", or lines such as {"id":"a","embedding":[0.1,0.2],"metadata":{"k":1},"document":"text"}, in UTF-8"#;

impl IntakeError {
    /// What to do about it; empty when there is nothing to say.
    pub fn hint(&self) -> Hint {
        let text = match self {
            Self::Empty | Self::Unrecognized { .. } | Self::WrongShape { .. } => SHAPES.to_owned(),
            Self::Syntax { .. } => {
                "check the file with a JSON validator, or write it again".to_owned()
            }
            Self::CutOff { .. } => "copy or write the file again, in full".to_owned(),
            Self::TooDeep { .. } => "leave out keys that hold deeply nested data".to_owned(),
            Self::MissingList { .. } => {
                r#"a file of lists needs "ids", and "embeddings" or "documents" to embed; Chroma's get() has embeddings only with include=["embeddings","metadatas","documents"]"#.to_owned()
            }
            Self::RepeatedKey { .. } => "keep one of the two".to_owned(),
            Self::Lengths { .. } => {
                "each list needs one item for each row; write null where there is none".to_owned()
            }
            Self::SecondHeader { .. } => return Hint::ImportExport,
            Self::BadRows { total, rows, .. } if total == rows => {
                format!("no row is left to be loaded; {SHAPES}")
            }
            Self::BadRows { .. } => return Hint::SkipBadRecords,
            Self::Changed { .. } | Self::BadCursor { .. } => {
                "load the file again when nothing writes to it any more".to_owned()
            }
            Self::Io(_) | Self::Cancelled => String::new(),
        };
        text.into()
    }

    /// The public error code.
    pub fn code(&self) -> Code {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => Code::NotFound,
            Self::Io(_) => Code::Failed,
            Self::Cancelled => Code::Interrupted,
            _ => Code::BadInput,
        }
    }

    pub(crate) fn changed(detail: impl Into<String>) -> Self {
        Self::Changed { detail: detail.into() }
    }

    pub(crate) fn in_list(fault: Fault, list: List, row: u64) -> Self {
        Self::from_fault(fault, ErrorLocation { list: Some(list.name()), row: Some(row + 1) })
    }

    pub(crate) fn in_row(fault: Fault, row: u64) -> Self {
        Self::from_fault(fault, ErrorLocation { list: None, row: Some(row + 1) })
    }

    pub(crate) fn from_fault(fault: Fault, location: ErrorLocation) -> Self {
        match fault {
            Fault::Io(error) => Self::Io(error),
            Fault::Cancelled => Self::Cancelled,
            Fault::End { offset } => Self::CutOff { offset, location },
            Fault::TooDeep { offset } => Self::TooDeep { offset, location },
            Fault::Syntax { offset, expected, found } => {
                Self::Syntax { offset, location, expected, found: name_byte(found) }
            }
        }
    }
}

impl From<&IntakeError> for Failure {
    fn from(error: &IntakeError) -> Self {
        Failure::new(error.code(), error.to_string()).with_hint(error.hint())
    }
}

impl From<Fault> for IntakeError {
    fn from(fault: Fault) -> Self {
        Self::from_fault(fault, ErrorLocation::default())
    }
}

/// Why one row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("{part} is missing")]
    Missing { part: &'static str },
    #[error("{part} must be {expected}, found {found}")]
    WrongKind { part: &'static str, expected: &'static str, found: &'static str },
    #[error("embedding is missing, and this collection does not embed documents")]
    NoVector,
    #[error("it has an embedding, but this collection embeds its documents itself")]
    UnwantedVector,
    #[error("{what}; either all rows have one or none")]
    Mixed { what: &'static str },
    #[error("document is missing, so there is nothing to embed")]
    NothingToEmbed,
    #[error("document has no words to embed")]
    NoWords,
    #[error("id must be text, found the number {number}: put it in quotes")]
    NumberAsId { number: String },
    #[error("id is empty")]
    EmptyId,
    #[error("id has {bytes} bytes, at most {} are allowed", crate::records::MAX_ID_BYTES)]
    LongId { bytes: usize },
    #[error("id {id:?} is already used by row {first}")]
    DuplicateId { id: String, first: u64 },
    #[error("embedding has {}, expected {expected}", counted(*found, "number"))]
    Dimension { found: usize, expected: u32 },
    #[error("embedding has more than {} numbers", crate::records::MAX_DIMENSION)]
    TooManyNumbers,
    #[error("embedding is empty")]
    EmptyVector,
    #[error("embedding is all zeros, for which cosine distance is undefined")]
    ZeroVector,
    #[error("embedding is longer than {LONGEST_VECTOR:e}, too long to compute distances")]
    LongVector,
    #[error("number {position} of embedding is {text}, which is not finite")]
    NotFinite { position: usize, text: String },
    #[error("number {position} of embedding is {text}, too large for a 32-bit float")]
    NumberTooLarge { position: usize, text: String },
    #[error("item {position} of embedding must be a number, found {found} (byte {offset})")]
    NotANumber { position: usize, found: String, offset: u64 },
    #[error("{part} is not UTF-8 at byte {offset}")]
    NotUtf8 { part: &'static str, offset: u64 },
    #[error("{part} is not a valid JSON string: {reason} (near byte {offset})")]
    BadText { part: &'static str, reason: String, offset: u64 },
    #[error("{0}")]
    Metadata(String),
    #[error("{part} has {bytes} bytes, more than the limit of {}", size(*.limit))]
    TooLong { part: &'static str, bytes: u64, limit: usize },
    #[error("not JSON at byte {offset}: expected {expected}, found {found}")]
    Syntax { offset: u64, expected: &'static str, found: String },
    #[error("truncated at byte {offset}")]
    CutOff { offset: u64 },
    #[error("nested too deeply at byte {offset}")]
    TooDeep { offset: u64 },
    #[error("it has both {0:?} and {1:?}")]
    Both(&'static str, &'static str),
    #[error("duplicate key {0:?}")]
    Repeated(&'static str),
}

impl Flaw {
    /// Converts a fault inside one record. Reading from memory cannot fail otherwise.
    pub(crate) fn from_fault(fault: Fault) -> Self {
        match fault {
            Fault::Syntax { offset, expected, found } => {
                Self::Syntax { offset, expected, found: name_byte(found) }
            }
            Fault::TooDeep { offset } => Self::TooDeep { offset },
            Fault::End { offset } => Self::CutOff { offset },
            Fault::Io(_) | Fault::Cancelled => Self::CutOff { offset: 0 },
        }
    }
}

fn size(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{bytes} bytes") }
}

fn list_lengths(lengths: &[(&str, u64)]) -> String {
    let each: Vec<_> = lengths.iter().map(|(name, count)| format!("{name} has {count}")).collect();
    each.join(", ")
}

/// The number of problems shown in an error message.
const SHOWN: usize = 5;

fn bad_rows(problems: &[RowProblem], total: u64, rows: u64) -> String {
    let shown: Vec<_> = problems.iter().take(SHOWN).map(RowProblem::to_string).collect();
    let more = total - shown.len() as u64;
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{total} of {} cannot be used: {}{tail}", counted(rows, "row"), shown.join("; "))
}
