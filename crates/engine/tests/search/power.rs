//! Power loss: a log cut at any byte leaves exactly a prefix of the commits, and segments that
//! match it or are rebuilt.

use std::fs;
use std::path::Path;

use isolith_types::{Code, Metric};
use libtest_mimic::Trial;

use crate::support::{Model, copy, open, segments, trial};

/// Number of positions at which the log is cut.
const CUTS: u64 = 16;

pub fn trials() -> Vec<Trial> {
    (0..2)
        .map(|half| {
            trial(format!("a_log_cut_at_any_byte_leaves_a_prefix_{half}"), async move |place| {
                cut_log(place, half).await;
            })
        })
        .collect()
}

async fn cut_log(place: &Path, half: u64) {
    let store = place.join("as it was");
    let prefixes = history(&place.join("store"), &store).await;
    let log = store.join("truth.sqlite-wal");
    let length = log.metadata().unwrap().len();
    assert!(length > 0, "the history is in the log");
    let mut chance = fastrand::Rng::with_seed(half);
    let (mut seen, mut missing) = (Vec::new(), 0);
    for cut in 0..CUTS {
        let copied = place.join(format!("cut-{cut}"));
        copy(&store, &copied);
        // The shared-memory index of the log does not survive a power loss.
        let _ = fs::remove_file(copied.join("truth.sqlite-shm"));
        let at = if cut == 0 { length } else { chance.u64(..length) };
        let log = fs::File::options().write(true).open(copied.join("truth.sqlite-wal")).unwrap();
        log.set_len(at).unwrap();
        let (prefix, lost) = check_prefix(&copied, &prefixes).await;
        seen.push(prefix);
        missing += usize::from(lost);
        fs::remove_dir_all(copied).unwrap();
    }
    assert_eq!(seen[0], prefixes.len(), "the whole log has all commits");
    assert!(missing > 0, "no trial missed a segment that a later swap had removed");
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 4, "the cuts fell into different commits: {seen:?}");
}

/// Commits and folds, and the content of the store after each commit of records. An open reader
/// keeps everything in the log; the database file is the one from before any checkpoint.
async fn history(store: &Path, copied: &Path) -> Vec<Model> {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 16);
    model.create(&engine).await;
    let before = fs::read(store.join("truth.sqlite")).unwrap();
    let reader = isolith_pages::open(
        &store.join("truth.sqlite"),
        rusqlite::OpenFlags::default(),
        isolith_pages::Checking::Every,
    )
    .unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM store").unwrap();
    let mut prefixes = vec![model.clone()];
    for round in 0..12_u64 {
        model.add(&engine, 15).await;
        prefixes.push(model.clone());
        model.replace(&engine, &[nth(&model, 2 * round)], round + 1).await;
        prefixes.push(model.clone());
        model.remove(&engine, &[nth(&model, 3 * round + 1)]).await;
        prefixes.push(model.clone());
        if round % 3 == 2 {
            engine.fold("c", false, None).await.unwrap();
        }
    }
    copy(store, copied);
    fs::write(copied.join("truth.sqlite"), before).unwrap();
    // What is cut off here was durable when it was acknowledged. A real power loss only loses
    // what was not durable, together with the mark.
    fs::remove_file(copied.join("acknowledged")).unwrap();
    drop(reader);
    engine.close().await;
    prefixes
}

fn nth(model: &Model, n: u64) -> u64 {
    *model.records.keys().nth(n as usize).unwrap()
}

/// The number of matching prefixes, and whether a segment was missing.
async fn check_prefix(store: &Path, prefixes: &[Model]) -> (usize, bool) {
    let engine = open(store);
    let state = match engine.collection("c").await {
        Err(failure) => {
            assert_eq!(failure.code, Code::NotFound, "{failure:?}");
            engine.close().await;
            return (0, false);
        }
        Ok(state) => state,
    };
    let stored = prefixes[0].stored(&engine).await;
    let records: Vec<_> = stored.iter().map(|stored| &stored.record).collect();
    let fitting = prefixes.iter().rposition(|it| it.records.values().eq(records.iter().copied()));
    let fitting = fitting.expect("what is stored is a prefix of the commits");
    let model = &prefixes[fitting];
    let there = segments(store);
    let named = state.generation.map(|generation| generation.segments).unwrap_or_default();
    let lost = named.iter().any(|it| !there.iter().any(|file| file.ends_with(&it.file)));
    model.check(&engine, lost).await;
    engine.fold("c", false, None).await.unwrap();
    model.check(&engine, false).await;
    engine.close().await;
    (fitting + 1, lost)
}
