use std::fmt;
use std::io;

use isolith_types::{Code, Failure, Hint, LONGEST_VECTOR};

use crate::feed::{Fault, name_byte};
use crate::records::RowProblem;
use crate::records::layout::List;

/// Why a file cannot be taken in. Rows are counted from 1, bytes from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IntakeError {
    /// The operating system could not read it.
    #[error("cannot read the file: {0}")]
    Io(#[source] io::Error),
    /// There is nothing in it, or only white space.
    #[error("the file is empty")]
    Empty,
    /// It is something else than records.
    #[error("the file holds {found}, not records")]
    Unrecognized {
        /// What it seems to be.
        found: String,
    },
    /// It is not JSON.
    #[error("the file is not JSON at byte {offset}{place}: expected {expected}, found {found}")]
    Syntax {
        /// Where.
        offset: u64,
        /// In which row of which list.
        place: Place,
        /// What would be right there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// It ends in the middle.
    #[error("the file is cut off: it ends at byte {offset}{place}")]
    CutOff {
        /// Where it ends.
        offset: u64,
        /// In which row of which list.
        place: Place,
    },
    /// Lists and objects are too deep inside each other.
    #[error("lists or objects are nested too deep at byte {offset}{place}")]
    TooDeep {
        /// Where.
        offset: u64,
        /// In which row of which list.
        place: Place,
    },
    /// A list that must be there is not.
    #[error("the list {list:?} is missing")]
    MissingList {
        /// Its key.
        list: &'static str,
    },
    /// A key is there twice.
    #[error("the key {key:?} is there twice, the second time at byte {offset}")]
    RepeatedKey {
        /// The key.
        key: &'static str,
        /// Where the second one is.
        offset: u64,
    },
    /// A key that must hold a list or an object holds something else.
    #[error("{key:?} must hold {expected}, but holds {found} (byte {offset})")]
    WrongShape {
        /// The key.
        key: &'static str,
        /// What it must hold.
        expected: &'static str,
        /// What it holds.
        found: &'static str,
        /// Where.
        offset: u64,
    },
    /// The parallel lists do not have the same length.
    #[error("the lists differ in length: {}", list_lengths(.lengths))]
    Lengths {
        /// The name and the length of each list that is there.
        lengths: Vec<(&'static str, u64)>,
    },
    /// A second header line: the file has several collections in it.
    #[error("another collection begins in line {line}")]
    SecondHeader {
        /// The line, counted from 1.
        line: u64,
    },
    /// Some rows cannot be used and none may be left out, or none can be used.
    #[error("{}", bad_rows(.problems, *.total, *.rows))]
    BadRows {
        /// The first of them, in the order of rows.
        problems: Vec<RowProblem>,
        /// How many there are.
        total: u64,
        /// Of how many rows.
        rows: u64,
    },
    /// The file is not what it was before.
    #[error("the file has changed since it was checked: {detail}")]
    Changed {
        /// How that was noticed.
        detail: String,
    },
    /// A cursor that does not belong to the file.
    #[error("the place to go on from, row {row}, is not in the file, which has {rows} rows")]
    BadCursor {
        /// The cursor's row.
        row: u64,
        /// How many rows the file has.
        rows: u64,
    },
    /// The caller's progress function said stop.
    #[error("reading the file was cancelled")]
    Cancelled,
}

/// In which row of which list something is; empty if in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// The list's key.
    pub list: Option<&'static str>,
    /// The row, counted from 1.
    pub row: Option<u64>,
}

impl fmt::Display for Place {
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
                r#"a file of lists needs "ids" and "embeddings"; Chroma's get() has embeddings only with include=["embeddings","metadatas","documents"]"#.to_owned()
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

    /// The code that the outside sees.
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
        Self::from_fault(fault, Place { list: Some(list.name()), row: Some(row + 1) })
    }

    pub(crate) fn in_row(fault: Fault, row: u64) -> Self {
        Self::from_fault(fault, Place { list: None, row: Some(row + 1) })
    }

    pub(crate) fn from_fault(fault: Fault, place: Place) -> Self {
        match fault {
            Fault::Io(error) => Self::Io(error),
            Fault::Cancelled => Self::Cancelled,
            Fault::End { offset } => Self::CutOff { offset, place },
            Fault::TooDeep { offset } => Self::TooDeep { offset, place },
            Fault::Syntax { offset, expected, found } => {
                Self::Syntax { offset, place, expected, found: name_byte(found) }
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
        Self::from_fault(fault, Place::default())
    }
}

/// Why one row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("{part} is missing")]
    Missing { part: &'static str },
    #[error("{part} must be {expected}, found {found}")]
    WrongKind { part: &'static str, expected: &'static str, found: &'static str },
    #[error("id must be text, found the number {number}: put it in quotes")]
    NumberAsId { number: String },
    #[error("id is empty")]
    EmptyId,
    #[error("id has {bytes} bytes, at most {} are allowed", crate::records::MAX_ID_BYTES)]
    LongId { bytes: usize },
    #[error("id {id:?} is already used by row {first}")]
    DuplicateId { id: String, first: u64 },
    #[error("embedding has {found} numbers, expected {expected}")]
    Dimension { found: usize, expected: u32 },
    #[error("embedding has more than {} numbers", crate::records::MAX_DIMENSION)]
    TooManyNumbers,
    #[error("embedding is empty")]
    EmptyVector,
    #[error("embedding is all zeros, which has no direction for the cosine")]
    ZeroVector,
    #[error("embedding is longer than {LONGEST_VECTOR:e}, too long to take distances from")]
    LongVector,
    #[error("number {position} of embedding is {text}, which is not finite")]
    NotFinite { position: usize, text: String },
    #[error("number {position} of embedding is {text}, too large for a 32-bit float")]
    NumberTooLarge { position: usize, text: String },
    #[error("item {position} of embedding must be a number, found {found} (byte {offset})")]
    NotANumber { position: usize, found: String, offset: u64 },
    #[error("{part} is not UTF-8 at byte {offset}")]
    NotUtf8 { part: &'static str, offset: u64 },
    #[error("{part} is no valid JSON text: {reason} (near byte {offset})")]
    BadText { part: &'static str, reason: String, offset: u64 },
    #[error("{0}")]
    Metadata(String),
    #[error("{part} has {bytes} bytes, more than the {} that one row may have", size(*.limit))]
    TooLong { part: &'static str, bytes: u64, limit: usize },
    #[error("not JSON at byte {offset}: expected {expected}, found {found}")]
    Syntax { offset: u64, expected: &'static str, found: String },
    #[error("it is cut off at byte {offset}")]
    CutOff { offset: u64 },
    #[error("nested too deep at byte {offset}")]
    TooDeep { offset: u64 },
    #[error("it has both {0:?} and {1:?}")]
    Both(&'static str, &'static str),
    #[error("the key {0:?} is there twice")]
    Repeated(&'static str),
}

impl Flaw {
    /// What went wrong inside of one record. Reading from memory has no other faults.
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

/// How many problems the message of an error shows.
const SHOWN: usize = 5;

fn bad_rows(problems: &[RowProblem], total: u64, rows: u64) -> String {
    let shown: Vec<_> = problems.iter().take(SHOWN).map(RowProblem::to_string).collect();
    let more = total - shown.len() as u64;
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{total} of {rows} rows cannot be used: {}{tail}", shown.join("; "))
}
