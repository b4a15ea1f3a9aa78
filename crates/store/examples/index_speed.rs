//! What storing and reading chunks of code costs, in CPU time of this process.
//!
//! `cargo run --release -p isolith-store --example index_speed [FILES]`

use std::error::Error;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use isolate::InWorker;
use isolith_protocol::{
    AddRoot, ChunkFilter, ClearFiles, Key, PutFiles, WriteOperation, code_spec,
};
use isolith_store::{Durability, Scope, StoreFolder, Truth, Writer, WriterOptions};
use isolith_types::{Chunk, ChunkKind, FileGraph, FileVersion, ParsedFile, Symbol, SymbolKind};

const DIMENSION: u32 = 256;
const MODEL: &str = "speed";
const CHUNKS: usize = 8;
const BATCH: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let files: usize = std::env::args().nth(1).map_or(Ok(7_500), |files| files.parse())?;
    let place = tempfile::tempdir_in(".")?;
    let folder = StoreFolder::new(place.path().join("store"));
    let options = WriterOptions { durability: Durability::Full, create: true };
    let mut writer = Truth::open_writer(&folder, options, InWorker::in_process())?;
    let spec = code_spec(DIMENSION, MODEL);
    let added = apply(&mut writer, AddRoot { path: "/project".to_owned(), spec, worktree: None })?;
    let root = added.root.id;

    let rows = files / BATCH * BATCH * CHUNKS;
    put(&mut writer, root, files, "put", rows)?;
    read(&folder, root, rows)?;
    put(&mut writer, root, files, "replace", rows)?;
    let measured = Measure::start();
    while apply(&mut writer, ClearFiles { root: Some(root), limit_files: 1000 })?.more {}
    measured.report("clear", rows);
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).map_or(0, |m| m.len());
    println!("file {} MB", length("truth.sqlite") >> 20);
    Ok(())
}

fn apply<O: WriteOperation>(writer: &mut Writer, operation: O) -> Result<O::Reply, Box<dyn Error>> {
    let key = Key(fastrand::u128(..).to_le_bytes());
    Ok(writer.apply_one(key, operation)?.reply)
}

fn put(
    writer: &mut Writer,
    root: u64,
    files: usize,
    what: &str,
    rows: usize,
) -> Result<(), Box<dyn Error>> {
    let actions: Vec<PutFiles> =
        (0..files / BATCH).map(|number| batch(root, number)).collect::<Result<_, _>>()?;
    let measured = Measure::start();
    for action in actions {
        apply(writer, action)?;
    }
    measured.report(what, rows);
    Ok(())
}

fn read(folder: &StoreFolder, root: u64, rows: usize) -> Result<(), Box<dyn Error>> {
    let mut reader = Truth::open_reader(folder, InWorker::in_process())?;
    let snapshot = reader.snapshot()?;
    let id = snapshot.code_state()?.ok_or("no index")?.id;
    let measured = Measure::start();
    snapshot.for_each_chunk(id, Scope::All, &mut |_, _, chunk| {
        black_box(chunk.symbols.len());
        ControlFlow::Continue(())
    })?;
    measured.report("walk through chunks", rows);

    let measured = Measure::start();
    let files = snapshot.files(root, None, None, u64::MAX)?;
    measured.report("list files", files.len());
    for (what, kinds) in [("all", vec![]), ("functions", vec![ChunkKind::Function])] {
        let filter = ChunkFilter { kinds, ..ChunkFilter::default() };
        let measured = Measure::start();
        let found = snapshot.code_rows(&filter, &|path, _| !path.contains("/9"))?.len();
        measured.report(&format!("filter for {what}"), found);
    }
    let some: Vec<u64> = (0..500).map(|_| fastrand::u64(1..=rows as u64)).collect();
    for with_text in [false, true] {
        snapshot.chunks(&some, with_text)?;
        let measured = Measure::start();
        let found = snapshot.chunks(&some, with_text)?.len();
        measured.report(&format!("chunks, text {with_text}"), found);
    }
    Ok(())
}

fn batch(root: u64, number: usize) -> Result<PutFiles, Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let files: Vec<ParsedFile> =
        (number * BATCH..(number + 1) * BATCH).map(|file| parsed(file, &mut random)).collect();
    let numbers = BATCH * CHUNKS * DIMENSION as usize;
    let vectors: Vec<u8> = (0..numbers).flat_map(|_| (random.f32() - 0.5).to_le_bytes()).collect();
    Ok(PutFiles {
        root,
        files: postcard::to_allocvec(&files)?.into(),
        ages: Vec::new(),
        dimension: DIMENSION,
        vectors: vectors.into(),
        model: MODEL.to_owned(),
    })
}

fn parsed(number: usize, random: &mut fastrand::Rng) -> ParsedFile {
    let chunk = |at: usize, length: usize| Chunk {
        start_line: at as u32 * 40 + 1,
        end_line: at as u32 * 40 + 40,
        kind: if at == 0 { ChunkKind::Module } else { ChunkKind::Method },
        symbols: (0..at as u32 % 3)
            .map(|line| Symbol {
                name: format!("handle_event_{number}_{line}"),
                kind: SymbolKind::Method,
                line,
            })
            .collect(),
        parent: Some("EventLoop".to_owned()),
        signature: Some(format!("fn handle_event_{number}(&mut self, event: Event) -> Result<()>")),
        doc: Some("Takes an event and does what it says.".to_owned()),
        text: "let next = self.queue.pop();\n".repeat(length),
    };
    ParsedFile {
        path: format!("crates/part_{:02}/src/{number:05}.rs", number / 500),
        version: FileVersion { hash: [number as u8; 32], size: 9000, modified: 1 },
        language: "rust".to_owned(),
        generated: false,
        problem: None,
        chunks: (0..CHUNKS).map(|at| chunk(at, random.usize(20..70))).collect(),
        graph: FileGraph::default(),
        parser: 1,
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
            "{what}: {rows} rows, {:.2} ms CPU, {:.2} ms wall, {:.2} µs CPU each",
            cpu * 1e3,
            self.wall.elapsed().as_secs_f64() * 1e3,
            cpu * 1e6 / rows as f64
        );
    }
}

/// User and system time of the whole process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
