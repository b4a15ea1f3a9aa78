//! A cached node row: labels and properties are usually read one after the other, and both are in
//! the same row.

use isolith_graph::LabelId;
use isolith_protocol::StoreError;
use isolith_sql::OptionalExtension;
use isolith_types::Failure;

use super::{TruthGraph, bytes, failure};
use crate::sqlite::During;

/// Number of label reads before deciding whether reading whole rows pays off.
const TRIALS: u32 = 16;

/// The row read last.
#[derive(Debug, Default)]
pub(super) struct LastRow {
    node: Option<i64>,
    exists: bool,
    labels: Vec<u8>,
    properties: Vec<u8>,
    /// Rows read for a label, and how many of them were used again.
    for_label: u32,
    useful: u32,
    /// Whether this row was read for a label and not used since.
    unused: bool,
}

impl LastRow {
    /// Whether properties are requested often enough after a label. A row is longer than an
    /// entry in the label table.
    fn serves_labels(&self) -> bool {
        self.for_label < TRIALS || self.useful >= self.for_label / 2
    }
}

impl TruthGraph<'_> {
    /// Whether a node has a label, according to its row; `None` if the label table should be
    /// asked.
    pub(super) fn label_in_row(&self, node: i64, label: LabelId) -> Result<Option<bool>, Failure> {
        // While the graph is being changed, labels are read from their table.
        if self.cache.is_none() {
            return Ok(None);
        }
        let mut row = self.last_row.borrow_mut();
        if row.node != Some(node) {
            if !row.serves_labels() {
                return Ok(None);
            }
            self.read_row(node, &mut row)?;
            row.for_label += 1;
            row.unused = true;
        }
        match bytes::read_labels(&row.labels) {
            Some(labels) => Ok(Some(labels.contains(&label.0))),
            None => Err(self.malformed(node)),
        }
    }

    /// Calls `read` with the encoded labels and properties of a node; returns `nothing` if it
    /// does not exist.
    pub(super) fn with_row<T>(
        &self,
        node: i64,
        nothing: T,
        read: impl FnOnce(&[u8], &[u8]) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut row = self.last_row.borrow_mut();
        // While the graph is being changed, a cached row may be outdated.
        if row.node != Some(node) || self.cache.is_none() {
            self.read_row(node, &mut row)?;
        }
        row.useful += u32::from(std::mem::take(&mut row.unused));
        if !row.exists {
            return Ok(nothing);
        }
        read(&row.labels, &row.properties).ok_or_else(|| self.malformed(node))
    }

    fn read_row(&self, node: i64, row: &mut LastRow) -> Result<(), Failure> {
        (row.node, row.exists, row.unused) = (None, false, false);
        row.labels.clear();
        row.properties.clear();
        let mut look = || {
            let mut statement =
                self.db.prepare_cached("SELECT labels, properties FROM node WHERE id = ?1")?;
            let found = statement.query_row([node], |found| {
                row.labels.extend_from_slice(found.get_ref(0)?.as_blob()?);
                row.properties.extend_from_slice(found.get_ref(1)?.as_blob()?);
                Ok(())
            });
            found.optional()
        };
        row.exists = look().during(self.db, "read a node").map_err(failure)?.is_some();
        row.node = Some(node);
        Ok(())
    }

    pub(super) fn malformed(&self, number: i64) -> Failure {
        failure(StoreError::Corrupt {
            path: self.db.path().unwrap_or_default().into(),
            reason: format!("labels or properties of {number} in the graph are malformed"),
        })
    }
}
