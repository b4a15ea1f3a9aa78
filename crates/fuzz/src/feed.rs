use std::ops::ControlFlow;

use isolith_intake::feed::{
    BufferedFeed, Fault, Feed, Taken, next_member, peek, take_line, take_value,
};
use isolith_intake::records::{Batches, OnError, Rules, validate};
use isolith_store::read_cells;
use isolith_types::Metric;

/// Maximum length of a value or line.
const LIMIT: usize = 1000;

/// Imported files: lines, JSON values, records in every format, and CSV tables. An input is
/// accepted if the reader of records or of tables accepts all of it.
pub fn feed(data: &[u8]) -> bool {
    assert_eq!(lines(data, 7), lines(data, 4096), "lines depend on the buffer size");
    assert_eq!(values(data, 7).ok(), values(data, 4096).ok(), "values depend on the buffer size");
    let records = records(data);
    table(data) || records
}

fn lines(data: &[u8], buffer: usize) -> Vec<Taken> {
    let mut source = BufferedFeed::new(data, 0, buffer);
    let mut lines = Vec::new();
    while let Ok(Some(taken)) = take_line(&mut source, LIMIT) {
        if let Taken::Whole(length) = taken {
            source.advance(length);
            let ends = source.window().first() == Some(&b'\n');
            source.advance(usize::from(ends));
        }
        lines.push(taken);
    }
    lines
}

fn values(data: &[u8], buffer: usize) -> Result<Vec<Taken>, Fault> {
    let mut source = BufferedFeed::new(data, 0, buffer);
    let mut values = Vec::new();
    if peek(&mut source)? != Some(b'[') {
        return Ok(values);
    }
    source.advance(1);
    while next_member(&mut source, values.is_empty(), b']')? {
        let taken = take_value(&mut source, LIMIT)?;
        if let Taken::Whole(length) = taken {
            source.advance(length);
        }
        values.push(taken);
    }
    Ok(values)
}

/// Records in two passes: the second must be able to read what the first accepts.
fn records(data: &[u8]) -> bool {
    let rules = |on_error| Rules { dimension: None, metric: Metric::Cosine, on_error };
    let no_progress = &mut |_, _| ControlFlow::Continue(());
    let valid = validate(data, &rules(OnError::Stop), no_progress).is_ok();
    let Ok(layout) = validate(data, &rules(OnError::Skip), no_progress) else {
        assert!(!valid, "a file without invalid rows is rejected if they are to be skipped");
        return false;
    };
    for limit in [1, u64::MAX] {
        let mut batches = Batches::open(data, layout.clone(), layout.start())
            .expect("a validated file can be opened");
        let (mut rows, mut ids) = (0, 0);
        while let Some(batch) = batches.next(limit, usize::MAX).expect("validated rows are read") {
            rows += batch.rows_covered;
            ids += batch.ids.len() as u64;
        }
        assert_eq!((rows, ids), (layout.rows, layout.rows - layout.rejected));
    }
    valid
}

/// A CSV table: splitting it must not change its rows.
fn table(data: &[u8]) -> bool {
    let end = data.iter().position(|byte| *byte == b'\n').map_or(data.len(), |at| at + 1);
    let header = String::from_utf8_lossy(&data[..end]);
    let rows = &data[end..];
    let Ok(whole) = read_cells(&header, rows, 0) else { return false };
    for cut in [rows.len() / 3, rows.len() / 2, rows.len()] {
        let parts = read_cells(&header, rows, cut).expect("the header was accepted");
        assert_eq!(parts, whole, "splitting at {cut} changes the rows");
    }
    !whole.is_empty() && whole.iter().all(|row| row.starts_with("Ok("))
}
