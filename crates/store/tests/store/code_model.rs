//! Random index operations, compared with a simple model.

use std::collections::{BTreeMap, HashSet};

use isolith_protocol::{ClearFiles, Level, MoveFile, RemoveFiles, SwapPlan, SwapSegments};
use isolith_store::{Check, Scope};
use isolith_types::{FileVersion, ParsedFile};

use crate::common::{MODEL, TestStore, add_root, bytes, file, put_files, version};

/// The expected state of a file: texts, hash, and the mark in its vectors.
type Known = (Vec<String>, [u8; 32], f32);

struct Run {
    store: TestStore,
    random: fastrand::Rng,
    roots: [u64; 2],
    known: BTreeMap<(u64, String), Known>,
    /// Versions in the segments, if there were any.
    folded: HashSet<(u64, u64)>,
    mark: f32,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut store = TestStore::new();
        let roots = [add_root(&mut store, "/one"), add_root(&mut store, "/two")];
        let random = fastrand::Rng::with_seed(seed);
        Self { store, random, roots, known: BTreeMap::new(), folded: HashSet::new(), mark: 1.0 }
    }

    fn root(&mut self) -> u64 {
        self.roots[self.random.usize(..2)]
    }

    fn path(&mut self) -> String {
        format!("f{}", self.random.u32(..8))
    }

    fn step(&mut self) {
        self.mark += 1.0;
        match self.random.u32(..10) {
            0..4 => self.put(),
            4..6 => self.remove(),
            6..8 => self.shift(),
            8 => self.clear(),
            _ => self.fold(),
        }
    }

    fn put(&mut self) {
        let root = self.root();
        let mut files: BTreeMap<String, ParsedFile> = BTreeMap::new();
        for _ in 0..self.random.u32(1..4) {
            let path = self.path();
            let texts: Vec<String> = (0..self.random.u32(..5))
                .map(|n| format!("{path} {n} {}", self.random.u32(..)))
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            files.insert(path.clone(), file(&path, &texts));
        }
        let files: Vec<ParsedFile> = files.into_values().collect();
        let outcome = self.store.one(put_files(root, &files, self.mark)).unwrap();
        let mut gone = 0;
        for file in &files {
            let texts: Vec<String> = file.chunks.iter().map(|chunk| chunk.text.clone()).collect();
            let old =
                self.known.insert((root, file.path.clone()), (texts, file.version.hash, self.mark));
            gone += old.map_or(0, |old| old.0.len());
        }
        assert_eq!(outcome.deleted, gone as u64);
        assert_eq!(outcome.files, files.len() as u64);
    }

    fn remove(&mut self) {
        let root = self.root();
        let paths: HashSet<String> = (0..3).map(|_| self.path()).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        let mut expected = 0;
        for path in &paths {
            expected += usize::from(self.known.remove(&(root, path.clone())).is_some());
        }
        let outcome = self.store.one(RemoveFiles { root, paths: paths.clone() }).unwrap();
        assert_eq!(outcome.files, expected as u64);
        assert_eq!(outcome.missing, (paths.len() - expected) as u64);
    }

    fn shift(&mut self) {
        let (root, from, to) = (self.root(), self.path(), self.path());
        let key = (root, from.clone());
        let texts = self.known.get(&key).map(|known| known.0.clone()).unwrap_or_default();
        let there: Vec<&str> = texts.iter().map(String::as_str).collect();
        let version = FileVersion { modified: 77, ..version(&there) };
        let numbers = texts.iter().flat_map(|text| [text.len() as f32, self.mark]);
        let action = MoveFile {
            root,
            from,
            to: to.clone(),
            version,
            dimension: 2,
            vectors: bytes(numbers).into(),
            model: MODEL.to_owned(),
        };
        let outcome = self.store.one(action).unwrap();
        assert_eq!(outcome.missing == 1, !self.known.contains_key(&key));
        if self.known.remove(&key).is_some() {
            self.known.insert((root, to), (texts, version.hash, self.mark));
        }
    }

    fn clear(&mut self) {
        let root = self.root();
        let files = self.known.keys().filter(|key| key.0 == root).count() as u64;
        // The order of removal is unspecified, so remove all.
        let mut gone = 0;
        loop {
            let outcome = self.store.one(ClearFiles { root: Some(root), limit_files: 2 });
            let outcome = outcome.unwrap();
            gone += outcome.files;
            if !outcome.more {
                break;
            }
        }
        assert_eq!(gone, files);
        self.known.retain(|key, _| key.0 != root);
    }

    fn fold(&mut self) {
        let mut reader = self.store.reader();
        let snapshot = reader.snapshot().unwrap();
        let state = snapshot.code_state().unwrap().unwrap();
        self.folded = snapshot.versions(state.id, Scope::All).unwrap().into_iter().collect();
        let plan = SwapPlan {
            collection: state.id,
            from_generation: state.generation_number(),
            level: Level::Base,
            complete_to: snapshot.last_change().unwrap(),
            segments: Vec::new(),
        };
        drop(snapshot);
        assert!(self.store.one(SwapSegments { plan }).unwrap().swapped);
    }

    /// Files, chunks and vectors are the model's; and what segments hold, without the dead,
    /// and the tail are together all that lives.
    fn compare(&self) {
        let mut reader = self.store.reader();
        for check in [Check::References, Check::Counts, Check::Orphans, Check::Vectors] {
            assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
        }
        let snapshot = reader.snapshot().unwrap();
        let mut there = BTreeMap::new();
        for root in self.roots {
            for file in snapshot.files(root, None, None, u64::MAX).unwrap() {
                let (_, chunks) = snapshot.chunks_of_file(root, &file.path).unwrap().unwrap();
                let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
                let known = self.known.get(&(root, file.path.clone()));
                let mark = known.map_or(0.0, |known| known.2);
                let texts: Vec<String> =
                    chunks.into_iter().map(|chunk| chunk.text.unwrap()).collect();
                snapshot
                    .vectors(&rows, &mut |at, _, vector| {
                        assert_eq!(vector, bytes([texts[at].len() as f32, mark]));
                    })
                    .unwrap();
                there.insert((root, file.path), (texts, file.version.hash, mark));
            }
        }
        assert_eq!(there, self.known);

        let state = snapshot.code_state().unwrap().unwrap();
        let live: HashSet<_> =
            snapshot.versions(state.id, Scope::All).unwrap().into_iter().collect();
        let dead: HashSet<_> = snapshot.tombstones(state.id).unwrap().into_iter().collect();
        let tail = snapshot.tail(state.id, state.complete_to()).unwrap();
        let found: HashSet<_> = self.folded.difference(&dead).copied().chain(tail).collect();
        assert_eq!(found, live);
    }
}

#[test]
fn random_runs_match_the_model() {
    for seed in 0..20 {
        let mut run = Run::new(seed);
        for _ in 0..30 {
            run.step();
            run.compare();
        }
    }
}
