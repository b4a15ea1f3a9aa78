//! Workers that crash at fail points, and the consequences.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use isolate::Counter;
use isolith_engine::{Attached, Engine, EngineOptions, IngestOptions, OnError, PutMode, Records};
use isolith_types::{Code, DatabaseName, Metric, NewFact, Provenance, Supersede, WhichFact};
use libtest_mimic::Trial;

use crate::support::{Model, Programs, files_in, open, open_with, trial};

/// All faults that the trials inject.
pub const ALL: &[&str] = &[
    "read:crash",
    "segment.search:crash",
    "segment.search:bus",
    "segment.search:panic",
    "segment.search:corrupt",
    "segment.search:exit",
    "segment.search:hang",
    "text.search:crash",
    "fold.vectors:crash",
    "fold.built:crash",
    "fold.swapped:crash",
    "fold.built:kill",
    "write:crash:2",
    "write.committed:crash:2",
    "write.committed:kill:2",
    "write.committed:panic:2",
    "intake.validate:crash",
    "intake.batch:kill:3",
];

pub fn trials(programs: &Programs) -> Vec<Trial> {
    let with = |fault: &str| EngineOptions {
        program: Some(programs.with(fault)),
        deadline: Duration::from_secs(if fault.ends_with("hang") { 2 } else { 30 }),
        ..EngineOptions::default()
    };
    let mut trials = Vec::new();
    let deadly = with("read:crash");
    trials.push(trial(
        "a_query_that_crashes_workers_by_itself_quarantines_no_segment",
        async |store| {
            deadly_query(store, deadly).await;
        },
    ));
    for fault in ALL.iter().filter(|fault| fault.contains(".search:")) {
        let options = with(fault);
        let kind = if fault.starts_with("text") { "txt" } else { "vec" };
        trials.push(trial(format!("{fault} quarantines the segment"), async move |store| {
            deadly_segment(store, options, kind).await;
        }));
    }
    for fault in ALL.iter().filter(|fault| fault.starts_with("fold.")) {
        let options = with(fault);
        trials.push(trial(format!("{fault} loses nothing"), async move |store| {
            deadly_fold(store, options).await;
        }));
    }
    for fault in ALL.iter().filter(|fault| fault.starts_with("write")) {
        let (options, together, facts) = (with(fault), with(fault), with(fault));
        trials.push(trial(format!("{fault} is written once"), async move |store| {
            deadly_write(store, options).await;
        }));
        trials.push(trial(format!("{fault} in a group is written once"), async move |store| {
            deadly_group(store, together).await;
        }));
        trials.push(trial(format!("{fault} keeps each fact once"), async move |store| {
            deadly_facts(store, facts).await;
        }));
    }
    let (refused, continued) = (with("intake.validate:crash"), with("intake.batch:kill:3"));
    trials.push(trial(
        "a_file_that_crashes_its_reader_is_refused_without_affecting_others",
        async |store| {
            deadly_file(store, refused).await;
        },
    ));
    trials.push(trial("a_load_continues_after_its_reader_crashed", async |store| {
        deadly_batch(store, continued).await;
    }));
    trials
}

/// A store with 300 records in a base, a tail, and dead rows.
async fn filled(store: &Path) -> Model {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 8);
    model.create(&engine).await;
    model.add(&engine, 300).await;
    engine.fold("c", true, None).await.unwrap();
    model.add(&engine, 5).await;
    model.remove(&engine, &[3, 4]).await;
    model.replace(&engine, &[7, 8], 1).await;
    engine.close().await;
    model
}

async fn deadly_query(store: &Path, options: EngineOptions) {
    let model = filled(store).await;
    let before = files_in(&store.join("segments"));
    let engine = open_with(store, options);
    let failure = engine.nearest("c", &model.queries()[0], 5, None).await.unwrap_err();
    assert_eq!(failure.code.exit_status(), 70, "{failure:?}");
    assert_eq!(failure.death.unwrap().class, "crash");
    engine.close().await;
    assert_eq!(files_in(&store.join("segments")), before);
    let engine = open(store);
    let state = engine.collection("c").await.unwrap();
    assert!(state.generation.unwrap().segments.iter().all(|it| it.quarantined.is_none()));
    model.check(&engine, false).await;
    engine.close().await;
}

async fn deadly_segment(store: &Path, options: EngineOptions, kind: &str) {
    let model = filled(store).await;
    let engine = open_with(store, options);
    let query = &model.queries()[0];
    let found = match kind {
        "vec" => engine.nearest("c", query, 10, None).await.unwrap(),
        _ => engine.keywords("c", "frogs", 1_000, None).await.unwrap(),
    };
    assert!(found.degraded.is_some(), "{found:?}");
    if kind == "vec" {
        model.check_nearest(query, &found);
    }
    engine.close().await;

    // Later searches know, and do not use it.
    let kept = files_in(&store.join("quarantine"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0].extension().unwrap(), kind);
    let engine = open(store);
    let found = match kind {
        "vec" => engine.nearest("c", query, 10, None).await.unwrap(),
        _ => engine.keywords("c", "frogs", 1_000, None).await.unwrap(),
    };
    assert!(found.degraded.unwrap().contains("quarantine"));
    engine.fold("c", false, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
}

async fn deadly_fold(store: &Path, options: EngineOptions) {
    let mut model = filled(store).await;
    let engine = open_with(store, options);
    // It may fail, or another worker may find it finished.
    let folded = engine.fold("c", false, None).await;
    engine.close().await;
    let engine = open(store);
    let generation = engine.collection("c").await.unwrap().generation_number();
    assert!(generation == 1 || generation == 2, "{generation}");
    if let Ok(done) = folded {
        assert_eq!(done.generation.unwrap_or(generation), generation);
    }
    model.check(&engine, false).await;
    model.check_stored(&engine).await;
    model.add(&engine, 3).await;
    engine.fold("c", false, None).await.unwrap();
    model.check(&engine, false).await;
    let state = engine.collection("c").await.unwrap();
    for segment in state.generation.unwrap().segments {
        assert!(store.join("segments").join(segment.file).exists());
    }
    engine.close().await;
}

async fn deadly_write(store: &Path, options: EngineOptions) {
    let engine = open_with(store, options);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    let record = model.grow(0);
    let records = Records::from_records(vec![record]);
    let written = engine.put("c", records, PutMode::Upsert, None).await.unwrap();
    assert_eq!(written.deaths.len(), 1);
    // A second application would have found the existing record.
    assert_eq!((written.done.reply.inserted, written.done.reply.unchanged), (1, 0));
    let stored = model.stored(&engine).await;
    assert_eq!((stored.len(), stored[0].change), (1, stored[0].row), "one change, one number");
    engine.close().await;
}

/// Concurrent writes become groups; the second job of each worker crashes it.
async fn deadly_group(store: &Path, options: EngineOptions) {
    let engine = open_with(store, options);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    let mut writes = Vec::new();
    for _ in 0..40 {
        let records = Records::from_records(vec![model.grow(0)]);
        let engine = engine.clone();
        writes.push(tokio::spawn(async move {
            engine.put("c", records, PutMode::Add { skip_existing: false }, None).await
        }));
    }
    for write in writes {
        let outcome = write.await.unwrap().unwrap().done.reply;
        assert_eq!((outcome.inserted, outcome.unchanged), (1, 0));
    }
    let last = engine.collection("c").await.unwrap().last_change;
    assert_eq!(last, 40, "each was written once");
    model.check_stored(&engine).await;
    engine.close().await;
}

/// A fact that was stored before its worker crashed is found by its key, and still reported as
/// new.
async fn deadly_facts(store: &Path, options: EngineOptions) {
    let engine = open_with(store, options);
    let fact = |object: String| NewFact {
        subject: "Max".to_owned(),
        predicate: "met".to_owned(),
        object,
        ..NewFact::default()
    };
    let mut adding = Vec::new();
    for number in 0..30 {
        let (engine, fact) = (engine.clone(), fact(format!("person {number}")));
        adding.push(tokio::spawn(async move { engine.add_fact(fact, None).await }));
    }
    for added in adding {
        let added = added.await.unwrap().unwrap();
        assert!(added.created && !added.updated, "{added:?}");
    }
    let change = |number| Supersede {
        old: WhichFact::Id(format!("f{number}")),
        object: format!("somebody else {number}"),
        object_type: None,
        at: None,
        confidence: None,
        provenance: Provenance::default(),
    };
    for number in 1..=3 {
        let done = engine.supersede_fact(change(number), None).await.unwrap();
        assert_eq!((done.id, done.created), (format!("f{}", 30 + number), true));
    }
    let stats = engine.fact_stats(None).await.unwrap();
    assert_eq!((stats.facts, stats.current, stats.past), (33, 30, 3));
    let deaths = engine.tally().count(Counter::Deaths, "store-writer", None);
    assert!(deaths > 0, "nobody died");
    engine.close().await;
}

fn ingest_options(store: &Path, name: &str, rows: u64) -> IngestOptions {
    let text: String =
        (0..rows).map(|row| format!("{{\"id\":\"r{row}\",\"embedding\":[{row},1,2]}}\n")).collect();
    let file = store.with_file_name(name);
    std::fs::write(&file, text).unwrap();
    IngestOptions {
        file,
        opened: None,
        database: DatabaseName::default(),
        collection: "c".to_owned(),
        dimension: None,
        metric: None,
        default_metric: Metric::default(),
        model: None,
        attached: Attached::default(),
        mode: PutMode::Upsert,
        on_error: OnError::Stop,
        patience: Duration::from_secs(60),
    }
}

async fn ingest(engine: &Engine, options: &IngestOptions) -> isolith_engine::Receipt {
    engine.ingest(options, Arc::new(|_| {})).await
}

/// Input that crashed two workers is skipped; other files are not.
async fn deadly_file(place: &Path, options: EngineOptions) {
    let store = &place.join("store");
    let first = ingest_options(store, "first", 5);
    let engine = open_with(store, options);
    let receipt = ingest(&engine, &first).await;
    let failure = receipt.error.unwrap();
    assert_eq!(failure.code, Code::Quarantined, "{failure:?}");
    assert_eq!(failure.death.unwrap().signal, Some(11));
    let again = ingest(&engine, &first).await;
    assert_eq!((again.error.unwrap().code, again.retries), (Code::Quarantined, 0));
    let second = ingest_options(store, "second", 5);
    let other = ingest(&engine, &second).await.error.unwrap();
    assert!(other.death.is_some(), "the other file was tried too: {other:?}");
    engine.close().await;
}

async fn deadly_batch(place: &Path, options: EngineOptions) {
    let store = &place.join("store");
    let file = ingest_options(store, "file", 2_000);
    let engine = open_with(store, options);
    let receipt = ingest(&engine, &file).await;
    assert!(receipt.success, "{receipt:?}");
    assert!(receipt.retries >= 1);
    assert_eq!((receipt.inserted, receipt.count_after), (2_000, 2_000));
    engine.close().await;
}
