use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use isolith_engine::{
    Engine, EngineOptions, Hits, Page, PutMode, Records, Selection, StorePlace, StoreScope,
    StoredRecord, Surroundings, Which, find_store,
};
use isolith_types::{CollectionSpec, Metadata, Metric, Record};
use libtest_mimic::Trial;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A test in a runtime and a folder of its own.
pub fn trial(name: impl Into<String>, test: impl AsyncFnOnce(&Path) + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let folder = tempfile::tempdir().unwrap();
        runtime().block_on(test(folder.path()));
        Ok(())
    })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Programs that are this one with a fault in it, by name of the fault. All are
/// written before the first process starts: one that is open for writing in a process
/// just being started cannot be run.
pub struct Programs {
    folder: TempDir,
}

impl Programs {
    pub fn prepare(faults: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = std::env::current_exe().unwrap();
        for fault in faults {
            let script = format!(
                "#!/bin/sh\nISOLITH_FAULT={fault} exec '{}' \"$@\"\n",
                this.to_str().unwrap()
            );
            let path = folder.path().join(fault);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        Self { folder }
    }

    pub fn with(&self, fault: &str) -> PathBuf {
        let path = self.folder.path().join(fault);
        assert!(path.exists(), "{fault} was not prepared");
        path
    }
}

/// A store as the program finds it, with a secret of its own beside it.
pub fn sealed(folder: &Path) -> StorePlace {
    let around = Surroundings {
        given: Some(folder.to_owned()),
        secret_file: Some(folder.with_file_name("secret")),
        ..Surroundings::default()
    };
    find_store(&around, StoreScope::ProjectThenUser).unwrap()
}

pub fn open(folder: &Path) -> Engine {
    open_with(folder, EngineOptions::default())
}

pub fn open_with(folder: &Path, options: EngineOptions) -> Engine {
    Engine::open(&sealed(folder), EngineOptions { create: true, ..options }).unwrap()
}

/// What a collection should hold: the records, and where each stands.
#[derive(Clone)]
pub struct Model {
    pub name: String,
    pub metric: Metric,
    pub dimension: usize,
    /// By the order of arrival.
    pub records: BTreeMap<u64, Record>,
    arrived: u64,
}

impl Model {
    pub fn new(metric: Metric, dimension: usize) -> Self {
        let name = "c".to_owned();
        Self { name, metric, dimension, records: BTreeMap::new(), arrived: 0 }
    }

    pub async fn create(&self, engine: &Engine) {
        let spec = CollectionSpec {
            name: self.name.clone(),
            dimension: None,
            metric: self.metric,
            model: None,
        };
        engine.create_collection(spec, false).await.unwrap();
    }

    /// A new record, here alone.
    pub fn grow(&mut self, version: u64) -> Record {
        let place = self.arrived;
        self.arrived += 1;
        let record = record(place, version, self.dimension);
        self.records.insert(place, record.clone());
        record
    }

    /// Adds records, here and there.
    pub async fn add(&mut self, engine: &Engine, count: u64) {
        let records = (0..count).map(|_| self.grow(0)).collect();
        self.put(engine, records).await;
    }

    /// Replaces records, here and there.
    pub async fn replace(&mut self, engine: &Engine, places: &[u64], version: u64) {
        let mut changed = Vec::new();
        for place in places {
            let record = record(*place, version, self.dimension);
            *self.records.get_mut(place).unwrap() = record.clone();
            changed.push(record);
        }
        self.put(engine, changed).await;
    }

    pub async fn put(&self, engine: &Engine, records: Vec<Record>) {
        let records = Records::from_records(records);
        engine.put(&self.name, records, PutMode::Upsert, None).await.unwrap();
    }

    /// Removes records, here and there.
    pub async fn remove(&mut self, engine: &Engine, places: &[u64]) {
        let ids: Vec<String> =
            places.iter().map(|place| self.records.remove(place).unwrap().id).collect();
        let written = engine.delete(&self.name, Which::Ids(ids), None).await.unwrap();
        assert_eq!(written.done.reply.deleted, places.len() as u64);
    }

    /// The ids nearest to a vector, with distances, found the slow way.
    pub fn nearest(&self, query: &[f32], limit: usize) -> Vec<(String, f64)> {
        let mut all: Vec<(String, f64)> = self
            .records
            .values()
            .map(|record| (record.id.clone(), distance(self.metric, query, &record.vector)))
            .collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all.truncate(limit);
        all
    }

    /// The ids of records whose documents have the word.
    pub fn with_word(&self, word: &str) -> Vec<String> {
        let has = |record: &&Record| {
            let document = record.document.as_deref().unwrap_or_default();
            document.split(' ').any(|it| it == word)
        };
        let mut ids: Vec<String> =
            self.records.values().filter(has).map(|record| record.id.clone()).collect();
        ids.sort();
        ids
    }

    /// Queries that ask for what was, is and never was there.
    pub fn queries(&self) -> Vec<Vec<f32>> {
        (0..12).map(|seed| vector(seed * 31 + 5, seed % 3, self.dimension)).collect()
    }

    /// Asserts that the engine finds what is here: vectors and words.
    pub async fn check(&self, engine: &Engine, degraded: bool) {
        self.check_vectors(engine, degraded).await;
        for word in WORDS {
            let found = engine.keywords(&self.name, word, 10_000, None).await.unwrap();
            assert_eq!(found.degraded.is_some(), degraded, "{word}: {:?}", found.degraded);
            let mut ids = ids_of(&found);
            ids.sort();
            assert_eq!(ids, self.with_word(word), "{word}");
        }
        assert_eq!(engine.collection(&self.name).await.unwrap().records, self.records.len() as u64);
    }

    pub async fn check_vectors(&self, engine: &Engine, degraded: bool) {
        for query in self.queries() {
            let found = engine.nearest(&self.name, &query, 10, None).await.unwrap();
            assert_eq!(found.degraded.is_some(), degraded, "{:?}", found.degraded);
            self.check_nearest(&query, &found);
        }
    }

    pub fn check_nearest(&self, query: &[f32], found: &Hits) {
        let expected = self.nearest(query, 10);
        let ids: Vec<&String> = expected.iter().map(|(id, _)| id).collect();
        assert_eq!(ids_of(found).iter().collect::<Vec<_>>(), ids);
        for (hit, (id, distance)) in found.hits.iter().zip(&expected) {
            let off = (f64::from(hit.distance.unwrap()) - distance).abs();
            assert!(off < 1e-4 * distance.abs().max(1.0), "{id}: {off}");
        }
    }

    /// All records as stored, in the order of arrival.
    pub async fn stored(&self, engine: &Engine) -> Vec<StoredRecord> {
        let page = Page { after_row: 0, offset: 0, limit: 100_000 };
        engine.get(&self.name, Selection::All, page, true).await.unwrap()
    }

    /// Asserts that the truth has these records and no others.
    pub async fn check_stored(&self, engine: &Engine) {
        let stored = self.stored(engine).await;
        let stored: Vec<&Record> = stored.iter().map(|stored| &stored.record).collect();
        assert_eq!(stored, self.records.values().collect::<Vec<_>>());
    }
}

pub const WORDS: [&str; 4] = ["frogs", "stones", "rivers", "unheard"];

pub fn ids_of(hits: &Hits) -> Vec<String> {
    hits.hits.iter().map(|hit| hit.id.clone()).collect()
}

fn record(place: u64, version: u64, dimension: usize) -> Record {
    let mut chance = fastrand::Rng::with_seed(place * 1_000 + version);
    let mut words: Vec<String> = (0..chance.usize(2..30)).map(|n| format!("filler{n}")).collect();
    for word in &WORDS[..3] {
        for _ in 0..chance.usize(0..8).saturating_sub(3) {
            words.insert(chance.usize(..=words.len()), (*word).to_owned());
        }
    }
    let metadata = serde_json::json!({ "place": place, "version": version });
    Record {
        id: format!("r{place}"),
        document: Some(words.join(" ")),
        metadata: serde_json::from_value::<Metadata>(metadata).unwrap(),
        vector: vector(place, version, dimension),
    }
}

pub fn vector(place: u64, version: u64, dimension: usize) -> Vec<f32> {
    let mut chance = fastrand::Rng::with_seed(place * 1_000 + version + 7);
    (0..dimension).map(|_| chance.f32() * 2.0 - 1.0).collect()
}

fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let pairs = || a.iter().zip(b).map(|(x, y)| (f64::from(*x), f64::from(*y)));
    let dot: f64 = pairs().map(|(x, y)| x * y).sum();
    match metric {
        Metric::Dot => 1.0 - dot,
        Metric::L2 => pairs().map(|(x, y)| (x - y) * (x - y)).sum(),
        Metric::Cosine => {
            let square = |v: &[f32]| v.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>();
            1.0 - dot / (square(a) * square(b)).sqrt()
        }
    }
}

/// Copies a store that nobody uses.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The files in `segments/`, in order.
pub fn segments(store: &Path) -> Vec<PathBuf> {
    files_in(&store.join("segments"))
}

pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
