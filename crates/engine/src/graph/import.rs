//! Imports tables of nodes and edges into the graph.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isolith_protocol::{
    Done, GraphImported as BlockImported, GraphTable, ImportGraph, Key, TableHolds,
};
use isolith_types::{Code, Failure};
use serde::Serialize;

use crate::ingest::{LISTED, OnError, Rejected};
use crate::open::Engine;
use crate::opened::unreadable;

/// Maximum size of a transaction, because other writes wait for it.
const BLOCK_BYTES: usize = 16 << 20;

/// Maximum length of a table's header.
const MAX_HEADER_BYTES: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A CSV file to import as nodes or edges.
#[derive(Debug, Clone)]
pub struct GraphImport {
    /// The file.
    pub file: PathBuf,
    /// Whether its rows are nodes or edges.
    pub holds: TableHolds,
    /// The delimiter.
    pub delimiter: u8,
    /// What to do with invalid rows.
    pub on_error: OnError,
    /// With a key, repeating the import writes only what was not written before.
    pub key: Option<Key>,
}

/// The result of an import. Counts include only durable writes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GraphImported {
    /// Whether the import is complete, except for rows that were skipped on request.
    pub success: bool,
    /// Rows processed, without the header.
    pub rows: u64,
    /// Nodes created.
    pub nodes_created: u64,
    /// Relationships created.
    pub relationships_created: u64,
    /// Properties set.
    pub properties_set: u64,
    /// The first rejected rows.
    pub rejected: Vec<Rejected>,
    /// Number of rejected rows.
    pub rejected_rows: u64,
    /// Whether an earlier call with the same key wrote some of it.
    pub repeated: bool,
    /// How long it took.
    pub seconds: f64,
    /// Why it stopped.
    pub error: Option<Failure>,
}

impl Engine {
    /// Imports a table, in one transaction per 16 MB or half a million rows. Rows before a
    /// failure stay. `watch` receives the bytes written and the total.
    pub async fn import_graph(
        &self,
        import: &GraphImport,
        watch: impl Fn(u64, u64),
    ) -> GraphImported {
        let started = Instant::now();
        let mut done = GraphImported::default();
        let outcome = self.import_blocks(import, watch, &mut done).await;
        done.seconds = started.elapsed().as_secs_f64();
        done.success = outcome.is_ok();
        done.error = outcome.err();
        done
    }

    /// Imports some rows of a table in one transaction, or none of them if it fails. The reply says
    /// how many were taken.
    ///
    /// # Errors
    /// `bad_input` with the number of the first row that is invalid or violates a constraint.
    pub async fn import_rows(
        &self,
        table: GraphTable,
        key: Option<Key>,
    ) -> Result<Done<BlockImported>, Failure> {
        Ok(self.write(ImportGraph { table }, key).await?.done)
    }

    async fn import_blocks(
        &self,
        import: &GraphImport,
        watch: impl Fn(u64, u64),
        done: &mut GraphImported,
    ) -> Result<(), Failure> {
        let mut table = TableReader::open(&import.file)?;
        while let Some((bytes, is_last)) = table.block()? {
            let rows = GraphTable {
                holds: import.holds.clone(),
                header: table.header.clone(),
                delimiter: import.delimiter,
                skip_bad: import.on_error == OnError::Skip,
                rows_before: done.rows,
                rows: bytes.into(),
                is_last,
            };
            let key = import.key.map(|key| of_block(key, table.done));
            let block = self.import_rows(rows, key).await?;
            let taken = block.reply.table;
            if taken.bytes == 0 && !is_last {
                let message = format!("row {} is larger than 16 MB", done.rows + 1);
                return Err(Failure::new(Code::TooLarge, message)
                    .with_hint("is a closing quotation mark missing?"));
            }
            done.add(block);
            table.take(taken.bytes);
            watch(table.done, table.length);
        }
        Ok(())
    }
}

impl GraphImported {
    fn add(&mut self, block: Done<BlockImported>) {
        let Done { reply, repeated, .. } = block;
        let stats = reply.stats;
        self.rows += reply.table.rows;
        self.nodes_created += stats.nodes_created;
        self.relationships_created += stats.relationships_created;
        self.properties_set += stats.properties_set;
        self.rejected_rows += reply.rejected_count;
        let room = LISTED.saturating_sub(self.rejected.len());
        let rejected = reply.rejected.into_iter().take(room);
        self.rejected.extend(rejected.map(|(row, reason)| Rejected { row, reason }));
        self.repeated |= repeated;
    }
}

/// The key of the block at this offset.
fn of_block(Key(bytes): Key, start: u64) -> Key {
    Key((u128::from_le_bytes(bytes) ^ u128::from(start)).to_le_bytes())
}

/// A table that is read block by block.
struct TableReader {
    path: PathBuf,
    file: File,
    header: String,
    /// Bytes read but not written yet.
    waiting: Vec<u8>,
    is_at_end: bool,
    was_asked: bool,
    length: u64,
    /// Bytes written, including the header.
    done: u64,
}

impl TableReader {
    fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let about = file.metadata().map_err(|error| unreadable(path, &error))?;
        if !about.is_file() {
            let message = format!("{} is not a file", path.display());
            return Err(Failure::new(Code::BadInput, message).with_hint("name a file in CSV"));
        }
        let (path, length) = (path.to_owned(), about.len());
        let (is_at_end, was_asked) = (false, false);
        let (header, waiting) = (String::new(), Vec::new());
        let mut table = Self { path, file, header, waiting, is_at_end, was_asked, length, done: 0 };
        table.read_header()?;
        Ok(table)
    }

    fn read_header(&mut self) -> Result<(), Failure> {
        self.fill()?;
        let line = self.waiting.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.waiting);
        let mark = self.waiting.len() - line.len();
        let length = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        let header = std::str::from_utf8(&line[..length.min(MAX_HEADER_BYTES)]);
        let (Ok(header), true) = (header, length <= MAX_HEADER_BYTES) else {
            let message = format!("{} does not begin with column names", self.path.display());
            return Err(Failure::new(Code::BadInput, message)
                .with_hint("it has to be text in CSV, as in `id:int,name`"));
        };
        self.header = header.trim_end_matches('\r').to_owned();
        let rest = (mark + length + 1).min(self.waiting.len());
        self.take(rest as u64);
        Ok(())
    }

    /// The next rows, and whether they are the last.
    fn block(&mut self) -> Result<Option<(Vec<u8>, bool)>, Failure> {
        self.fill()?;
        // Send a table without rows, too: its header may be invalid.
        if self.was_asked && self.waiting.is_empty() {
            return Ok(None);
        }
        self.was_asked = true;
        Ok(Some((self.waiting.clone(), self.is_at_end)))
    }

    /// Marks these bytes as written.
    fn take(&mut self, bytes: u64) {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.waiting.len());
        self.waiting.drain(..count);
        self.done += count as u64;
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let room = BLOCK_BYTES - self.waiting.len().min(BLOCK_BYTES);
        let read = (&self.file).take(room as u64).read_to_end(&mut self.waiting);
        let read = read.map_err(|error| unreadable(&self.path, &error))?;
        self.is_at_end = read < room;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_block_by_block() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("table.csv");
        let rows = "1,x\n".repeat(BLOCK_BYTES / 4 + 10);
        std::fs::write(&path, format!("\u{feff}id:int,name\r\n{rows}")).unwrap();
        let mut table = TableReader::open(&path).unwrap();
        assert_eq!(table.header, "id:int,name");
        let (bytes, is_last) = table.block().unwrap().unwrap();
        assert_eq!((bytes.len(), is_last), (BLOCK_BYTES, false));
        table.take(BLOCK_BYTES as u64 - 4);
        let (bytes, is_last) = table.block().unwrap().unwrap();
        assert_eq!((bytes, is_last), ("1,x\n".repeat(11).into_bytes(), true));
        table.take(44);
        assert_eq!(table.block().unwrap(), None);
        assert_eq!(table.done, table.length);
    }

    #[test]
    fn files_without_a_header_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = place.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let refused = |path: &Path| TableReader::open(path).map(|_| ()).unwrap_err().code;
        assert_eq!(refused(&place.path().join("none")), Code::NotFound);
        assert_eq!(refused(place.path()), Code::BadInput);
        assert_eq!(refused(&file("binary", b"\xff\xfe\x00\n1,2\n")), Code::BadInput);
        assert_eq!(refused(&file("long", &[b'a'; MAX_HEADER_BYTES + 1])), Code::BadInput);
        assert!(TableReader::open(&file("header", b"id:int")).is_ok());
    }
}
