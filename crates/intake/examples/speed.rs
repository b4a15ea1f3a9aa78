//! Measures how fast a file of ready records is read, and its memory use.
//!
//! `cargo run --release -p isolith-intake --example speed -- [MEGABYTES] [lists|lines] [short|long]`
//!
//! `short` writes numbers as `-0.012345678`, `long` as programs do that turn 32-bit
//! floats into 64-bit ones before: `-0.012345678359270096`. Set `KEEP` to a path to
//! keep the file, for a comparison with other readers.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use isolith_intake::records::{Batches, IntakeError, Layout, OnError, Rules, validate};
use isolith_types::Metric;

const DIMENSION: usize = 384;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let megabytes: u64 = arguments.first().map_or(Ok(100), |text| text.parse())?;
    let lines = arguments.get(1).is_some_and(|form| form == "lines");
    let long = arguments.get(2).is_some_and(|style| style == "long");

    let folder = tempfile::tempdir()?;
    let path = match std::env::var_os("KEEP") {
        Some(path) => path.into(),
        None => folder.path().join("records.json"),
    };
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    let mut numbers = Numbers { state: 1, long };
    if lines {
        write_lines(&mut out, megabytes << 20, &mut numbers)?;
    } else {
        write_lists(&mut out, megabytes << 20, &mut numbers)?;
    }
    out.flush()?;
    drop(out);

    let file = File::open(&path)?;
    let bytes = file.metadata()?.len();
    println!("file: {:.1} MB, {DIMENSION} numbers in a row", bytes as f64 / 1e6);
    println!("peak memory before: {} kB", peak_memory());

    let started = processor_time();
    let layout = first_pass(&file)?;
    report("first pass", bytes, layout.rows, started);

    let started = processor_time();
    let rows = second_pass(&file, layout.clone())?;
    report("second pass", bytes, rows, started);

    let started = processor_time();
    Batches::open_after(&file, layout.clone(), layout.rows)?;
    report("skipping all rows", bytes, layout.rows, started);
    Ok(())
}

fn first_pass(file: &File) -> Result<Layout, IntakeError> {
    let rules = Rules { dimension: None, metric: Metric::Cosine, on_error: OnError::Stop };
    validate(file, &rules, &mut |_, _| ControlFlow::Continue(()))
}

fn second_pass(file: &File, layout: Layout) -> Result<u64, IntakeError> {
    let start = layout.start();
    let mut batches = Batches::open(file, layout, start)?;
    let mut rows = 0;
    while let Some(batch) = batches.next(1_000, 4 << 20)? {
        rows += batch.rows_covered;
    }
    Ok(rows)
}

fn report(what: &str, bytes: u64, rows: u64, started: Duration) {
    let seconds = (processor_time() - started).as_secs_f64();
    let speed = bytes as f64 / 1e6 / seconds;
    let memory = peak_memory();
    println!("{what}: {rows} rows, {seconds:.2} CPU-s, {speed:.0} MB/s, peak memory {memory} kB");
}

/// The CPU time of this process, which does not depend on other load; 0 if unavailable.
fn processor_time() -> Duration {
    let times = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = times.split_whitespace().next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The peak memory of this process, in kB; 0 if unavailable.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn write_lists(out: &mut impl Write, bytes: u64, numbers: &mut Numbers) -> io::Result<()> {
    let rows = bytes / numbers.bytes_per_row();
    write!(out, r#"{{"made_by":"speed","chromadb_ready":{{"ids":["#)?;
    each(out, rows, |out, row| write!(out, "\"row-{row}\""))?;
    write!(out, r#"],"embeddings":["#)?;
    each(out, rows, |out, _| numbers.write_vector(out))?;
    write!(out, r#"],"metadatas":["#)?;
    each(out, rows, |out, row| write!(out, r#"{{"source":"speed","page":{row}}}"#))?;
    write!(out, r#"],"documents":["#)?;
    each(out, rows, |out, row| write!(out, "\"The text of row {row}, \\u00fcber \\\"all\\\".\""))?;
    write!(out, "]}}}}")
}

fn write_lines(out: &mut impl Write, bytes: u64, numbers: &mut Numbers) -> io::Result<()> {
    for row in 0..bytes / numbers.bytes_per_row() {
        write!(out, r#"{{"id":"row-{row}","document":"The text of row {row}.","#)?;
        write!(out, r#""metadata":{{"source":"speed","page":{row}}},"vector":"#)?;
        numbers.write_vector(out)?;
        writeln!(out, "}}")?;
    }
    Ok(())
}

fn each<W: Write>(
    out: &mut W,
    rows: u64,
    mut write: impl FnMut(&mut W, u64) -> io::Result<()>,
) -> io::Result<()> {
    for row in 0..rows {
        if row > 0 {
            out.write_all(b", ")?;
        }
        write(out, row)?;
    }
    Ok(())
}

/// Deterministic numbers in the range of embeddings.
struct Numbers {
    state: u64,
    long: bool,
}

impl Numbers {
    fn bytes_per_row(&self) -> u64 {
        let number = if self.long { 23 } else { 13 };
        DIMENSION as u64 * number + 110
    }

    fn write_vector(&mut self, out: &mut impl Write) -> io::Result<()> {
        for position in 0..DIMENSION {
            out.write_all(if position == 0 { b"[" } else { b", " })?;
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let value = ((self.state >> 40) as f32 / (1 << 24) as f32 - 0.5) * 0.2;
            if self.long {
                write!(out, "{}", f64::from(value))?;
            } else {
                write!(out, "{value:.9}")?;
            }
        }
        out.write_all(b"]")
    }
}
