//! The CPU time of parsing, chunking and embedding, each measured alone in one process. The
//! grammars alone are a lower bound for any index that parses every file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use isolate::InWorker;
use isolith_embed::{DIMENSION, Model};
use isolith_source::{Chunker, Mode, WorkLimit};
use serde::{Deserialize, Serialize};

use super::Repository;
use super::files::Files;
use super::front::{Phase, own_cpu_time};
use super::processes;
use crate::figure::{Figure, Rival};
use crate::table::Row;

/// CPU time in seconds.
#[derive(Serialize, Deserialize)]
pub(super) struct ParseCosts {
    /// Parsing only; the trees are discarded.
    pub(super) grammars: f64,
    /// Parsing and chunking.
    pub(super) chunks: f64,
    /// Embedding the chunks.
    pub(super) vectors: f64,
    pub(super) count: u64,
}

pub(super) fn measure_parts(code: &Path, texts: &Path) -> Result<ParseCosts> {
    let walked = Files::of(code)?;
    let mut files = Vec::new();
    for found in &walked.found {
        let contents = walked.read(&found.path)?;
        files.push((found.path.clone(), String::from_utf8_lossy(&contents.bytes).into_owned()));
    }
    let token = InWorker::in_process();
    let mut chunker = Chunker::new(token);
    let start = own_cpu_time();
    for (path, text) in &files {
        chunker.parse_only(path, text);
    }
    let grammars = own_cpu_time() - start;
    let mut chunks = Vec::new();
    let start = own_cpu_time();
    for (path, text) in &files {
        let chunked = chunker.chunk(path, text, Mode::Parsed, WorkLimit::NONE, &|| false);
        chunks.extend(chunked.chunks.into_iter().map(|chunk| chunk.text));
    }
    let cut = own_cpu_time() - start;
    let model = Model::embedded(token);
    let mut vector = [0.0; DIMENSION];
    let start = own_cpu_time();
    for chunk in &chunks {
        std::hint::black_box(model.embed_into(chunk, &mut vector));
    }
    let vectors = own_cpu_time() - start;
    fs::write(texts, serde_json::to_vec(&chunks)?)?;
    Ok(ParseCosts {
        grammars: grammars.as_secs_f64(),
        chunks: cut.as_secs_f64(),
        vectors: vectors.as_secs_f64(),
        count: chunks.len() as u64,
    })
}

impl Repository {
    pub(super) fn parts(&self) -> Result<ParseCosts> {
        let phase = Phase::Parts { code: self.code.clone(), texts: self.texts() };
        Ok(processes::report(&mut self.front(&phase)?)?.0)
    }

    pub(super) fn texts(&self) -> std::path::PathBuf {
        self.folder.join("texts.json")
    }
}

impl ParseCosts {
    pub(super) fn rows(&self, full: Duration) -> [Row; 2] {
        let row = |name: &str, ours: Figure| Row {
            name: name.to_owned(),
            ours,
            rival: Rival::Figure(Figure::seconds(self.grammars)),
            goal: None,
        };
        [
            row("index, CPU, vs. bare tree-sitter", Figure::Time(full)),
            row("  parsing and chunking alone", Figure::seconds(self.chunks)),
        ]
    }
}
