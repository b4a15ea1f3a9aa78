//! What storing and filtering cost, in CPU time of this process.
//!
//! `cargo run --release -p isolith-store --example put_speed [ROWS [random]]`

use std::error::Error;
use std::time::Instant;

use isolate::InWorker;
use isolith_protocol::{
    CreateCollection, DeleteCollection, DeleteRecords, Key, Purge, PutMode, PutRecords, Records,
    Which, WriteOperation,
};
use isolith_store::{Durability, Scope, StoreFolder, Truth, Writer, WriterOptions};
use isolith_types::{CollectionSpec, Comparison, Filter, Metadata, Metric, Scalar};

const NAME: &str = "speed";
const DIMENSION: usize = 384;
const BATCH: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(100_000), |rows| rows.parse())?;
    let random_ids = std::env::args().nth(2).is_some();
    let batches: Vec<Records> = (0..rows / BATCH).map(|number| batch(number, random_ids)).collect();
    let place = tempfile::tempdir_in(".")?;
    let folder = StoreFolder::new(place.path().join("store"));
    let options = WriterOptions { durability: Durability::Full, create: true };
    let mut writer = Truth::open_writer(&folder, options, InWorker::in_process())?;
    let spec = CollectionSpec {
        name: NAME.to_owned(),
        dimension: None,
        metric: Metric::Cosine,
        model: None,
    };
    apply(&mut writer, CreateCollection { spec, if_missing: false })?;
    put(&mut writer, &batches, "add", PutMode::Add { skip_existing: false })?;
    put(&mut writer, &batches, "upsert, unchanged", PutMode::Upsert)?;
    read(&folder, rows)?;
    remove(&mut writer, &batches)?;
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |m| m.len());
    println!(
        "file {} MB, log {} MB",
        length("truth.sqlite") >> 20,
        length("truth.sqlite-wal") >> 20
    );
    Ok(())
}

fn apply<O: WriteOperation>(writer: &mut Writer, operation: O) -> Result<O::Reply, Box<dyn Error>> {
    let key = Key(fastrand::u128(..).to_le_bytes());
    Ok(writer.apply_one(key, operation)?.reply)
}

fn put(
    writer: &mut Writer,
    batches: &[Records],
    what: &str,
    mode: PutMode,
) -> Result<(), Box<dyn Error>> {
    let measured = Measure::start();
    for records in batches {
        let (collection, records) = (NAME.to_owned(), records.clone());
        apply(writer, PutRecords { collection, records, mode, load: None })?;
    }
    measured.report(what, batches.len() * BATCH);
    Ok(())
}

fn read(folder: &StoreFolder, rows: usize) -> Result<(), Box<dyn Error>> {
    let measured = Measure::start();
    let mut reader = Truth::open_reader(folder, InWorker::in_process())?;
    let snapshot = reader.snapshot()?;
    let state = snapshot.collection(NAME)?;
    measured.report("open and snapshot", 1);
    for key in ["thousandth", "tenth"] {
        let (how, value) = (Comparison::Equal, Scalar::Integer(3));
        let filter = Filter::Compare { key: key.to_owned(), how, value };
        snapshot.rows_matching(state.id, &filter)?;
        let measured = Measure::start();
        let found = snapshot.rows_matching(state.id, &filter)?.len();
        measured.report(&format!("filter for a {key}"), found);
    }
    let measured = Measure::start();
    snapshot.for_each_vector(state.id, Scope::All, &mut |_, _, _| {
        std::ops::ControlFlow::Continue(())
    })?;
    measured.report("scan of vectors", rows);
    Ok(())
}

fn remove(writer: &mut Writer, batches: &[Records]) -> Result<(), Box<dyn Error>> {
    let rows = batches.len() * BATCH;
    let ids = batches.iter().flat_map(|records| records.ids.clone()).collect();
    let measured = Measure::start();
    let which = Which::Ids(ids);
    apply(writer, DeleteRecords { collection: NAME.to_owned(), which, limit: None })?;
    measured.report("delete", rows);
    put(writer, batches, "add again", PutMode::Upsert)?;
    apply(writer, DeleteCollection { name: NAME.to_owned() })?;
    let measured = Measure::start();
    let mut longest = std::time::Duration::ZERO;
    let mut more = true;
    while more {
        let before = Instant::now();
        more = apply(writer, Purge { limit_rows: 1_000_000 })?.more;
        longest = longest.max(before.elapsed());
    }
    measured.report(&format!("purge (longest slice {} ms)", longest.as_millis()), rows);
    Ok(())
}

fn batch(number: usize, random_ids: bool) -> Records {
    let id = |row: usize| match random_ids {
        true => format!("document-{:08x}", fastrand::Rng::with_seed(row as u64).u32(..)),
        false => format!("document-{row:08}"),
    };
    let mut random = fastrand::Rng::with_seed(number as u64);
    let rows = number * BATCH..(number + 1) * BATCH;
    let vectors: Vec<u8> =
        (0..BATCH * DIMENSION).flat_map(|_| (random.f32() - 0.5).to_le_bytes()).collect();
    Records {
        ids: rows.clone().map(id).collect(),
        documents: rows
            .clone()
            .map(|row| {
                Some(format!(
                    "This is the short text of document number {row}, as people write it."
                ))
            })
            .collect(),
        metadatas: rows
            .map(|row| {
                Metadata::from_canonical(format!(
                    r#"{{"tenth":{},"thousandth":{}}}"#,
                    row % 10,
                    row % 1000
                ))
            })
            .collect(),
        dimension: DIMENSION as u32,
        vectors: vectors.into(),
    }
}

struct Measure {
    wall: Instant,
    cpu: f64,
}

impl Measure {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }

    fn report(&self, what: &str, rows: usize) {
        let cpu = cpu_seconds() - self.cpu;
        println!(
            "{what}: {rows} rows, {:.2} ms CPU, {:.2} ms wall, {:.0} rows per CPU-second",
            cpu * 1e3,
            self.wall.elapsed().as_secs_f64() * 1e3,
            rows as f64 / cpu
        );
    }
}

/// User and system time of the whole process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
