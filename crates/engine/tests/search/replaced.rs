//! The store's folder is deleted, replaced or restored while engines have it open.

use std::fs;
use std::path::Path;

use isolith_engine::{Engine, EngineOptions, PutMode, Records};
use isolith_types::{Code, Metric};
use libtest_mimic::Trial;

use crate::support::{Model, copy, open, sealed, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("writes_acknowledged_after_a_restore_are_in_the_restored_store", restored),
        trial("nothing_is_acknowledged_into_a_deleted_store", deleted),
        trial("nothing_is_written_to_a_folder_that_was_moved_away", moved_away),
    ]
}

async fn filled(store: &Path) -> Model {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 50).await;
    engine.fold("c", true, None).await.unwrap();
    engine.close().await;
    model
}

/// Two engines that have already read and written.
async fn two(store: &Path, model: &mut Model) -> [Engine; 2] {
    let options = || EngineOptions { create: false, ..EngineOptions::default() };
    let engines = [
        Engine::open(&sealed(store), options()).unwrap(),
        Engine::open(&sealed(store), options()).unwrap(),
    ];
    for engine in &engines {
        model.add(engine, 1).await;
        model.check_vectors(engine, false).await;
    }
    engines
}

/// Repeats a write until it is acknowledged, and counts the refusals.
async fn insist(engine: &Engine, model: &mut Model) -> usize {
    let record = model.grow(9);
    for refusals in 0..5 {
        let records = Records::from_records(vec![record.clone()]);
        match engine.put("c", records, PutMode::Upsert, None).await {
            Ok(_) => return refusals,
            Err(failure) => assert_eq!(failure.code, Code::StoreReplaced, "{failure:?}"),
        }
    }
    panic!("the store is never opened again");
}

async fn restored(place: &Path) {
    let (store, backup) = (place.join("store"), place.join("backup"));
    let mut model = filled(&store).await;
    copy(&store, &backup);
    let mut older = model.clone();
    let engines = two(&store, &mut model).await;
    fs::remove_dir_all(&store).unwrap();
    copy(&backup, &store);
    let mut refusals = 0;
    for engine in &engines {
        refusals += insist(engine, &mut older).await;
    }
    assert!(refusals > 0, "the first writer gets an error");
    // Both see the restored store: its older records and the new ones.
    for engine in &engines {
        older.check_stored(engine).await;
        older.check(engine, false).await;
    }
    for engine in &engines {
        engine.close().await;
    }
    let engine = open(&store);
    older.check_stored(&engine).await;
    engine.close().await;
}

async fn deleted(place: &Path) {
    let store = place.join("store");
    let mut model = filled(&store).await;
    let engines = two(&store, &mut model).await;
    fs::remove_dir_all(&store).unwrap();
    for engine in &engines {
        for attempt in 0..3 {
            let records = Records::from_records(vec![model.grow(1)]);
            let outcome = engine.put("c", records, PutMode::Upsert, None).await;
            let failure = outcome.unwrap_err();
            let expected = [Code::StoreReplaced, Code::NoStore];
            assert!(expected.contains(&failure.code), "{attempt}: {failure:?}");
        }
        let failure = engine.nearest("c", &[1.0, 0.0, 0.0, 0.0], 1, None).await.unwrap_err();
        assert_eq!(failure.code, Code::NoStore, "{failure:?}");
    }
    assert!(!store.join("truth.sqlite").exists(), "no new store is created");
    // A new one is created, and the same engines continue with it.
    let mut fresh = filled(&store).await;
    for engine in &engines {
        insist(engine, &mut fresh).await;
        fresh.check(engine, false).await;
        engine.close().await;
    }
}

async fn moved_away(place: &Path) {
    let (store, away) = (place.join("store"), place.join("away"));
    let mut model = filled(&store).await;
    let engines = two(&store, &mut model).await;
    fs::rename(&store, &away).unwrap();
    let mut fresh = filled(&store).await;
    for engine in &engines {
        insist(engine, &mut fresh).await;
        fresh.check_stored(engine).await;
        fresh.check(engine, false).await;
        engine.close().await;
    }
    let engine = open(&away);
    model.check_stored(&engine).await;
    engine.close().await;
}
