//! Random records, reproducible from a seed.

use std::path::{Path, PathBuf};

use isolate_types::InWorker;

use super::super::*;
use crate::storage::Disk;

pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A word. The first words are far more frequent.
    fn word(&mut self) -> String {
        const WORDS: &str = "the parseFile connection café 数据库 HTTPServer2 naïve 東京 user_name \
                             ไทย Straße don't running 서울 x86_64 Привет";
        let size = self.below(11);
        let number = self.below(1 << size);
        let rare = || format!("word{number}x");
        WORDS.split(' ').nth(number).map_or_else(rare, str::to_owned)
    }

    pub(super) fn text(&mut self, max_words: usize) -> String {
        let words = self.below(max_words + 1);
        (0..words).map(|_| self.word() + " ").collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct TestRecord {
    pub(super) row: u64,
    pub(super) change: u64,
    pub(super) texts: [String; FIELDS],
}

impl TestRecord {
    pub(super) fn fields(&self) -> TextFields<'_> {
        let [body, symbols, stem, folders] = &self.texts;
        TextFields { body, symbols, stem, folders }
    }
}

pub(super) fn random_records(count: usize, seed: u64) -> Vec<TestRecord> {
    let mut rng = Rng::new(seed);
    let mut row = 0;
    (0..count)
        .map(|_| {
            row += 1 + rng.below(3) as u64;
            let change = row + rng.below(2) as u64 * 100_000;
            let texts = [120, 6, 2, 3].map(|max_words| rng.text(max_words));
            TestRecord { row, change, texts }
        })
        .collect()
}

pub(super) fn token() -> InWorker {
    InWorker::in_process()
}

pub(super) fn write_segment(
    folder: &Path,
    name: &str,
    analyzer: Analyzer,
    records: &[TestRecord],
) -> PathBuf {
    let disk = Disk::new(folder);
    let mut builder = TextBuilder::create(&disk, folder, name, analyzer, token()).unwrap();
    for record in records {
        builder.push(record.row, record.change, &record.fields()).unwrap();
    }
    let (published, rows) = builder.finish().unwrap();
    assert_eq!(rows, records.len() as u64);
    folder.join(published.file)
}

pub(super) fn open_segment(
    folder: &Path,
    analyzer: Analyzer,
    records: &[TestRecord],
) -> TextSegment {
    let name = format!("s{}.txt", records.first().map_or(0, |record| record.row));
    TextSegment::open(&write_segment(folder, &name, analyzer, records), None, token()).unwrap()
}
