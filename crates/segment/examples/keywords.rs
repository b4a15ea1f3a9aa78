//! Measures text segments: builds one from all text files of a folder, in chunks of about 1,500
//! bytes, and prints the cost of building, opening and searching it.
//!
//! `cargo run --release -p isolith-segment --example keywords -- FOLDER [CHUNKS]`

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use isolith_segment::Bits;
use isolith_segment::storage::Disk;
use isolith_segment::text::{
    Analyzer, Keywords, Ranking, TermCounts, TextBuilder, TextFields, TextSegment, Tokenizer,
};
use rustix::time::{ClockId, clock_gettime};

const FILE_NAME_WEIGHT: f32 = 2.0;

const CHUNK_BYTES: usize = 1500;
const QUERIES: [&str; 6] = [
    "HashMap",
    "how are connections closed on shutdown",
    "parse json string escape",
    "impl Iterator for fn self return Option Result",
    "tokio runtime spawn_blocking JoinHandle",
    "error",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: keywords FOLDER [CHUNKS]")?;
    let limit = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let chunks = read_chunks(Path::new(&folder), limit)?;
    let bytes: usize = chunks.iter().map(|chunk| chunk.body.len()).sum();
    println!("{} chunks, {:.1} MB", chunks.len(), bytes as f64 / 1e6);

    for analyzer in [Analyzer::Code, Analyzer::Prose] {
        println!("\n{analyzer}");
        tokenize(analyzer, &chunks);
        measure(analyzer, &chunks)?;
    }
    Ok(())
}

struct Chunk {
    body: String,
    stem: String,
    folders: String,
}

impl Chunk {
    fn fields(&self, analyzer: Analyzer) -> TextFields<'_> {
        match analyzer {
            Analyzer::Code => TextFields {
                body: &self.body,
                symbols: self.body.lines().next().unwrap_or_default(),
                stem: &self.stem,
                folders: &self.folders,
            },
            Analyzer::Prose => TextFields::body(&self.body),
        }
    }
}

fn read_chunks(folder: &Path, limit: usize) -> Result<Vec<Chunk>, Box<dyn Error>> {
    let mut chunks = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(&folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                cut(&text, &path, &mut chunks);
                if chunks.len() >= limit {
                    chunks.truncate(limit);
                    return Ok(chunks);
                }
            }
        }
    }
    Ok(chunks)
}

fn cut(text: &str, path: &Path, chunks: &mut Vec<Chunk>) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let parents = path.ancestors().skip(1).take(3).filter_map(Path::file_name);
    let folders: Vec<_> = parents.map(|name| name.to_string_lossy()).collect();
    let mut body = String::new();
    for line in text.split_inclusive('\n').chain([""]) {
        body.push_str(line);
        if body.len() >= CHUNK_BYTES || (line.is_empty() && !body.is_empty()) {
            let body = std::mem::take(&mut body);
            chunks.push(Chunk { body, stem: stem.to_string(), folders: folders.join(" ") });
        }
    }
}

fn tokenize(analyzer: Analyzer, chunks: &[Chunk]) {
    let mut tokenizer = Tokenizer::new(analyzer);
    let mut terms = 0u64;
    let start = cpu();
    for chunk in chunks {
        for text in chunk.fields(analyzer).each() {
            tokenizer.for_each(text, &mut |_, _| terms += 1);
        }
    }
    println!("tokenize  {:8.2} s CPU, {terms} terms", (cpu() - start).as_secs_f64());
}

fn measure(analyzer: Analyzer, chunks: &[Chunk]) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(folder.path());
    let token = InWorker::in_process();
    let start = cpu();
    let mut builder = TextBuilder::create(&disk, folder.path(), "example.txt", analyzer, token)?;
    for (row, chunk) in (1..).zip(chunks) {
        builder.push(row, row, &chunk.fields(analyzer))?;
    }
    let (published, _) = builder.finish()?;
    println!("build     {:8.2} s CPU", (cpu() - start).as_secs_f64());
    println!("file      {:8.2} MB", published.bytes as f64 / 1e6);

    let path = folder.path().join(&published.file);
    let open = || TextSegment::open(&path, Some(published.checksum), InWorker::in_process());
    let segment = open()?;
    println!("open      {:8.2} ms CPU", each(20, open).as_secs_f64() * 1e3);

    let (mut tenth, mut thousandth) = (Bits::new(segment.len()), Bits::new(segment.len()));
    (0..segment.len()).step_by(10).for_each(|position| tenth.insert(position));
    (0..segment.len()).step_by(1000).for_each(|position| thousandth.insert(position));
    println!("CPU µs per query: all, 10% allowed, 0.1% allowed (10 hits each), all with 200 hits");
    for query in QUERIES {
        let keywords = Keywords::of(analyzer, query, FILE_NAME_WEIGHT);
        let ask = |want: usize, allowed: Option<&Bits>| {
            each(50, || {
                let ranking = Ranking::new(&keywords, &segment.statistics(&keywords)?);
                segment.search(&ranking, want, allowed, None)
            })
            .as_micros()
        };
        let (all, more) = (ask(10, None), ask(200, None));
        let (some, few) = (ask(10, Some(&tenth)), ask(10, Some(&thousandth)));
        let doc_freqs = segment.statistics(&keywords)?.doc_freqs;
        let in_bodies: u64 = doc_freqs.iter().map(|doc_freq| doc_freq[0]).sum();
        println!("{all:>7} {some:>7} {few:>7} {more:>7}   {in_bodies:>7} in bodies   {query}");
    }
    tail(analyzer, chunks);
    Ok(())
}

/// Measures what a thousand records of the tail add to a query.
fn tail(analyzer: Analyzer, chunks: &[Chunk]) {
    let keywords = Keywords::of(analyzer, QUERIES[1], FILE_NAME_WEIGHT);
    let mut tokenizer = Tokenizer::new(analyzer);
    let tail = &chunks[..chunks.len().min(1000)];
    let spent = each(3, || {
        tail.iter()
            .map(|chunk| {
                TermCounts::of_terms(&mut tokenizer, &chunk.fields(analyzer), &keywords.terms)
            })
            .collect::<Vec<_>>()
    });
    println!("tail      {:8.2} ms CPU for {} records", spent.as_secs_f64() * 1e3, tail.len());
}

fn each<T>(times: u32, mut action: impl FnMut() -> T) -> Duration {
    let start = cpu();
    let wall = Instant::now();
    for _ in 0..times {
        std::hint::black_box(action());
    }
    // The CPU clock may be too coarse to advance.
    (cpu() - start).max(wall.elapsed() / 1000) / times
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
