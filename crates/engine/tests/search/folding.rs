//! With half of a collection deleted and updated, hits are the same as by brute force, before
//! and after folding.

use std::path::Path;

use isolith_engine::Which;
use isolith_types::Metric;
use libtest_mimic::Trial;

use crate::support::{Model, WORDS, ids_of, open, segments, trial};

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("keywords_are_ranked_the_same_in_tail_delta_and_base", same_order),
        trial("an_empty_collection_is_folded_and_searched", empty),
        trial("a_hundred_thousand_ids_are_deleted_in_one_call", many_ids),
    ];
    // With and without codes, for every metric.
    for metric in [Metric::Cosine, Metric::L2, Metric::Dot] {
        for dimension in [12, 96] {
            let name = format!("half_changed_{metric}_{dimension}");
            trials
                .push(trial(name, async move |store| half_changed(store, metric, dimension).await));
        }
    }
    trials
}

async fn half_changed(store: &Path, metric: Metric, dimension: usize) {
    let engine = open(store);
    let mut model = Model::new(metric, dimension);
    model.create(&engine).await;
    model.add(&engine, 600).await;
    model.check(&engine, false).await;
    fold(&engine, 2).await;
    model.check(&engine, false).await;

    // A small change: a delta beside the base.
    let places: Vec<u64> = (0..600).step_by(40).collect();
    model.replace(&engine, &places, 1).await;
    model.remove(&engine, &[1, 41, 81, 200, 599]).await;
    model.add(&engine, 20).await;
    model.check(&engine, false).await;
    fold(&engine, 4).await;
    model.check(&engine, false).await;

    // Half of the records change, including those in the delta.
    let gone: Vec<u64> = model.records.keys().copied().filter(|place| place % 4 == 2).collect();
    let changed: Vec<u64> = model.records.keys().copied().filter(|place| place % 4 == 0).collect();
    model.remove(&engine, &gone).await;
    model.replace(&engine, &changed, 2).await;
    model.check(&engine, false).await;
    fold(&engine, 2).await;
    model.check(&engine, false).await;
    model.check_stored(&engine).await;

    // A record that was added again under its old id is found once.
    let back: Vec<u64> = gone[..3].to_vec();
    for place in &back {
        let record = Model::new(metric, dimension).grow(*place + 50);
        let id = format!("r{place}");
        model.records.insert(*place, isolith_types::Record { id, ..record });
    }
    let records = back.iter().map(|place| model.records[place].clone()).collect();
    model.put(&engine, records).await;
    model.check(&engine, false).await;
    engine.fold(&model.name, true, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
}

/// Folds, and returns the number of files in the new generation.
async fn fold(engine: &isolith_engine::Engine, files: usize) {
    let before = engine.collection("c").await.unwrap().generation_number();
    let done = engine.fold("c", false, None).await.unwrap();
    assert_eq!(done.generation, Some(before + 1));
    let state = engine.collection("c").await.unwrap();
    assert_eq!(state.generation.unwrap().segments.len(), files);
    assert_eq!(segments(engine.folder()).len(), files, "nothing else is left");
}

/// Without deleted records, scores do not depend on which segment a record is in.
async fn same_order(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 300).await;
    fold(&engine, 2).await;
    model.add(&engine, 20).await;
    fold(&engine, 4).await;
    model.add(&engine, 30).await;
    let mut ranked = Vec::new();
    for query in WORDS.iter().copied().chain(["stones rivers", "frogs stones rivers filler2"]) {
        let found = engine.keywords("c", query, 1_000, None).await.unwrap();
        assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score), "{query}");
        ranked.push((query, found));
    }
    engine.fold("c", true, None).await.unwrap();
    for (query, before) in &ranked {
        let after = engine.keywords("c", query, 1_000, None).await.unwrap();
        assert_eq!(ids_of(before), ids_of(&after), "{query}");
        for (before, after) in before.hits.iter().zip(&after.hits) {
            let off = before.score.unwrap() - after.score.unwrap();
            assert!(off.abs() < 1e-4, "{query}: {off}");
        }
        // The best are the same for any limit.
        let few = engine.keywords("c", query, 7, None).await.unwrap();
        assert_eq!(ids_of(&few), ids_of(&after)[..after.hits.len().min(7)], "{query}");
    }
    engine.close().await;
}

async fn empty(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    engine.fold("c", true, None).await.unwrap();
    assert!(engine.nearest("c", &[1.0, 0.0, 0.0, 0.0], 5, None).await.unwrap().hits.is_empty());
    model.check(&engine, false).await;
    model.add(&engine, 3).await;
    engine.fold("c", true, None).await.unwrap();
    model.check(&engine, false).await;
    model.remove(&engine, &[0, 1, 2]).await;
    model.check(&engine, false).await;
    engine.fold("c", true, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
}

async fn many_ids(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::L2, 2);
    model.create(&engine).await;
    model.add(&engine, 900).await;
    model.add(&engine, 100).await;
    let ids = (100..100_100).map(|number| format!("r{number}")).collect();
    let outcome = engine.delete("c", Which::Ids(ids), None).await.unwrap().done.reply;
    assert_eq!((outcome.deleted, outcome.missing), (900, 99_100));
    model.records.retain(|place, _| *place < 100);
    model.check(&engine, false).await;
    model.check_stored(&engine).await;
    engine.close().await;
}
