//! Damaged segment files: answers stay correct and are marked as degraded, and the file is
//! quarantined and rebuilt.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolith_engine::{Engine, EngineOptions, Life};
use isolith_types::Metric;
use libtest_mimic::Trial;

use crate::support::{Model, copy, files_in, open, open_with, segments, trial};

/// How long a server may take to rebuild a segment. It looks for work every 30 s.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_flipped_byte_only_slows_down_searches", flipped),
        trial("a_truncated_empty_missing_or_foreign_segment_only_slows_down_searches", replaced),
        trial("a_segment_truncated_under_a_live_reader_fails_no_query", cut_under_reader),
        trial("a_server_rebuilds_segments_that_reads_find_damaged", server),
        trial("a_server_rebuilds_segments_that_another_process_found_damaged", idle_server),
    ]
}

/// A closed store whose collection has a base and a delta.
async fn folded(store: &Path) -> Model {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 64);
    model.create(&engine).await;
    model.add(&engine, 400).await;
    engine.fold("c", false, None).await.unwrap();
    model.add(&engine, 20).await;
    model.remove(&engine, &[5, 6]).await;
    engine.fold("c", false, None).await.unwrap();
    model.add(&engine, 3).await;
    engine.close().await;
    assert_eq!(segments(store).len(), 4);
    model
}

/// The first search that needs the damaged file notices it, and it is rebuilt.
async fn costs_speed_alone(store: &Path, model: &Model, file: &Path) {
    let name = file.file_name().unwrap();
    let engine = open(store);
    let text = file.extension().is_some_and(|it| it == "txt");
    let query = &model.queries()[1];
    let search = async |engine: &Engine| match text {
        true => engine.keywords("c", "stones", 1_000, None).await.unwrap(),
        false => engine.nearest("c", query, 10, None).await.unwrap(),
    };
    let found = search(&engine).await;
    let again = search(&engine).await;
    assert!(found.degraded.is_some() && again.degraded.is_some(), "{name:?}: {found:?}");
    for found in [&found, &again] {
        if text {
            let mut ids = crate::support::ids_of(found);
            ids.sort();
            assert_eq!(ids, model.with_word("stones"), "{name:?}");
        } else {
            model.check_nearest(query, found);
        }
    }
    let marked = engine.collection("c").await.unwrap().generation.unwrap().segments;
    let marked: Vec<&str> =
        marked.iter().filter(|it| it.quarantined.is_some()).map(|it| it.file.as_str()).collect();
    assert_eq!(marked, [name.to_str().unwrap()]);
    assert!(!file.exists(), "{name:?} is out of the way");
    engine.fold("c", false, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
}

async fn flipped(place: &Path) {
    let store = place.join("store");
    let model = folded(&store).await;
    for (number, file) in segments(&store).iter().enumerate() {
        let length = file.metadata().unwrap().len();
        // Header, sections, directory and table, trailer.
        for (round, at) in
            [3, 61, length / 3, length - 150, length - 66, length - 3].iter().enumerate()
        {
            // Not all of them for all files: starting workers is slow.
            if round % 4 != number && round != 2 {
                continue;
            }
            let damaged = place.join(format!("{number}-{at}"));
            copy(&store, &damaged);
            let file = damaged.join("segments").join(file.file_name().unwrap());
            flip(&file, *at);
            costs_speed_alone(&damaged, &model, &file).await;
            fs::remove_dir_all(damaged).unwrap();
        }
    }
}

fn flip(file: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

async fn replaced(place: &Path) {
    let store = place.join("store");
    let model = folded(&store).await;
    let files = segments(&store);
    let other = |file: &Path| -> PathBuf {
        // Intact and of the same kind, but of another level.
        let kind = file.extension();
        files.iter().find(|it| it.extension() == kind && *it != file).unwrap().clone()
    };
    for (number, file) in files.iter().enumerate() {
        for how in ["half", "empty", "missing", "foreign"] {
            if how != "foreign" && (number + how.len()) % 2 == 0 {
                continue;
            }
            let damaged = place.join(format!("{number}-{how}"));
            copy(&store, &damaged);
            let target = damaged.join("segments").join(file.file_name().unwrap());
            match how {
                "half" => cut(&target, target.metadata().unwrap().len() / 2),
                "empty" => cut(&target, 0),
                "missing" => fs::remove_file(&target).unwrap(),
                _ => fs::copy(other(file), &target).map(drop).unwrap(),
            }
            costs_speed_alone(&damaged, &model, &target).await;
            fs::remove_dir_all(damaged).unwrap();
        }
    }
}

fn cut(file: &Path, length: u64) {
    fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Reading past the end of a mapped file that was truncated raises SIGBUS.
async fn cut_under_reader(store: &Path) {
    let model = folded(store).await;
    let engine = open(store);
    model.check(&engine, false).await;
    for file in segments(store) {
        cut(&file, 0);
    }
    let query = &model.queries()[3];
    let found = engine.nearest("c", query, 10, None).await.unwrap();
    model.check_nearest(query, &found);
    assert!(found.degraded.is_some());
    // Terms may have been copied from the file before; the answer must not be wrong.
    let words = engine.keywords("c", "rivers", 1_000, None).await.unwrap();
    let mut ids = crate::support::ids_of(&words);
    ids.sort();
    assert_eq!(ids, model.with_word("rivers"));
    assert!(!files_in(&store.join("quarantine")).is_empty());
    engine.fold("c", true, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
}

/// Nobody writes; the reads notice the damage and go on until it is repaired.
async fn server(store: &Path) {
    let model = folded(store).await;
    let engine = serving(store);
    model.check(&engine, false).await;
    let query = &model.queries()[2];
    for kind in ["vec", "txt"] {
        let file = segments(store).into_iter().find(|it| it.extension().unwrap() == kind).unwrap();
        cut(&file, 100);
        let begun = Instant::now();
        let mut degraded = 0;
        loop {
            let found = match kind {
                "vec" => engine.nearest("c", query, 10, None).await.unwrap(),
                _ => engine.keywords("c", "stones", 1_000, None).await.unwrap(),
            };
            if kind == "vec" {
                model.check_nearest(query, &found);
            }
            match found.degraded {
                Some(_) => degraded += 1,
                None if degraded > 0 => break,
                None => {}
            }
            assert!(begun.elapsed() < PATIENCE, "{kind}: it is never rebuilt");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        model.check(&engine, false).await;
    }
    engine.close().await;
}

/// Another process finds the damage and leaves the rebuild; the server is asked for nothing.
async fn idle_server(store: &Path) {
    let model = folded(store).await;
    let engine = serving(store);
    let file = segments(store).into_iter().find(|it| it.extension().unwrap() == "vec").unwrap();
    cut(&file, 100);
    let other = open(store);
    assert!(other.nearest("c", &model.queries()[2], 10, None).await.unwrap().degraded.is_some());
    other.close().await;
    let begun = Instant::now();
    let marked = async || {
        let generation = engine.collection("c").await.unwrap().generation.unwrap();
        generation.segments.iter().any(|it| it.quarantined.is_some())
    };
    assert!(marked().await);
    while marked().await {
        assert!(begun.elapsed() < PATIENCE, "it is never rebuilt");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(engine.nearest("c", &model.queries()[2], 10, None).await.unwrap().degraded.is_none());
    engine.close().await;
}

fn serving(store: &Path) -> Engine {
    open_with(store, EngineOptions { life: Life::Server, ..EngineOptions::default() })
}
