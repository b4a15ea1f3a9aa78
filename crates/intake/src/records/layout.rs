use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::records::{LISTED_PROBLEMS, MAX_METADATA_BYTES, MAX_ROW_BYTES, MAX_VECTOR_BYTES};

/// The result of the first pass: all that the second pass needs. It is plain data and can be sent
/// to another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The form of the file.
    pub format: Format,
    /// The number of rows, including rejected ones.
    pub rows: u64,
    /// The dimension of the vectors: from the rules, or that of the first valid vector; `None` if
    /// there is neither.
    pub dimension: Option<u32>,
    /// Whether the rows have no vectors, and their documents are to be embedded.
    pub embedded: bool,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// BLAKE3 of the file.
    pub hash: [u8; 32],
    /// The header line of an export, as JSON.
    pub header: Option<String>,
    /// The number of rejected rows.
    pub rejected: u64,
    /// Why rows were rejected: the first problems, in row order.
    pub problems: Vec<RowProblem>,
    pub(crate) start: Cursor,
    pub(crate) rejected_rows: RowSet,
}

impl Layout {
    /// The position of the first row.
    pub fn start(&self) -> Cursor {
        self.start
    }

    /// Whether a row, counted from 1, is rejected and left out by the second pass.
    pub fn is_rejected(&self, row: u64) -> bool {
        row > 0 && self.rejected_rows.contains(row - 1)
    }
}

/// The form of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Four parallel lists in one object.
    Lists,
    /// One record per line.
    Lines,
    /// One list of records.
    Array,
}

/// A position between two rows of a file, from which reading can resume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The number of rows before it.
    pub row: u64,
    /// The number of lines before it, in a file of lines.
    pub line: u64,
    /// The offset in each list: ids, embeddings, metadatas, documents; 0 for a missing list. Files of
    /// records use only the first.
    pub offsets: [u64; 4],
}

/// Why a row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowProblem {
    /// The row, from 1.
    pub row: u64,
    /// Its line, from 1, in a file of lines.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for RowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "row {} (line {line}): {}", self.row, self.reason),
            None => write!(f, "row {}: {}", self.row, self.reason),
        }
    }
}

/// One of the parallel lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Ids,
    Embeddings,
    Metadatas,
    Documents,
}

impl List {
    pub(crate) const ALL: [List; 4] =
        [List::Ids, List::Embeddings, List::Metadatas, List::Documents];

    pub(crate) fn name(self) -> &'static str {
        match self {
            List::Ids => "ids",
            List::Embeddings => "embeddings",
            List::Metadatas => "metadatas",
            List::Documents => "documents",
        }
    }

    /// The name of one item, for messages.
    pub(crate) fn item_name(self) -> &'static str {
        match self {
            List::Ids => "id",
            List::Embeddings => "embedding",
            List::Metadatas => "metadata",
            List::Documents => "document",
        }
    }

    /// The maximum size of an item in memory.
    pub(crate) fn item_limit(self) -> usize {
        match self {
            List::Ids | List::Metadatas => MAX_METADATA_BYTES,
            List::Embeddings => MAX_VECTOR_BYTES,
            List::Documents => MAX_ROW_BYTES,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|list| list.name() == name)
    }
}

/// A bit set of rows, counted from 0, as long as its last row requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowSet {
    words: Vec<u64>,
}

impl RowSet {
    /// Returns false if the row was already in the set.
    pub(crate) fn insert(&mut self, row: u64) -> bool {
        let (word, bit) = ((row / 64) as usize, 1 << (row % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let fresh = self.words[word] & bit == 0;
        self.words[word] |= bit;
        fresh
    }

    pub(crate) fn contains(&self, row: u64) -> bool {
        let word = self.words.get((row / 64) as usize).copied().unwrap_or(0);
        word >> (row % 64) & 1 == 1
    }
}

/// A reason may quote from the file, which may be crafted to exhaust memory.
const MAX_REASON_CHARS: usize = 300;

/// All rejected rows, with the reasons for the first of them.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    pub(crate) rows: RowSet,
    pub(crate) total: u64,
    problems: BTreeMap<u64, RowProblem>,
}

impl Rejections {
    /// Adds a row, counted from 0. The first reason for a row is kept.
    pub(crate) fn add(&mut self, row: u64, line: Option<u64>, reason: impl fmt::Display) {
        if !self.rows.insert(row) {
            return;
        }
        self.total += 1;
        if self.problems.len() == LISTED_PROBLEMS {
            if self.problems.last_key_value().is_some_and(|(last, _)| *last < row) {
                return;
            }
            self.problems.pop_last();
        }
        let mut reason = reason.to_string();
        if let Some((end, _)) = reason.char_indices().nth(MAX_REASON_CHARS) {
            reason.truncate(end);
            reason.push('…');
        }
        let problem = RowProblem { row: row + 1, line, reason };
        self.problems.insert(row, problem);
    }

    /// Adds rows that were rejected for other reasons.
    pub(crate) fn add_all(&mut self, others: Self) {
        let Self { rows, problems, .. } = others;
        // Those without a listed reason come after all that are listed.
        for (row, problem) in problems {
            self.add(row, problem.line, problem.reason);
        }
        for (at, word) in rows.words.iter().enumerate() {
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                self.add(at as u64 * 64 + bit, None, "");
            }
        }
    }

    pub(crate) fn into_problems(self) -> Vec<RowProblem> {
        self.problems.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_problems_are_listed_and_all_are_counted() {
        let mut rejections = Rejections::default();
        for row in (0..3_000).rev() {
            rejections.add(
                row,
                None,
                if row == 1 { "long ".repeat(100) } else { "late".to_owned() },
            );
            rejections.add(row, None, "again");
        }
        assert_eq!(rejections.total, 3_000);
        assert!(rejections.rows.contains(2_999));
        assert!(!rejections.rows.contains(3_000));
        let problems = rejections.into_problems();
        assert_eq!(problems.len(), LISTED_PROBLEMS);
        assert_eq!(problems[0].to_string(), "row 1: late");
        assert_eq!(problems[1].reason, "long ".repeat(60) + "…");
        assert_eq!(problems[LISTED_PROBLEMS - 1].row, LISTED_PROBLEMS as u64);
    }

    #[test]
    fn problems_include_the_row_and_the_line() {
        let problem = RowProblem { row: 17, line: Some(19), reason: "id is empty".to_owned() };
        assert_eq!(problem.to_string(), "row 17 (line 19): id is empty");
    }
}
