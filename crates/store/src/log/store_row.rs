//! The single row of table `store`, decoded from the bytes of its page.
//!
//! Every commit writes that page, so the log shows which commits it contains without being
//! replayed.

use crate::acknowledged::Progress;

/// Root page of the table: the first one created, after SQLite's own two pages.
pub(super) const STORE_PAGE: u32 = 3;

/// Page type of a table leaf.
const LEAF: u8 = 13;

/// The uuid and progress; `None` if this is not that page.
pub(super) fn read(page: &[u8]) -> Option<(String, Progress)> {
    let short =
        |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    if *page.first()? != LEAF || short(3)? != 1 {
        return None;
    }
    let mut cell = RecordReader { bytes: page, at: short(8)? };
    cell.varint()?;
    cell.varint()?;
    let start = cell.at;
    let header = usize::try_from(cell.varint()?).ok()?;
    let mut kinds = Vec::new();
    while cell.at < start + header {
        kinds.push(cell.varint()?);
    }
    let mut body = RecordReader { bytes: page, at: start + header };
    let mut values = kinds.into_iter().map(|kind| body.value(kind));
    // Columns: only, uuid, created_at, last_change, commits.
    values.next()??;
    let Value::Text(uuid) = values.next()?? else { return None };
    values.next()??;
    let Value::Number(change) = values.next()?? else { return None };
    let commits = match values.next() {
        None => 0,
        Some(Some(Value::Number(commits))) => commits,
        Some(_) => return None,
    };
    Some((uuid, Progress { commits, change }))
}

enum Value {
    Number(u64),
    Text(String),
    Other,
}

struct RecordReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl RecordReader<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for place in 0..9 {
            let byte = *self.take(1)?.first()?;
            if place == 8 {
                return Some(value << 8 | u64::from(byte));
            }
            value = value << 7 | u64::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(value)
    }

    /// Decodes a value by its serial type. None of the columns is negative.
    fn value(&mut self, kind: u64) -> Option<Value> {
        let length = match kind {
            0 => return Some(Value::Other),
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 => 8,
            8 | 9 => return Some(Value::Number(kind - 8)),
            13.. if kind % 2 == 1 => {
                let text = self.take(usize::try_from((kind - 13) / 2).ok()?)?;
                return Some(Value::Text(String::from_utf8(text.to_vec()).ok()?));
            }
            _ => return None,
        };
        let number = self.take(length)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Some(Value::Number(number))
    }
}
