use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;

use super::{check_leniently, rules};
use crate::feed::Content;
use crate::records::{Batches, MAX_ROW_BYTES, OnError, validate};

/// A file generated while it is read: `head`, then `unit` many times, then `tail`. It records the
/// largest block requested.
struct Endless {
    head: &'static [u8],
    unit: &'static [u8],
    times: u64,
    tail: &'static [u8],
    largest_block: Cell<usize>,
}

impl Content for Endless {
    fn size(&self) -> io::Result<u64> {
        let middle = self.unit.len() as u64 * self.times;
        Ok(self.head.len() as u64 + middle + self.tail.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.largest_block.set(self.largest_block.get().max(buffer.len()));
        let head = self.head.len() as u64;
        let tail = head + self.unit.len() as u64 * self.times;
        let (piece, from) = if offset < head {
            (self.head, offset)
        } else if offset < tail {
            (self.unit, (offset - head) % self.unit.len() as u64)
        } else {
            (self.tail, offset - tail)
        };
        let piece = &piece[(from as usize).min(piece.len())..];
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        Ok(count)
    }
}

static UNIT: [u8; 1 << 20] = [b'x'; 1 << 20];

#[test]
fn the_error_for_an_overlong_line_includes_its_size() {
    let content = Endless {
        head: b"{\"id\":\"a\",\"embedding\":[1]}\n{\"id\":\"b\",\"embedding\":[1],\"text\":\"",
        unit: &UNIT,
        times: 33,
        tail: b"\"}\n{\"id\":\"c\",\"embedding\":[1]}\n",
        largest_block: Cell::new(0),
    };
    let mut go_on = |_, _| ControlFlow::Continue(());
    let layout = validate(&content, &rules(OnError::Skip), &mut go_on).unwrap();
    assert_eq!(
        layout.problems[0].to_string(),
        "row 2 (line 2): the record has 34603044 bytes, more than the limit of 32 MB"
    );
    let mut batches = Batches::open(&content, layout.clone(), layout.start()).unwrap();
    assert_eq!(batches.next(10, 1_000).unwrap().unwrap().ids, ["a", "c"]);
    assert!(content.largest_block.get() <= MAX_ROW_BYTES, "{}", content.largest_block.get());
}

#[test]
fn a_document_of_33_mb_is_skipped_in_bounded_memory() {
    let content = Endless {
        head: b"{\"ids\":[\"a\",\"b\"],\"embeddings\":[[1],[2]],\"documents\":[\"",
        unit: &UNIT,
        times: 33,
        tail: b"\",\"short\"]}",
        largest_block: Cell::new(0),
    };
    let mut go_on = |_, _| ControlFlow::Continue(());
    let layout = validate(&content, &rules(OnError::Skip), &mut go_on).unwrap();
    assert_eq!(
        layout.problems[0].to_string(),
        "row 1: document has 34603010 bytes, more than the limit of 32 MB"
    );
    let mut batches = Batches::open(&content, layout.clone(), layout.start()).unwrap();
    let batch = batches.next(10, 1_000).unwrap().unwrap();
    assert_eq!(batch.documents, [Some("short".to_owned())]);
    assert!(content.largest_block.get() <= MAX_ROW_BYTES, "{}", content.largest_block.get());
}

#[test]
fn other_keys_may_be_of_any_size() {
    let content = Endless {
        head: b"{\"other\":[\"",
        unit: &UNIT,
        times: 5,
        tail: b"\"],\"ids\":[\"a\"],\"embeddings\":[[1]]}",
        largest_block: Cell::new(0),
    };
    let mut go_on = |_, _| ControlFlow::Continue(());
    let layout = validate(&content, &rules(OnError::Stop), &mut go_on).unwrap();
    assert_eq!(layout.rows, 1);
    assert!(content.largest_block.get() <= 1 << 20, "{}", content.largest_block.get());
}

#[test]
fn large_metadata_is_refused_before_it_is_parsed() {
    let metadata = format!(r#"{{"k":[{}1]}}"#, "1,".repeat(600_000));
    let file =
        format!(r#"{{"ids":["a","b"],"embeddings":[[1],[2]],"metadatas":[{metadata},null]}}"#);
    let layout = check_leniently(file).unwrap();
    assert_eq!(
        layout.problems[0].to_string(),
        "row 1: metadata has 1200009 bytes, more than the limit of 1 MB"
    );
}
