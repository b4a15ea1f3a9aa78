//! Reads the parts of a SCIP index that are needed here: occurrences of symbols, and base classes.
//! The index is a Protocol Buffers message; the numbers of fields are those of `scip.proto` in
//! <https://github.com/sourcegraph/scip>.

use anyhow::{Context, Result, bail};

/// The index of a repository.
#[derive(Default)]
pub(super) struct Index {
    pub(super) documents: Vec<Document>,
}

/// A file in an index.
#[derive(Default)]
pub(super) struct Document {
    pub(super) path: String,
    pub(super) occurrences: Vec<Occurrence>,
    /// Pairs of the symbols of a class and a base class.
    pub(super) bases: Vec<(String, String)>,
}

/// An occurrence of a symbol. Lines and columns count from 0.
#[derive(Default)]
pub(super) struct Occurrence {
    pub(super) line: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) symbol: String,
    pub(super) defines: bool,
}

pub(super) fn read(bytes: &[u8]) -> Result<Index> {
    let mut index = Index::default();
    for_each(bytes, |field, value| {
        if let (2, Value::Bytes(bytes)) = (field, value) {
            index.documents.push(document(bytes)?);
        }
        Ok(())
    })?;
    Ok(index)
}

fn document(bytes: &[u8]) -> Result<Document> {
    let mut document = Document::default();
    for_each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Bytes(path)) => document.path = text(path),
            (2, Value::Bytes(bytes)) => document.occurrences.push(occurrence(bytes)?),
            (3, Value::Bytes(bytes)) => symbol(bytes, &mut document.bases)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(document)
}

fn occurrence(bytes: &[u8]) -> Result<Occurrence> {
    const DEFINITION: u64 = 1;
    let mut occurrence = Occurrence::default();
    for_each(bytes, |field, value| {
        match (field, value) {
            // Three numbers for a range on one line, otherwise four.
            (1, Value::Bytes(range)) => {
                let mut numbers = Vec::new();
                let mut rest = range;
                while !rest.is_empty() {
                    numbers.push(varint(&mut rest)? as usize);
                }
                let [line, start, .., end] = numbers[..] else { bail!("a range is truncated") };
                (occurrence.line, occurrence.start, occurrence.end) = (line, start, end);
            }
            (2, Value::Bytes(symbol)) => occurrence.symbol = text(symbol),
            (3, Value::Number(roles)) => occurrence.defines = roles & DEFINITION != 0,
            _ => {}
        }
        Ok(())
    })?;
    Ok(occurrence)
}

fn symbol(bytes: &[u8], bases: &mut Vec<(String, String)>) -> Result<()> {
    let (mut own, mut related) = (String::new(), Vec::new());
    for_each(bytes, |field, value| {
        match (field, value) {
            (1, Value::Bytes(symbol)) => own = text(symbol),
            (4, Value::Bytes(relationship)) => {
                let (mut other, mut implements) = (String::new(), false);
                for_each(relationship, |field, value| {
                    match (field, value) {
                        (1, Value::Bytes(symbol)) => other = text(symbol),
                        (3, Value::Number(flag)) => implements = flag != 0,
                        _ => {}
                    }
                    Ok(())
                })?;
                related.extend(implements.then_some(other));
            }
            _ => {}
        }
        Ok(())
    })?;
    bases.extend(related.into_iter().map(|other| (own.clone(), other)));
    Ok(())
}

enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn for_each<'b>(bytes: &'b [u8], mut take: impl FnMut(u64, Value<'b>) -> Result<()>) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        match key & 7 {
            0 => {
                let number = varint(&mut rest)?;
                take(key >> 3, Value::Number(number))?;
            }
            1 => rest = rest.get(8..).context("a number is truncated")?,
            2 => {
                let length = varint(&mut rest)? as usize;
                let (value, after) =
                    rest.split_at_checked(length).context("a field is truncated")?;
                rest = after;
                take(key >> 3, Value::Bytes(value))?;
            }
            5 => rest = rest.get(4..).context("a number is truncated")?,
            other => bail!("unknown wire type {other}"),
        }
    }
    Ok(())
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().context("a number is truncated")?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    bail!("a number is too long")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
