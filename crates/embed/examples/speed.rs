//! Measures the speed of embedding: splits all text files of a folder into chunks of 128 pieces
//! and prints how many of them one core embeds per second.
//!
//! `cargo run --release -p isolith-embed --example speed -- FOLDER [CHUNKS]`

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;

use isolate_types::InWorker;
use isolith_embed::{DIMENSION, Model};
use rustix::time::{ClockId, clock_gettime};

const CHUNK_PIECES: usize = 128;
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("the folder is missing")?;
    let most = arguments.next().map_or(Ok(20_000), |count| count.parse())?;
    let model = Model::embedded(InWorker::in_process());
    let mut chunks = Vec::new();
    read_chunks(Path::new(&folder), &model, most, &mut chunks)?;
    let bytes: usize = chunks.iter().map(String::len).sum();
    let pieces: usize = chunks.iter().map(|chunk| model.pieces(chunk).len()).sum();
    println!("{} chunks, {pieces} pieces, {:.1} MB", chunks.len(), bytes as f64 / 1e6);

    let mut vector = [0.0; DIMENSION];
    report("pieces alone", &chunks, |chunk| drop(black_box(model.pieces(chunk))));
    report("vectors", &chunks, |chunk| {
        black_box(model.embed_into(chunk, &mut vector));
    });
    Ok(())
}

/// Takes the best of several rounds, as other processes can only slow it down.
fn report(name: &str, chunks: &[String], mut work: impl FnMut(&str)) {
    let seconds = (0..ROUNDS).map(|_| {
        let start = cpu_seconds();
        chunks.iter().for_each(|chunk| work(chunk));
        cpu_seconds() - start
    });
    let best = seconds.fold(f64::INFINITY, f64::min);
    println!("{name}: {:.0} chunks per second", chunks.len() as f64 / best);
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn read_chunks(
    folder: &Path,
    model: &Model,
    most: usize,
    chunks: &mut Vec<String>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if chunks.len() >= most {
            return Ok(());
        }
        if entry.file_type()?.is_dir() {
            read_chunks(&entry.path(), model, most, chunks)?;
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            cut(&text, model, chunks);
        }
    }
    Ok(())
}

/// Splits at line ends, once a chunk has enough pieces.
fn cut(text: &str, model: &Model, chunks: &mut Vec<String>) {
    let mut chunk = String::new();
    let mut pieces = 0;
    for line in text.split_inclusive('\n') {
        chunk.push_str(line);
        pieces += model.pieces(line).len();
        if pieces >= CHUNK_PIECES {
            chunks.push(std::mem::take(&mut chunk));
            pieces = 0;
        }
    }
}
