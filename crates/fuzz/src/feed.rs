use std::ops::ControlFlow;

use isolith_intake::feed::{
    BufferedFeed, Fault, Feed, Taken, next_member, peek, take_line, take_value,
};
use isolith_intake::records::{Batches, OnError, Rules, validate};
use isolith_store::read_cells;
use isolith_types::Metric;

/// What a value or a line may be long.
const LIMIT: usize = 1000;

/// Files of records and tables: lines and JSON values, records in every form, rows of CSV.
/// Accepted is what one of the readers accepts as a whole.
pub fn feed(data: &[u8]) -> bool {
    assert_eq!(lines(data, 7), lines(data, 4096), "the buffer changes how lines are cut");
    assert_eq!(values(data, 7).ok(), values(data, 4096).ok(), "the buffer changes the values");
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

/// Records in two passes: what the first accepts, the second must be able to read.
fn records(data: &[u8]) -> bool {
    let rules = |on_error| Rules { dimension: None, metric: Metric::Cosine, on_error };
    let go_on = &mut |_, _| ControlFlow::Continue(());
    let strictly = validate(data, &rules(OnError::Stop), go_on).is_ok();
    let Ok(layout) = validate(data, &rules(OnError::Skip), go_on) else {
        assert!(!strictly, "skipping bad rows refuses a file without bad rows");
        return false;
    };
    for most in [1, u64::MAX] {
        let mut batches = Batches::open(data, layout.clone(), layout.start())
            .expect("a file that was just checked can be opened");
        let (mut rows, mut ids) = (0, 0);
        while let Some(batch) = batches.next(most, usize::MAX).expect("what was checked is read") {
            rows += batch.rows_covered;
            ids += batch.ids.len() as u64;
        }
        assert_eq!((rows, ids), (layout.rows, layout.rows - layout.rejected));
    }
    strictly
}

/// A table in CSV: wherever it is cut in two, its rows are the same.
fn table(data: &[u8]) -> bool {
    let end = data.iter().position(|byte| *byte == b'\n').map_or(data.len(), |at| at + 1);
    let header = String::from_utf8_lossy(&data[..end]);
    let rows = &data[end..];
    let Ok(whole) = read_cells(&header, rows, 0) else { return false };
    for cut in [rows.len() / 3, rows.len() / 2, rows.len()] {
        let parts = read_cells(&header, rows, cut).expect("the header was accepted");
        assert_eq!(parts, whole, "a cut at {cut} changes the rows");
    }
    !whole.is_empty() && whole.iter().all(|row| row.starts_with("Ok("))
}
