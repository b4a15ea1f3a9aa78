//! Measures the cost of checksums: the same rows in plain pages, in pages with checksums, and
//! in plain pages with a checksum in each row. Prints CPU seconds for writing 20,000 records
//! with vectors and fields, for three scans of all vectors, and for reading 40,000 records by
//! number.
//!
//! `cargo run --release -p isolith-pages --example cost -- plain|pages|rows`, in turns.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Row, params};
use twox_hash::XxHash3_64;

const RECORDS: i64 = 20_000;

#[derive(Clone, Copy, PartialEq)]
enum ChecksumMode {
    Plain,
    Pages,
    Rows,
}

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let mode = match name.as_str() {
        "pages" => ChecksumMode::Pages,
        "rows" => ChecksumMode::Rows,
        _ => ChecksumMode::Plain,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let written = timed(|| write(&create(&path, mode), mode));
    let db = open(&path, mode, -8_192);
    let scanned = timed(|| (0..3).for_each(|_| scan(&db, mode)));
    let got = timed(|| get(&db, mode));
    println!("{name} write {written:.3} scan {scanned:.3} get {got:.3}");
}

/// The CPU seconds of this thread that `work` takes.
fn timed(work: impl FnOnce()) -> f64 {
    let now = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    let start = now();
    work();
    now() - start
}

fn open(path: &Path, mode: ChecksumMode, cache: i64) -> Connection {
    let db = match mode {
        ChecksumMode::Pages => {
            isolith_pages::open(path, OpenFlags::default(), isolith_pages::Checking::Every)
        }
        ChecksumMode::Plain | ChecksumMode::Rows => Connection::open(path),
    };
    let db = db.unwrap();
    db.pragma_update(None, "synchronous", "NORMAL").unwrap();
    db.pragma_update(None, "cache_size", cache).unwrap();
    db.pragma_update(None, "cell_size_check", true).unwrap();
    db.pragma_update_and_check(None, "wal_autocheckpoint", 2048, |_| Ok(())).unwrap();
    db
}

fn create(path: &Path, mode: ChecksumMode) -> Connection {
    let db = open(path, mode, -32_768);
    if mode == ChecksumMode::Pages {
        isolith_pages::reserve(&db).unwrap();
    }
    db.pragma_update(None, "page_size", 8192).unwrap();
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    let sum = if mode == ChecksumMode::Rows { ", sum INTEGER NOT NULL" } else { "" };
    db.execute_batch(&format!(
        "CREATE TABLE record (row INTEGER PRIMARY KEY, collection INTEGER, id TEXT, change INTEGER,
           metadata TEXT, document TEXT{sum}, UNIQUE (collection, id), UNIQUE (collection, change));
         CREATE TABLE vector (row INTEGER PRIMARY KEY, data BLOB{sum});
         CREATE TABLE field (key INTEGER, value ANY, row INTEGER{sum},
           PRIMARY KEY (key, value, row)) WITHOUT ROWID"
    ))
    .unwrap();
    db
}

/// The checksum of a row, over its values.
fn sum(values: &[&[u8]]) -> i64 {
    let hash = values.iter().fold(0, |seed, value| XxHash3_64::oneshot_with_seed(seed, value));
    hash.cast_signed()
}

/// Inserts a row, with its checksum if rows have one.
fn insert(
    db: &Connection,
    mode: ChecksumMode,
    table: &str,
    values: &[&dyn rusqlite::ToSql],
    of: &[&[u8]],
) {
    let checksum = sum_if(mode, of);
    let mut values = values.to_vec();
    if let Some(checksum) = &checksum {
        values.push(checksum);
    }
    let places = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT INTO {table} VALUES ({places})");
    db.prepare_cached(&sql).unwrap().execute(values.as_slice()).unwrap();
}

fn sum_if(mode: ChecksumMode, values: &[&[u8]]) -> Option<i64> {
    (mode == ChecksumMode::Rows).then(|| sum(values))
}

fn write(db: &Connection, mode: ChecksumMode) {
    let mut vector = vec![0; 1536];
    for row in 1..=RECORDS {
        if row % 1000 == 1 {
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let number = row.to_le_bytes();
        let id = format!("document-{row:08}");
        let metadata = format!(r#"{{"n":{row},"tenth":{},"language":"rust"}}"#, row % 10);
        let words = format!("{row} the quick brown fox jumps over the lazy dog ");
        let document = words.repeat(8 + usize::try_from(row % 7).unwrap());
        for (at, place) in (0..).zip(vector.chunks_exact_mut(4)) {
            place.copy_from_slice(&((row * 31 + at * 7) as f32).to_le_bytes());
        }
        let parts = [&number, id.as_bytes(), &number, metadata.as_bytes(), document.as_bytes()];
        insert(db, mode, "record", params![row, 1, id, row, metadata, document], &parts);
        insert(db, mode, "vector", params![row, vector], &[&number, &vector]);
        for (key, value) in [(0_i64, row), (1, row % 10), (2, 7)] {
            let parts = [key, value, row].map(i64::to_le_bytes);
            let parts = parts.each_ref().map(|part| part.as_slice());
            insert(db, mode, "field", params![key, value, row], &parts);
        }
        if row % 1000 == 0 {
            db.execute_batch("COMMIT").unwrap();
        }
    }
}

fn scan(db: &Connection, mode: ChecksumMode) {
    let sums = if mode == ChecksumMode::Rows { ", sum" } else { "" };
    let mut statement = db.prepare(&format!("SELECT row, data{sums} FROM vector")).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut total = 0.0;
    while let Some(row) = rows.next().unwrap() {
        let data = row.get_ref(1).unwrap().as_blob().unwrap();
        verify(row, 2, mode, &[&row.get::<_, i64>(0).unwrap().to_le_bytes(), data]);
        let numbers = data.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes);
        total += numbers.sum::<f32>();
    }
    std::hint::black_box(total);
}

fn get(db: &Connection, mode: ChecksumMode) {
    let sums = if mode == ChecksumMode::Rows { ", r.sum, v.sum" } else { "" };
    let sql = format!(
        "SELECT r.id, r.metadata, r.document, v.data{sums} FROM record r JOIN vector v USING (row) \
         WHERE row = ?1"
    );
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..40_000 {
        let number = random.i64(1..=RECORDS);
        let mut statement = db.prepare_cached(&sql).unwrap();
        let read = statement.query_row([number], |row| {
            let texts = [0, 1, 2].map(|at| row.get::<_, String>(at).unwrap());
            let [id, metadata, document] = texts.each_ref().map(|text| text.as_bytes());
            let data: Vec<u8> = row.get(3)?;
            let number = number.to_le_bytes();
            verify(row, 4, mode, &[&number, id, &number, metadata, document]);
            verify(row, 5, mode, &[&number, &data]);
            Ok(data)
        });
        std::hint::black_box(read.unwrap());
    }
}

fn verify(row: &Row<'_>, column: usize, mode: ChecksumMode, values: &[&[u8]]) {
    if let Some(sum) = sum_if(mode, values) {
        assert_eq!(row.get::<_, i64>(column).unwrap(), sum);
    }
}
